//! Hosts that start while no server answers.

use super::rack::{Host, Rack};
use crate::support::until;

/// Hosts that are rebooted at once.
const HOSTS: usize = 20;

/// Line number of the first line of the log with a text.
#[track_caller]
fn line(host: &Host, text: &str) -> usize {
    let log = host.logged();
    log.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {log}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_12_last_known_addresses_are_applied_first_while_all_servers_are_away() {
    let mut rack = Rack::make(1, 10).await;
    let mut host = rack.host("h1");
    host.start_agent(&rack);
    host.is_served().await;
    let given = host.has("eth1", 2).await;
    host.off(&rack);
    rack.cluster.kill_all();

    host.boot(&rack);
    host.run(
        "ip link set eth1 up && ip address add 10.99.0.200/16 dev eth1 && \
         ip address add 2001:db8:99::200/64 dev eth1 nodad && ip route add 192.0.2.0/24 via 10.99.0.9",
    );
    host.forget_status();
    let start = std::time::Instant::now();
    host.start_agent(&rack);
    let all = host.has("eth1", 4).await;
    println!("addresses {} ms after the start of the agent, at most", start.elapsed().as_millis());
    assert!(given.is_subset(&all), "{given:?} {all:?}");
    until("a request to the servers has failed", async || {
        let log = host.logged();
        if log.contains("the host has no answer") { Ok(()) } else { Err(log) }
    })
    .await;
    // Before the agent serves its socket, and so before any request.
    for address in &given {
        assert!(line(&host, &format!("add address {address} to eth1")) < line(&host, "serving"));
    }
    assert_eq!(host.status()["source"], "journal");
    let routes = host.run("ip route show");
    assert!(routes.contains("192.0.2.0/24 via 10.99.0.9"), "{routes}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_rebooted_hosts_have_their_addresses_before_any_server_is_back() {
    let mut rack = Rack::make(3, 100).await;
    let mut hosts: Vec<Host> = (0..HOSTS).map(|number| rack.host(&format!("h{number}"))).collect();
    for host in &mut hosts {
        host.start_agent(&rack);
    }
    let mut before = Vec::new();
    for host in &hosts {
        host.is_served().await;
        before.push(host.has("eth1", 2).await);
    }
    rack.cluster.kill_all();
    for host in &mut hosts {
        host.off(&rack);
        host.forget_status();
    }
    for host in &mut hosts {
        host.boot(&rack);
        host.start_agent(&rack);
    }
    for (host, before) in hosts.iter().zip(&before) {
        assert_eq!(host.has("eth1", 2).await, *before, "{}", host.name);
    }
    assert_eq!(rack.cluster.up_members().count(), 0);
    rack.cluster.start_all();
    rack.cluster.ready().await;
    for (host, before) in hosts.iter().zip(&before) {
        host.is_served().await;
        assert_eq!(host.addresses("eth1"), *before, "{}", host.name);
    }
}
