//! Speed of the plugin and of allocations, compared in one run: `cargo xtask measure`.
//!
//! The plugin from exec to exit, with and without the node's agent, against `host-local`, which uses no
//! server; the agent's memory and CPU; the leader's CPU with the heartbeats of many agents; and allocations
//! per second of three members on this machine, which share its cores with the clients. Read the figures as
//! ratios. The argument `--agent` leaves the allocations out. `IPAMD_MEASURE_REST_S` sets another time at
//! rest than a minute. Exits with 1 if a figure of the agent exceeds its limit.

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
/// Hosts on one segment, as the tests of namespaces have them.
#[path = "../tests/namespace"]
#[allow(dead_code, reason = "the tests use the rest")]
mod namespace {
    pub(crate) mod lan;
    pub(crate) mod wire;
}
#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use ipam_api::client::{Call, Client};
use ipam_api::limits::HEARTBEAT_INTERVAL_MS;
use ipam_api::name::Name;
use ipam_api::node_report::{HeartbeatRequest, Inventory};
use ipam_api::probe::Link;
use limits::Limits;
use namespace::lan::Lan;
use serde_json::{Value, json};
use support::agent::Agent;
use support::ask::{allocate_call, allocate_request, allocations, make_pools, put};
use support::{Cluster, programs};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Interleaved rounds of the plugins.
const ROUNDS: usize = 300;
/// Duration of the load with each number of clients.
const LOAD: Duration = Duration::from_secs(4);
/// Settings of a node, in place of the quick ones of tests.
const DEFAULTS: &str = "heartbeat_interval_ms = 10000
inventory_interval_ms = 15000
orphan_grace_ms = 30000";
/// Attachments of the agent at rest.
const ATTACHMENTS: usize = 500;
/// Simulated agents.
const AGENTS: u32 = 1000;
/// Time of a measurement at rest, in seconds: several heartbeats and inventories.
const REST_S: u64 = 60;
/// Measurements of the leader, until one meets no change of the leader.
const LEADERS: usize = 5;
/// ADDs of each kind with probes.
const PROBED: usize = 20;
/// Line of the agent's log for each ADD that probes.
const PROBES_OF_ADD: &str = "probing addresses of an ADD";
/// Argument that leaves the allocations out.
const AGENT_ONLY: &str = "--agent";
const HOST_LOCAL: &str = "/usr/lib/cni/host-local";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let mut limits = Limits::default();
    plugins(&cluster, &mut limits).await;
    agent_at_rest(&cluster).await;
    heartbeats(&cluster, &mut limits).await;
    probes().await;
    if std::env::args().all(|argument| argument != AGENT_ONLY) {
        // A /8, so that nothing has to be released: only allocations are measured.
        let (ask, subnet) = (cluster.ask(), json!({"name": "load", "cidr": "11.0.0.0/8"}));
        put(&ask, "subnets", subnet).await;
        put(&ask, "pools", json!({"name": "load", "subnet": "load"})).await;
        for clients in [1, 16, 64, 256] {
            load(&cluster, clients).await;
        }
    }
    limits.say()
}

/// Time of a measurement at rest.
fn rest() -> Duration {
    let seconds = std::env::var("IPAMD_MEASURE_REST_S").map_or(REST_S, |text| text.parse().unwrap());
    Duration::from_secs(seconds)
}

/// A file that stands for a container's network namespace: a path with an inode of its own.
fn netns(agent: &Agent, id: &str) -> PathBuf {
    let path = agent.dir.path().join(id);
    std::fs::write(&path, "").unwrap();
    path
}

/// ADD of each plugin in turn, so that both meet the same machine.
async fn plugins(cluster: &Cluster, limits: &mut Limits) {
    let store = cluster.dir.path().join("host-local");
    let host_local = json!({
        "cniVersion": "1.0.0", "name": "measure", "type": "bridge",
        "ipam": {
            "type": "host-local", "dataDir": store,
            "ranges": [[{"subnet": "10.8.0.0/16"}], [{"subnet": "2001:db8:8::/64"}]],
        },
    });
    let ours = support::plugin::network(&cluster.urls(), "bench", &["web", "web6"]);
    let agent = Agent::up(&cluster.urls(), "bench-agent", DEFAULTS).await;
    let through_agent = agent.network(&["web", "web6"]);
    let our_plugin = programs::ipam_cni();
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..ROUNDS {
        let id = format!("c{round}");
        let netns = netns(&agent, &id);
        times[0].push(run(Path::new("/bin/true"), "ADD", &id, &netns, &json!({})).await);
        times[1].push(run(Path::new(HOST_LOCAL), "ADD", &id, &netns, &host_local).await);
        times[2].push(run(&our_plugin, "ADD", &id, &netns, &ours).await);
        times[3].push(run(&our_plugin, "ADD", &id, &netns, &through_agent).await);
        // All hold few addresses: host-local walks all that it holds.
        run(Path::new(HOST_LOCAL), "DEL", &id, &netns, &host_local).await;
        run(&our_plugin, "DEL", &id, &netns, &ours).await;
        run(&our_plugin, "DEL", &id, &netns, &through_agent).await;
    }
    println!("ADD, exec to exit, {ROUNDS} interleaved rounds    p50        p90        p99");
    let [nothing, theirs, ours, through] = times.map(|mut times| {
        times.sort_unstable();
        times
    });
    let all = [
        ("/bin/true", &nothing),
        ("host-local", &theirs),
        ("ipam-cni", &ours),
        ("with ipam-agent", &through),
    ];
    for (name, times) in all {
        let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1000.0;
        println!("{name:<44} {:>7.2} ms {:>7.2} ms {:>7.2} ms", at(50), at(90), at(99));
    }
    let half = ROUNDS / 2;
    let ratio = |ours: &[Duration]| ours[half].as_secs_f64() / theirs[half].as_secs_f64();
    for (name, ours) in [("ipam-cni", &ours), ("with ipam-agent", &through)] {
        println!("{name} : host-local = {:.2}", ratio(ours));
    }
    limits.hold("ADD with ipam-agent, p50, times that of host-local", ratio(&through), 1.0);
}

/// ADD through `macvlan` from exec to exit: without probes, with a check ahead of the request, and with a
/// probe of its own.
async fn probes() {
    println!("\nADD through macvlan, {PROBED} times, medians");
    for (name, probing, is_checked) in [
        ("no probes", json!({}), false),
        ("checked ahead", json!({"conflicts": true}), true),
        ("probed by the ADD", json!({"conflicts": true}), false),
    ] {
        let lan = Lan::make(probing.clone()).await;
        let mut node = lan.node("n1", 201).await;
        let mut times: Vec<Duration> = Vec::new();
        for number in 0..PROBED {
            let mut main = json!({"type": "macvlan", "master": "eth0"});
            if is_checked {
                // Agents check the next addresses of a pool while nothing is requested.
                tokio::time::sleep(Duration::from_secs(1)).await;
            } else {
                // Far from the next addresses, where no agent looks.
                main["args"] = json!({"cni": {"ips": [format!("10.99.0.{}", 109 - number)]}});
            }
            let (began, probed) = (Instant::now(), node.logged().matches(PROBES_OF_ADD).count());
            let output = node.add_with(main);
            assert!(output.status.success(), "{output:?}");
            let expects_probe = usize::from(!is_checked && probing != json!({}));
            if node.logged().matches(PROBES_OF_ADD).count() - probed == expects_probe {
                times.push(began.elapsed());
            }
        }
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64() * 1000.0;
        println!("{name:<44} {median:>7.2} ms   of {} ADDs", times.len());
    }
}

/// Memory and CPU of an agent that has attachments and nothing to do.
async fn agent_at_rest(cluster: &Cluster) {
    let agent = Agent::up(&cluster.urls(), "bench-rest", DEFAULTS).await;
    let conf = agent.network(&["web", "web6"]);
    let before = allocations(&cluster.ask()).await.len();
    for number in 0..ATTACHMENTS {
        let id = format!("r{number}");
        run(&programs::ipam_cni(), "ADD", &id, &netns(&agent, &id), &conf).await;
    }
    let (rest, used) = (rest(), cpu(agent.pid()));
    tokio::time::sleep(rest).await;
    let share = (cpu(agent.pid()) - used) / rest.as_secs_f64();
    let rss = status(agent.pid(), "VmRSS:");
    // The inventory has seen all containers, and released none.
    let journal = agent.check("journal").await.detail;
    assert!(journal.starts_with(&format!("{ATTACHMENTS} attachments, 0 releases")), "{journal}");
    assert_eq!(allocations(&cluster.ask()).await.len() - before, 2 * ATTACHMENTS);
    println!("\nipam-agent with {ATTACHMENTS} attachments: {rss}, {:.2} % of a core", share * 100.0);
}

/// CPU of the leader while many agents send their heartbeats, each over a connection of its own.
async fn heartbeats(cluster: &Cluster, limits: &mut Limits) {
    for _ in 0..LEADERS {
        if let Some((idle, busy)) = heartbeats_at_leader(cluster).await {
            let (idle, busy) = (idle * 100.0, busy * 100.0);
            println!("leader at rest: {idle:.1} % of a core");
            println!(
                "leader with heartbeats of {AGENTS} agents: {busy:.1} % of a core, {:.2} of rest",
                busy / idle
            );
            println!();
            return limits.hold("heartbeats of 1,000 agents, % of a core of the leader", busy - idle, 5.0);
        }
        println!("another member became the leader; the heartbeats are measured again");
    }
    panic!("the leader changed in each of {LEADERS} measurements");
}

/// Shares of a core that the leader uses at rest and with the heartbeats; none if the leader changed.
async fn heartbeats_at_leader(cluster: &Cluster) -> Option<(f64, f64)> {
    let leader = cluster.leader().await;
    let (url, pid) = (cluster.members[leader].url(), cluster.members[leader].pid());
    let share = async |time: Duration| {
        let (used, from) = (cpu(pid), Instant::now());
        tokio::time::sleep(time).await;
        (cpu(pid) - used) / from.elapsed().as_secs_f64()
    };
    let idle = share(rest()).await;
    let every = Duration::from_millis(HEARTBEAT_INTERVAL_MS);
    let agents: Vec<_> = (0..AGENTS).map(|number| tokio::spawn(beat(url.clone(), number, every))).collect();
    // The first round makes rows; the later ones are measured.
    tokio::time::sleep(every + every / 2).await;
    let busy = share(rest().max(2 * every)).await;
    agents.iter().for_each(tokio::task::JoinHandle::abort);
    (cluster.leader().await == leader).then_some((idle, busy))
}

/// Sends the heartbeats of one agent until it is aborted.
async fn beat(url: String, number: u32, every: Duration) {
    let client = Client::new(&[url]).unwrap();
    let request = HeartbeatRequest {
        boot_id: format!("boot-{number}"),
        boot_number: 1,
        ready: true,
        problem: None,
        agent_version: "0.1.0".to_owned(),
        inventory: Inventory::default().digest(),
        // All agents are on the link of one subnet: the most that the choice of its probers costs.
        links: vec![Link { network: Name::default_name(), cidr: "10.7.0.0/16".parse().unwrap() }],
    };
    let path = format!("/v1/nodes/default/agent-{number}/heartbeat");
    tokio::time::sleep(every * number / AGENTS).await;
    loop {
        client.send(Call::post(&path).json(&request).unwrap().repeatable()).await.unwrap();
        tokio::time::sleep(every).await;
    }
}

/// CPU time of a process so far, in seconds: user and system time, in ticks of 10 ms.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

fn status(pid: u32, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

async fn run(plugin: &Path, verb: &str, id: &str, netns: &Path, config: &Value) -> Duration {
    let begun = Instant::now();
    let mut child = Command::new(plugin)
        .env_clear()
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", id)
        .env("CNI_NETNS", netns)
        .env("CNI_IFNAME", "eth0")
        .env("CNI_PATH", "/usr/lib/cni")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(config.to_string().as_bytes()).await;
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{plugin:?} {verb}: {}", String::from_utf8_lossy(&output.stdout));
    begun.elapsed()
}

/// Clients that allocate one address after the other, at the leader.
async fn load(cluster: &Cluster, clients: usize) {
    let leader = cluster.leader().await;
    let url = cluster.members[leader].url();
    let begun = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let url = url.clone();
            tokio::spawn(async move {
                let ask = Client::new(&[url]).unwrap();
                let mut took = Vec::new();
                while begun.elapsed() < LOAD {
                    let name = format!("load-{clients}-{client}-{}", took.len());
                    let sent = Instant::now();
                    ask.send(allocate_call(&allocate_request(&name, &["load"]))).await.unwrap();
                    took.push(sent.elapsed());
                }
                took
            })
        })
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await.unwrap());
    }
    took.sort_unstable();
    let seconds = begun.elapsed().as_secs_f64();
    let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1000.0;
    println!(
        "{clients:>3} clients   {:>8.0} allocations/s   p50 {:>6.2} ms   p99 {:>6.2} ms",
        took.len() as f64 / seconds,
        at(50),
        at(99)
    );
}
