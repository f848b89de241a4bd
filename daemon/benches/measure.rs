//! Speed of the plugin and of allocations, compared in one run: `cargo xtask measure`.
//!
//! The plugin from exec to exit against `host-local`, which uses no server; and allocations per second of
//! three members on this machine, which share its cores with the clients. Read the figures as ratios.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for people who measure"
)]

#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ipam_api::client::Client;
use serde_json::{Value, json};
use support::ask::{allocate_call, allocate_request, make_pools, put};
use support::{Cluster, programs};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Interleaved rounds of the plugins.
const ROUNDS: usize = 300;
/// Duration of the load with each number of clients.
const LOAD: Duration = Duration::from_secs(4);
const HOST_LOCAL: &str = "/usr/lib/cni/host-local";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    plugins(&cluster).await;
    // A /8, so that nothing has to be released: only allocations are measured.
    let (ask, subnet) = (cluster.ask(), json!({"name": "load", "cidr": "11.0.0.0/8"}));
    put(&ask, "subnets", subnet).await;
    put(&ask, "pools", json!({"name": "load", "subnet": "load"})).await;
    for clients in [1, 16, 64, 256] {
        load(&cluster, clients).await;
    }
}

/// ADD of each plugin in turn, so that both meet the same machine.
async fn plugins(cluster: &Cluster) {
    let store = cluster.dir.path().join("host-local");
    let host_local = json!({
        "cniVersion": "1.0.0", "name": "measure", "type": "bridge",
        "ipam": {"type": "host-local", "dataDir": store, "ranges": [[{"subnet": "10.8.0.0/16"}], [{"subnet": "2001:db8:8::/64"}]]},
    });
    let ours = support::plugin::network(&cluster.urls(), "bench", &["web", "web6"]);
    let our_plugin = programs::ipam_cni();
    let mut times: [Vec<Duration>; 3] = Default::default();
    for round in 0..ROUNDS {
        let id = format!("c{round}");
        times[0].push(run(Path::new("/bin/true"), "ADD", &id, &json!({})).await);
        times[1].push(run(Path::new(HOST_LOCAL), "ADD", &id, &host_local).await);
        times[2].push(run(&our_plugin, "ADD", &id, &ours).await);
        // Both hold few addresses: host-local walks all that it holds.
        run(Path::new(HOST_LOCAL), "DEL", &id, &host_local).await;
        run(&our_plugin, "DEL", &id, &ours).await;
    }
    println!("ADD, exec to exit, {ROUNDS} interleaved rounds    p50        p90        p99");
    let [nothing, theirs, ours] = times.map(|mut times| {
        times.sort_unstable();
        times
    });
    for (name, times) in [("/bin/true", &nothing), ("host-local", &theirs), ("ipam-cni", &ours)] {
        let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1000.0;
        println!("{name:<44} {:>7.2} ms {:>7.2} ms {:>7.2} ms", at(50), at(90), at(99));
    }
    let half = ROUNDS / 2;
    println!("ipam-cni : host-local = {:.2}\n", ours[half].as_secs_f64() / theirs[half].as_secs_f64());
}

async fn run(plugin: &Path, verb: &str, id: &str, config: &Value) -> Duration {
    let begun = Instant::now();
    let mut child = Command::new(plugin)
        .env_clear()
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", id)
        .env("CNI_NETNS", "/run/netns/none")
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
