//! Host policies: nmstate applies the state that is rendered for a node.

use std::collections::BTreeSet;

use ipam_api::client::Call;
use ipam_api::host_policy::RenderedHostPolicy;
use serde_json::{Value, json};

use super::room::{Room, target};
use crate::support::ask::put;
use crate::support::{Cluster, LONG};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_4_nmstate_applies_the_policy_of_each_node() {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    let mut interfaces = Vec::new();
    for (pool, number) in [("traffic-1", 0), ("traffic-2", 1)] {
        let cidr = format!("10.10.{number}.0/24");
        put(&client, "subnets", json!({"name": pool, "cidr": cidr})).await;
        put(&client, "pools", json!({"name": pool, "subnet": pool})).await;
        interfaces.push(json!({
            "name": format!("eth{number}"), "type": "ethernet", "state": "up",
            "ipv4": {"enabled": true, "dhcp": false, "address": [{
                "ip": format!("{{{{ capture.from-{pool}.ip }}}}"),
                "prefix-length": format!("{{{{ capture.from-{pool}.prefix-length }}}}"),
            }]},
        }));
    }
    let capture = json!({
        "from-traffic-1": "ippool.traffic-1.allocate", "from-traffic-2": "ippool.traffic-2.allocate",
    });
    let policy =
        json!({"name": "static-ip", "capture": capture, "desired_state": {"interfaces": interfaces}});
    put(&client, "host-policies", policy).await;
    let program = target().join("tools/nmstate/debug/nmstate-apply");
    let mut all = BTreeSet::new();
    for node in ["n1", "n2"] {
        let call = Call::put(format!("/v1/nodes/default/{node}"));
        client
            .send(call.json(&json!({"realm": "default", "name": node})).unwrap().within(LONG))
            .await
            .unwrap();
        let call = Call::post("/v1/host-policies/static-ip/render").json(&json!({"node": node})).unwrap();
        let rendered: RenderedHostPolicy = client.call(call.within(LONG)).await.unwrap();
        assert!(rendered.capture.is_empty(), "{rendered:?}");
        let room = Room::make();
        std::fs::write(room.path("/run/state.yml"), rendered.desired_state.to_string()).unwrap();
        room.run(&["sh", "-c", &format!("{} apply < /run/state.yml", program.display())]);
        for interface in &rendered.interfaces {
            let wanted = interface.addresses[0].address.to_string();
            let shown = room.run(&["ip", "-j", "address", "show", "dev", interface.name.as_str()]);
            let shown: Value = serde_json::from_str(&shown).unwrap();
            let has = shown[0]["addr_info"].as_array().unwrap().iter().any(|one| {
                wanted == format!("{}/{}", one["local"].as_str().unwrap_or_default(), one["prefixlen"])
            });
            assert!(has, "{wanted}: {shown}");
            assert!(all.insert(wanted), "two nodes have one address");
        }
    }
    assert_eq!(all.len(), 4);
}
