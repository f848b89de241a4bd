//! Costs of a large state: `cargo xtask measure --million`.
//!
//! Three members on this machine share its cores and its disk with the client. They are filled over HTTP.
//! Then single allocations arrive at a fixed rate, regardless of earlier ones: in an idle cluster, while
//! snapshots are built, and while one is sent. Read the times as ratios. `IPAMD_MEASURE_ALLOCATIONS` sets
//! another number than a million. Exits with 1 if a figure exceeds its limit.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for people who measure"
)]

#[path = "shared/limits.rs"]
mod limits;
#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;
#[path = "million/witness.rs"]
mod witness;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ipam_api::client::{Call, Client};
use limits::Limits;
use serde_json::{Value, json};
use support::ask::{allocate_call, allocate_request, put};
use support::member::Member;
use support::raw::ask;
use support::{Cluster, LONG};
use witness::{Took, Witness, longest_beside, quantile};

/// Allocations of one step while the members are filled.
const STEPS: usize = 1000;
/// Steps that are on their way at once.
const FILLERS: usize = 4;
/// Single allocations a second, and for how long.
const RATE: u32 = 50;
const LISTEN: Duration = Duration::from_secs(30);
/// Allocations that take longer are shown one by one.
const SLOW: Duration = Duration::from_millis(25);
/// Settings under which no snapshot is made.
const NEVER: &str = "snapshot_every_entries = 100000000\nsnapshot_every_mib = 1000000";
/// Settings with which members make snapshots in turn: each every 15 s, for the 5 s that it takes.
const IN_TURNS: &str = "snapshot_every_entries = 750\nkeep_entries_behind_snapshot = 200";

static NUMBER: AtomicUsize = AtomicUsize::new(0);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let allocations =
        std::env::var("IPAMD_MEASURE_ALLOCATIONS").map_or(1_000_000, |text| text.parse().unwrap());
    let mut cluster =
        Cluster::of_with(3, "heartbeat_ms = 100\nelection_min_ms = 500\nelection_max_ms = 1000");
    cluster.start_all();
    cluster.ready().await;
    let mut limits = Limits::default();
    fill(&cluster, allocations).await;
    sizes(&cluster, "after filling").await;
    for at in 0..3 {
        let most = resident_mib(&cluster, at) / (allocations as f64 / 1_000_000.0);
        limits.hold("memory after filling, MiB for 1,000,000", most, 2048.0);
    }

    let at = cluster.follower().await;
    let ready = restart(&mut cluster, at, "clean stop", &[]).await;
    limits.hold("ready after a clean stop, seconds", ready, 5.0);
    let ready = restart(&mut cluster, at, "rows gone", &["rows"]).await;
    limits.hold("ready without rows, seconds", ready, 15.0);
    let ready = restart(&mut cluster, at, "rows and snapshot gone", &["rows", "snapshot"]).await;
    limits.hold("ready without rows and snapshot, seconds", ready, 15.0);

    settle(&mut cluster, NEVER).await;
    let idle = listen(&cluster, "nothing else", LISTEN).await;
    settle(&mut cluster, IN_TURNS).await;
    let building = listen(&cluster, "snapshots being built", LISTEN).await;
    limits.hold("p99 while snapshots are built, times that of nothing else", building / idle, 2.0);
    let late = sleep_through(&mut cluster).await;
    let sending = send(&mut cluster, late).await;
    limits.hold("p99 while one is sent, times that of nothing else", sending / idle, 2.0);
    sizes(&cluster, "at the end").await;
    limits.say()
}

/// Fills a /8 over HTTP, many allocations a step.
async fn fill(cluster: &Cluster, allocations: usize) {
    let client = cluster.ask();
    put(&client, "subnets", json!({"name": "large", "cidr": "11.0.0.0/8"})).await;
    put(&client, "pools", json!({"name": "large", "subnet": "large"})).await;
    let begun = Instant::now();
    let fillers: Vec<_> = (0..FILLERS)
        .map(|filler| {
            let client = cluster.ask();
            tokio::spawn(async move {
                for round in (filler..allocations / STEPS).step_by(FILLERS) {
                    give(&client, round).await;
                }
            })
        })
        .collect();
    for filler in fillers {
        filler.await.unwrap();
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{allocations} allocations in {seconds:.0} s, {:.0}/s", allocations as f64 / seconds);
    cluster.settled().await;
}

async fn give(client: &Client, round: usize) {
    let steps: Vec<Value> = (0..STEPS)
        .map(|number| {
            let body = allocate_request(&format!("web-{round}-{number}"), &["large"]);
            json!({"method": "POST", "path": "/v1/allocations", "body": body})
        })
        .collect();
    let call = Call::post("/v1/transactions").json(&json!({"steps": steps})).unwrap();
    // What an endpoint has it is given again, so nothing goes wrong when this is sent twice.
    client.send(call.repeatable().within(LONG)).await.unwrap();
}

/// Stops a member in good order, takes something away from it, and starts it.
async fn restart(cluster: &mut Cluster, at: usize, what: &str, gone: &[&str]) -> f64 {
    quiet(cluster).await;
    let begun = Instant::now();
    assert!(cluster.stop(at).await.success());
    println!("{what}: stopped in {:.1} s", begun.elapsed().as_secs_f64());
    for folder in gone {
        std::fs::remove_dir_all(cluster.members[at].data_dir.join(folder)).unwrap();
    }
    start(cluster, at, what).await
}

/// Starts a member; says when it was alive, when ready, and what memory that took. The seconds until it was
/// ready.
async fn start(cluster: &mut Cluster, at: usize, what: &str) -> f64 {
    let begun = Instant::now();
    cluster.start(at);
    let mut alive = None;
    let mut told = String::new();
    while let Err(why) = cluster.members[at].is_ready().await {
        if why.contains("not ready") {
            alive.get_or_insert_with(|| begun.elapsed());
            told = why;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ready = begun.elapsed().as_secs_f64();
    let alive = alive.unwrap_or_default().as_secs_f64();
    println!("{what}: alive after {alive:.2} s, ready after {ready:.2} s ({})", memory(cluster, at));
    println!("    last word before: {}", told.trim());
    ready
}

/// All members with other settings, ready and in one state.
async fn settle(cluster: &mut Cluster, raft: &str) {
    for at in 0..3 {
        assert!(cluster.stop(at).await.success());
    }
    let timing = "heartbeat_ms = 100\nelection_min_ms = 500\nelection_max_ms = 1000";
    std::fs::write(cluster.config(), format!("log = \"info\"\n[raft]\n{timing}\n{raft}\n")).unwrap();
    cluster.start_all();
    cluster.ready().await;
    cluster.settled().await;
    quiet(cluster).await;
}

/// Waits until all members are idle: rows and snapshots are written in the background.
async fn quiet(cluster: &Cluster) {
    let mut before = busy_ticks(cluster);
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = busy_ticks(cluster);
        // A tenth of a core for heartbeats and the like.
        if now - before < 20 {
            return;
        }
        before = now;
    }
}

/// Processor time of all members, in hundredths of a second.
fn busy_ticks(cluster: &Cluster) -> u64 {
    let ticks = cluster.up_members().map(|member| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", member.pid())).unwrap();
        let (_, numbers) = stat.rsplit_once(") ").unwrap();
        let (user, system) = (numbers.split(' ').nth(11).unwrap(), numbers.split(' ').nth(12).unwrap());
        user.parse::<u64>().unwrap() + system.parse::<u64>().unwrap()
    });
    ticks.sum()
}

/// Single allocations at a fixed rate for some time; their p99 in milliseconds.
async fn listen(cluster: &Cluster, what: &str, time: Duration) -> f64 {
    let before = built(cluster).await;
    let loaded = load(cluster, tokio::time::sleep(time)).await;
    loaded.say(what, built(cluster).await - before)
}

/// One allocation: its start, its duration, and the member's breakdown of the time.
struct Single {
    took: Took,
    timing: String,
}

/// Results of allocations at a fixed rate, and the machine's own delays meanwhile.
struct Loaded {
    begun: Instant,
    singles: Vec<Single>,
    seen: witness::Seen,
}

impl Loaded {
    /// Prints it; the p99 in milliseconds.
    fn say(&self, what: &str, snapshots: u64) -> f64 {
        let took: Vec<Took> = self.singles.iter().map(|single| single.took).collect();
        for (name, those) in [
            (format!("{what}: {} allocations at {RATE}/s", took.len()), &took),
            ("    beside it, a plain file's fsync".to_owned(), &self.seen.disk),
            ("    beside it, a nap's delay".to_owned(), &self.seen.processor),
        ] {
            let at = |thousandths| quantile(those, thousandths);
            println!("{name}: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms", at(500), at(990), at(1000));
        }
        println!("    {snapshots} snapshots built");
        for Single { took, timing } in self.singles.iter().filter(|single| single.took.1 > SLOW) {
            println!(
                "    slow: {:.1} ms, {:.1} s on ({timing}); fsync {:.1} ms, nap {:.1} ms",
                took.1.as_secs_f64() * 1000.0,
                (took.0 - self.begun).as_secs_f64(),
                longest_beside(&self.seen.disk, *took).as_secs_f64() * 1000.0,
                longest_beside(&self.seen.processor, *took).as_secs_f64() * 1000.0
            );
        }
        quantile(&took, 990)
    }
}

/// Allocates at a fixed rate until something is over.
async fn load(cluster: &Cluster, until: impl Future<Output = ()>) -> Loaded {
    let client = Arc::new(cluster.members[cluster.leader().await].ask());
    let begun = Instant::now();
    let witness = Witness::watch(cluster.dir.path());
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
    let mut calls = tokio::task::JoinSet::new();
    tokio::pin!(until);
    loop {
        tokio::select! {
            () = &mut until => break,
            _ = ticks.tick() => {
                let client = Arc::clone(&client);
                let name = format!("single-{}", NUMBER.fetch_add(1, Relaxed));
                calls.spawn(async move {
                    let begun = Instant::now();
                    let call = allocate_call(&allocate_request(&name, &["large"]));
                    let answer = client.send(call).await.unwrap();
                    let timing = answer.header("server-timing").unwrap_or_default().to_owned();
                    Single { took: (begun, begun.elapsed()), timing }
                });
            }
        }
    }
    Loaded { begun, singles: calls.join_all().await, seen: witness.end() }
}

/// Stops a follower until the log no longer holds its missing entries.
async fn sleep_through(cluster: &mut Cluster) -> usize {
    let late = cluster.follower().await;
    assert!(cluster.stop(late).await.success());
    let before = built(cluster).await;
    let enough = async {
        while built(cluster).await < before + 4 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    load(cluster, enough).await;
    late
}

/// Starts a member that needs a snapshot, and allocates until it has it.
async fn send(cluster: &mut Cluster, late: usize) -> f64 {
    let begun = Instant::now();
    cluster.start(late);
    let cluster = &*cluster;
    let caught_up = async {
        while counted(&cluster.members[late], "installed").await == 0
            || cluster.members[late].is_ready().await.is_err()
        {
            step_back(cluster.members[late].pid());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let loaded = load(cluster, caught_up).await;
    println!(
        "caught up by snapshot {:.1} s after its start ({})",
        begun.elapsed().as_secs_f64(),
        memory(cluster, late)
    );
    loaded.say("a snapshot being sent", 0)
}

/// Lets a process come after all others. What a member does for itself, it does on a machine of its own
/// elsewhere.
fn step_back(pid: u32) {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let threads = threads.map(|thread| thread.unwrap().file_name());
    let renice = std::process::Command::new("renice").args(["-n", "19", "-p"]).args(threads).output();
    // A thread that ended meanwhile is no matter.
    renice.unwrap();
}

async fn built(cluster: &Cluster) -> u64 {
    let mut built = 0;
    for member in cluster.up_members() {
        built += counted(member, "built").await;
    }
    built
}

/// Value of a member's counter; none while it starts.
async fn counted(member: &Member, what: &str) -> u64 {
    let call = Call::get("/metrics").within(Duration::from_secs(5));
    let Ok(answer) = member.ask().send(call).await else { return 0 };
    let text = String::from_utf8_lossy(&answer.body);
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(&format!("ipamd_raft_snapshots_{what}_total ")));
    value.map_or(0, |value| value.parse().unwrap())
}

async fn sizes(cluster: &Cluster, what: &str) {
    for at in 0..3 {
        let member = &cluster.members[at];
        let of = |name: &str| size(&member.data_dir.join(name)) >> 20;
        println!(
            "{what}: {}: {}; snapshot {} MiB, rows {} MiB, log {} MiB, journal {} MiB",
            member.name,
            memory(cluster, at),
            of("snapshot"),
            of("rows"),
            of("log"),
            of("journal")
        );
    }
    let applied = ask(cluster.members[0].client, "GET", "/v1/cluster", &[], &Value::Null).await;
    println!("    {} allocated", applied.json::<Value>()["addresses"]["allocated"]);
}

/// Memory of a member, now and at most so far.
fn memory(cluster: &Cluster, at: usize) -> String {
    let most = memory_mib(cluster, at, "VmHWM:");
    format!("{:.0} MiB resident, {most:.0} at most", resident_mib(cluster, at))
}

fn resident_mib(cluster: &Cluster, at: usize) -> f64 {
    memory_mib(cluster, at, "VmRSS:")
}

fn memory_mib(cluster: &Cluster, at: usize, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", cluster.members[at].pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

fn size(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return std::fs::metadata(path).map_or(0, |found| found.len());
    };
    entries.map(|entry| size(&entry.unwrap().path())).sum()
}
