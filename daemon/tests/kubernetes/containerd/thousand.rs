//! A thousand pods at once on ten nodes. Their sandboxes would take minutes, so that each mini kubelet runs
//! the plugin as containerd does, without a sandbox.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::join_all;
use ipam_api::client::Call;
use serde_json::json;

use super::kubelet::{Kubelet, Pod};
use crate::support::agent::Agent;
use crate::support::ask::{allocations, make_pools};
use crate::support::{Cluster, LONG, programs};

const NODES: usize = 10;
const PODS_PER_NODE: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_16_a_thousand_pods_at_once_get_distinct_addresses() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let agent = Agent::up(&cluster.urls(), &format!("node-{number}"), "").await;
        let mut network = agent.network(&["web"]);
        network["cniVersion"] = json!("1.0.0");
        let file = agent.dir.path().join("network.json");
        std::fs::write(&file, network.to_string()).unwrap();
        let mut command = Command::new(programs::mini_kubelet());
        command.arg("--network").arg(file).arg("--plugin").arg(programs::ipam_cni());
        nodes.push((agent, Kubelet::start(command)));
    }
    let annotations = [("ipam.spidernet.io/ippool", r#"{"ipv4": ["web"]}"#), ("example.com/other", "x")];
    let pods: Vec<Vec<Pod>> = (0..NODES)
        .map(|node| {
            (0..PODS_PER_NODE).map(|at| Pod::new(&format!("pod-{node}-{at}"), &annotations)).collect()
        })
        .collect();
    let began = Instant::now();
    let placed =
        nodes.iter().zip(&pods).flat_map(|((_, kubelet), pods)| pods.iter().map(move |pod| (kubelet, pod)));
    let answers = join_all(placed.map(|(kubelet, pod)| kubelet.create(pod))).await;
    let took = began.elapsed();
    let mut runs: Vec<f64> = answers.iter().map(|answer| answer.milliseconds).collect();
    runs.sort_by(f64::total_cmp);
    let ipamd = milliseconds_per_allocation(&cluster).await;
    let alone = runs_without_request(answers.len()).await;
    println!(
        "h6_16: {} pods on {NODES} nodes, from the first order to the last answer: {took:?}; one run of the \
         plugin: median {:.1} ms, longest {:.1} ms; ipamd's part of a run: {ipamd:.1} ms on average; as many \
         runs without a request: {alone:?}",
        answers.len(),
        runs[runs.len() / 2],
        runs[runs.len() - 1],
    );
    let addresses: BTreeSet<IpAddr> = answers.iter().flat_map(|answer| answer.addresses.clone()).collect();
    assert_eq!(addresses.len(), NODES * PODS_PER_NODE);
    let held: BTreeSet<IpAddr> =
        allocations(&cluster.ask()).await.into_iter().map(|one| one.address.addr()).collect();
    assert_eq!(held, addresses);
}

/// Time of as many processes of the plugin that tell their version only: the part of the kernel.
async fn runs_without_request(count: usize) -> Duration {
    let began = Instant::now();
    let run = || async {
        let mut command = tokio::process::Command::new(programs::ipam_cni());
        command.env_clear().env("CNI_COMMAND", "VERSION").stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).status().await.unwrap()
    };
    join_all((0..NODES).map(|_| async {
        for _ in 0..count / NODES {
            run().await;
        }
    }))
    .await;
    began.elapsed()
}

/// Mean time in which the members answered requests for addresses.
async fn milliseconds_per_allocation(cluster: &Cluster) -> f64 {
    let (mut seconds, mut count) = (0.0, 0.0);
    for at in 0..cluster.members.len() {
        let metrics = cluster.at(at).send(Call::get("/metrics").within(LONG)).await.unwrap();
        let metrics = String::from_utf8(metrics.body).unwrap();
        let of = |name: &str| -> f64 {
            let lines =
                metrics.lines().filter(|line| line.starts_with(name) && line.contains("/v1/allocations\""));
            lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
        };
        seconds += of("ipamd_http_request_seconds_sum");
        count += of("ipamd_http_request_seconds_count");
    }
    assert!(count >= 1.0, "no request was counted");
    seconds / count * 1000.0
}
