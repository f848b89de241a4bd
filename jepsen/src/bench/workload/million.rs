//! A large state: memory, bursts, starts, and latencies beside background work.
//!
//! The background work is the build of snapshots, the transfer of a snapshot, and the full scan of a new
//! leader.

use std::future::ready;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use ipam_api::client::Call;
use serde_json::json;

use super::addresses::source;
use super::allocate::{Allocate, DUAL_STACK};
use super::bulk::fill;
use super::restart::restarts;
use crate::bench::lab::{Ipamd, Lab, Subject};
use crate::bench::load::{Client, Load, Measured, Times, burst, open};

/// Addresses that are held before the first burst.
const FEW: u64 = 100;
/// Clients of a burst.
const PODS: usize = 1000;
/// Bursts of each state, whose median counts.
const BURSTS: usize = 3;
/// Rate of single allocations.
const RATE: u32 = 200;
/// Clients that share the rate.
const CLIENTS: usize = 32;
/// Setting under which no member builds a snapshot of its own.
const NEVER: [(&str, &str); 2] =
    [("IPAMD_RAFT_SNAPSHOT_EVERY_ENTRIES", "100000000"), ("IPAMD_RAFT_SNAPSHOT_EVERY_MIB", "1000000")];
/// Settings for frequent snapshots and a short log. Each member builds a snapshot every 15 s at [`RATE`], and
/// a member that was absent needs a snapshot to catch up.
const IN_TURNS: [(&str, &str); 2] =
    [("IPAMD_RAFT_SNAPSHOT_EVERY_ENTRIES", "3000"), ("IPAMD_RAFT_KEEP_ENTRIES_BEHIND_SNAPSHOT", "800")];
/// Counters of snapshots in the metrics.
const BUILT: &str = "ipamd_raft_snapshots_built_total";
const INSTALLED: &str = "ipamd_raft_snapshots_installed_total";
/// CPU time that all members together use during [`LOOK`] while they count as idle.
const IDLE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(1);
/// Longest wait for idle members, and for a member that catches up.
const PATIENCE: Duration = Duration::from_secs(300);
/// Time in which a new leader begins its full scan, with some reserve.
const SCAN_WITHIN: Duration = Duration::from_secs(5);

/// Fills a cluster of its own with `held` addresses, and measures it.
pub(in crate::bench) async fn million(lab: &mut Lab, held: u64, times: Times) -> Result<Measured> {
    let mut measured = Measured::default();
    let mut cluster = lab.fresh_ipamd(Subject::Ipamd).await?;
    fill(&cluster, "large", FEW).await?;
    let seconds = bursts(&cluster, &mut measured, "burst-few").await?;
    measured.add("burst-few-s", seconds);
    let begun = Instant::now();
    fill(&cluster, "large", held.saturating_sub(FEW)).await?;
    let seconds = begun.elapsed().as_secs_f64();
    quiet(&cluster).await?;
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    let (count, resident) = (held as f64, resident_bytes(cluster.pid(cluster.leader().await?)?)? as f64);
    measured.add("fill-per_s", count / seconds);
    measured.add("resident-bytes", resident / count);
    eprintln!("{held} held after {seconds:.0} s, {:.0} resident bytes each at the leader", resident / count);
    let seconds = bursts(&cluster, &mut measured, "burst-many").await?;
    measured.add("burst-many-s", seconds);

    restarts(&mut cluster, &mut measured).await?;
    cluster.restart_with(&NEVER).await?;
    quiet(&cluster).await?;
    let idle = single(&cluster, times, ready(())).await?;
    eprintln!("single allocations: {}", idle.shown());
    let scanning = scan(&cluster, times).await?;
    cluster.restart_with(&IN_TURNS).await?;
    quiet(&cluster).await?;
    let before = built(&cluster).await;
    let building = single(&cluster, times, reached(&cluster, before + 1)).await?;
    eprintln!("while {} snapshots were built: {}", built(&cluster).await - before, building.shown());
    let sending = send(&mut cluster, times).await?;
    let idle_ms = idle.latency.p99_ms().max(f64::MIN_POSITIVE);
    for (name, load) in [("building", &building), ("sending", &sending), ("scanning", &scanning)] {
        measured.add(&format!("{name}-p99-ratio"), load.latency.p99_ms() / idle_ms);
    }
    for (name, load) in [("idle", idle), ("building", building), ("sending", sending), ("scanning", scanning)]
    {
        measured.add_load(name, load);
    }
    Ok(measured)
}

/// Makes bursts of dual-stack allocations at all members; returns the median of their times.
async fn bursts(cluster: &Ipamd, measured: &mut Measured, name: &str) -> Result<f64> {
    let mut all = Load::default();
    let mut seconds = Vec::new();
    for _ in 0..BURSTS {
        let clients = burst_clients(&cluster.servers().await?).await?;
        let load = burst(clients, &cluster.processes().await?).await;
        eprintln!("{name}: {:.2} s  {}", load.elapsed.as_secs_f64(), load.shown());
        seconds.push(load.elapsed.as_secs_f64());
        all.merge(&load);
        quiet(cluster).await?;
    }
    measured.add_load(name, all);
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().context("no burst")
}

/// Clients of a burst, with open connections to all members.
pub(in crate::bench) async fn burst_clients(servers: &[SocketAddr]) -> Result<Vec<Box<dyn Client>>> {
    let mut clients: Vec<Box<dyn Client>> = Vec::new();
    for (number, server) in servers.iter().cycle().take(PODS).enumerate() {
        clients.push(Box::new(Allocate::new(*server, &DUAL_STACK).opened_from(source(number)).await?));
    }
    Ok(clients)
}

/// Single allocations at a fixed rate at the leader.
async fn single(cluster: &Ipamd, times: Times, meanwhile: impl Future<Output = ()>) -> Result<Load> {
    let server = *cluster.servers().await?.first().context("no server")?;
    let client = |_| Box::new(Allocate::new(server, &["large"])) as Box<dyn Client>;
    let clients = (0..CLIENTS).map(client).collect();
    Ok(open(clients, RATE, times, &cluster.processes().await?, meanwhile).await)
}

/// Latencies while a new leader makes its full scan, which begins one second after its election.
async fn scan(cluster: &Ipamd, times: Times) -> Result<Load> {
    let before = cluster.leader().await?;
    let heir = json!({"to": format!("n{}", cluster.follower().await? + 1)});
    let call = Call::post("/v1/cluster/transfer-leader").json(&heir)?;
    cluster.client()?.send(call).await.context("the leader is not transferred")?;
    let begun = Instant::now();
    while cluster.leader().await? == before {
        ensure!(begun.elapsed() < PATIENCE, "the leader stays");
    }
    let times = Times { warm_up: Duration::from_millis(100), measured: times.measured.min(SCAN_WITHIN) };
    let load = single(cluster, times, ready(())).await?;
    eprintln!("with the full scan of a new leader: {}", load.shown());
    Ok(load)
}

/// Stops a follower until the log no longer holds its entries, and measures while it gets a snapshot.
async fn send(cluster: &mut Ipamd, times: Times) -> Result<Load> {
    let late = cluster.follower().await?;
    cluster.stop(late).await?;
    let before = built(cluster).await;
    single(cluster, times, reached(cluster, before + 4)).await?;
    cluster.start_member(late)?;
    let cluster = &*cluster;
    let begun = Instant::now();
    let caught_up = async {
        while begun.elapsed() < PATIENCE
            && (cluster.metric(late, INSTALLED).await.unwrap_or_default() == 0
                || cluster.is_ready(late).await.is_err())
        {
            // In production the receiver has its own machine, so its work must not count as cost of sending.
            step_back(cluster, late);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let load = single(cluster, Times { warm_up: Duration::ZERO, ..times }, caught_up).await?;
    let installed = cluster.metric(late, INSTALLED).await.unwrap_or_default();
    ensure!(installed > 0, "no snapshot was sent");
    eprintln!("a snapshot sent in {:.1} s: {}", begun.elapsed().as_secs_f64(), load.shown());
    Ok(load)
}

/// Gives the threads of a member the lowest priority.
fn step_back(cluster: &Ipamd, at: usize) {
    let Ok(pid) = cluster.pid(at) else { return };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut command = Command::new("renice");
    command.args(["-n", "19", "-p"]).args(threads.map(|thread| thread.file_name()));
    // A thread that has ended meanwhile is no error.
    let _output = command.output();
}

/// Snapshots that all members have built.
async fn built(cluster: &Ipamd) -> u64 {
    let mut built = 0;
    for at in 0..cluster.count() {
        built += cluster.metric(at, BUILT).await.unwrap_or_default();
    }
    built
}

/// Waits until the members have built a number of snapshots.
async fn reached(cluster: &Ipamd, number: u64) {
    let begun = Instant::now();
    while built(cluster).await < number && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Waits until all members are idle: rows and snapshots are written in the background.
async fn quiet(cluster: &Ipamd) -> Result<()> {
    let begun = Instant::now();
    loop {
        let before = cpu(cluster).await?;
        tokio::time::sleep(LOOK).await;
        if cpu(cluster).await?.saturating_sub(before) < IDLE || begun.elapsed() > PATIENCE {
            return Ok(());
        }
    }
}

async fn cpu(cluster: &Ipamd) -> Result<Duration> {
    let processes = cluster.processes().await?;
    Ok(processes.iter().map(crate::bench::load::Process::cpu).sum())
}

/// Resident memory of a process.
pub(in crate::bench) fn resident_bytes(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}
