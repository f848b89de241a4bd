//! Hosts that were installed again: the same name, another machine id. Each agent has a token of its node.

use std::fs;

use ipam_api::client::Call;
use ipam_api::token::Token;
use serde_json::json;

use super::rack::{ETH1, Rack};
use crate::support::LONG;
use crate::support::ask::allocations;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_16_a_reinstalled_host_is_asked_and_takes_over_with_its_own_token() {
    let rack = Rack::make(1, 10).await;
    let client = rack.cluster.ask();
    let mut host = rack.host("h1");
    let body = json!({"name": "h1", "role": "node", "node": {"name": "h1"}});
    let token: Token = client.call(Call::post("/v1/tokens").json(&body).unwrap().within(LONG)).await.unwrap();
    fs::write(host.state().join("node.token"), token.secret.unwrap()).unwrap();
    let top = format!("servers = {:?}\ntoken_file = \"/var/lib/ipam-agent/node.token\"", rack.sockets());
    rack.configure_with(&top, "", ETH1);
    host.start_agent(&rack);
    host.is_served().await;
    let before = host.has("eth1", 2).await;
    let held = allocations(&client).await;

    // Installed again: no journal, no addresses, another machine id.
    host.off(&rack);
    for file in ["host.json", "host-status.json"] {
        let _ = fs::remove_file(host.state().join(file));
    }
    fs::write(host.state().join("machine-id"), "00000000000000000000000000000016\n").unwrap();
    host.boot(&rack);
    host.start_agent(&rack);
    let status = host.is("reinstalled").await;
    assert!(status.to_string().contains("--take-over"), "{status}");
    assert!(host.addresses("eth1").is_empty());
    assert_eq!(allocations(&client).await, held);

    host.kill_agent();
    host.forget_status();
    rack.configure_with(&top, "take_over = true", ETH1);
    host.start_agent(&rack);
    host.is_served().await;
    assert_eq!(host.addresses("eth1"), before);
    assert_eq!(allocations(&client).await, held, "the same allocations");
}
