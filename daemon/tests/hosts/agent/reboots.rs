//! Addresses that stay the same: over reboots, growth of the pool, a lost journal and a restart.

use std::fs;

use ipam_api::client::Call;
use serde_json::json;

use super::rack::Rack;
use crate::support::ask::{allocations, put};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_5_a_rebooted_host_has_its_addresses_in_a_pool_that_was_recreated_larger() {
    let rack = Rack::make(1, 10).await;
    let mut host = rack.host("h1");
    host.start_agent(&rack);
    host.is_served().await;
    let before = host.has("eth1", 2).await;

    host.off(&rack);
    for (name, range) in [("lan", "10.99.0.2-10.99.9.9"), ("lan6", "2001:db8:99::2-2001:db8:99::9:9")] {
        let pool = json!({"name": name, "subnet": name, "ranges": [range], "cooling_ms": 0});
        put(&rack.cluster.ask(), "pools", pool).await;
    }
    host.boot(&rack);
    host.forget_status();
    host.start_agent(&rack);
    host.is_served().await;
    assert_eq!(host.addresses("eth1"), before);

    // The endpoint of a machine holds them, and not the journal.
    host.off(&rack);
    fs::remove_file(host.state().join("host.json")).unwrap();
    host.forget_status();
    host.boot(&rack);
    host.start_agent(&rack);
    host.is_served().await;
    assert_eq!(host.addresses("eth1"), before);
    let held = allocations(&rack.cluster.ask()).await;
    assert_eq!(held.len(), 2, "{held:?}");
    assert!(held.iter().all(|one| one.endpoint.to_string() == "host/h1"), "{held:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_host_has_nothing_of_the_agent() {
    let rack = Rack::make(1, 10).await;
    let mut host = rack.host("h1");
    host.run("ip link set eth1 up && ip address add 10.99.0.200/16 dev eth1");
    host.start_agent(&rack);
    host.is_served().await;
    host.has("eth1", 3).await;
    let status = host.agent_host(&rack, &["status"]);
    let shown = String::from_utf8(status.stdout).unwrap();
    assert!(status.status.success() && shown.contains("state: applied (source: server)"), "{shown}");
    // A running agent would ask again.
    assert!(!host.agent_host(&rack, &["release"]).status.success());
    host.kill_agent();
    let released = host.agent_host(&rack, &["release"]);
    assert!(released.status.success(), "{released:?}");
    assert_eq!(host.addresses("eth1"), ["10.99.0.200/16".to_owned()].into());
    assert!(allocations(&rack.cluster.ask()).await.is_empty());
    let gone = rack.cluster.ask().send(Call::get("/v1/endpoints/host/default/default/h1")).await;
    assert!(gone.is_err(), "{gone:?}");
}
