//! Host policies: templates, and the addresses of the hosts that they apply to.

use ipam_api::client::{Call, Client};
use ipam_api::host_policy::{HostPolicyReset, RenderedHostPolicy};
use ipam_api::resource::{Allocation, Lifecycle};
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::ask::{allocations, get, put, refused};
use crate::support::{Cluster, LONG};

/// Policy with one interface and one capture for each of these pools.
fn policy(pools: &[&str]) -> Value {
    let capture: serde_json::Map<_, _> =
        pools.iter().map(|pool| (format!("of-{pool}"), json!(format!("ippool.{pool}.allocate")))).collect();
    let interfaces = (1..).zip(pools).map(|(number, pool)| {
        json!({
            "name": format!("eth{number}"), "type": "ethernet", "state": "up",
            "ipv4": {"enabled": true, "dhcp": false, "address": [{
                "ip": format!("{{{{ capture.of-{pool}.ip }}}}"),
                "prefix-length": format!("{{{{ capture.of-{pool}.prefix-length }}}}"),
            }]},
        })
    });
    json!({
        "name": "static-ip", "node_selector": "rack=r1", "capture": capture,
        "desired_state": {"interfaces": interfaces.collect::<Vec<_>>()},
    })
}

/// Two pools of 4 addresses without cooling, three nodes of the rack, and another node.
async fn world() -> Cluster {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    for (pool, cidr) in [("traffic-1", "10.10.10.0/24"), ("traffic-2", "10.10.11.0/24")] {
        put(&client, "subnets", json!({"name": pool, "cidr": cidr})).await;
        let prefix = cidr.trim_end_matches("0/24");
        let ranges = [format!("{prefix}1-{prefix}3")];
        put(&client, "pools", json!({"name": pool, "subnet": pool, "ranges": ranges, "cooling_ms": 0})).await;
    }
    for (node, rack) in [("n1", "r1"), ("n2", "r1"), ("n3", "r1"), ("n4", "r1"), ("other", "r2")] {
        let body = json!({"realm": "default", "name": node, "labels": {"rack": rack}});
        let call = Call::put(format!("/v1/nodes/default/{node}")).json(&body).unwrap();
        client.send(call.within(LONG)).await.unwrap();
    }
    put(&client, "host-policies", policy(&["traffic-1", "traffic-2"])).await;
    cluster
}

async fn render(client: &Client, node: &str) -> Result<RenderedHostPolicy, Problem> {
    let call = Call::post("/v1/host-policies/static-ip/render").json(&json!({"node": node})).unwrap();
    client.call(call.within(LONG)).await
}

async fn reset(client: &Client, body: Value) -> HostPolicyReset {
    let call = Call::post("/v1/host-policies/static-ip/reset").json(&body).unwrap();
    client.call(call.within(LONG)).await.unwrap()
}

async fn delete(client: &Client) {
    client.send(Call::delete("/v1/host-policies/static-ip").within(LONG)).await.unwrap();
}

/// Addresses in the desired state, in the order of its interfaces.
fn addresses(rendered: &RenderedHostPolicy) -> Vec<String> {
    let interfaces = rendered.desired_state["interfaces"].as_array().unwrap();
    let address = |one: &Value| {
        let address = &one["ipv4"]["address"][0];
        format!("{}/{}", address["ip"].as_str().unwrap(), address["prefix-length"].as_u64().unwrap())
    };
    interfaces.iter().map(address).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rendering_allocates_all_interfaces_of_a_node_at_once() {
    let cluster = world().await;
    let client = cluster.ask();
    let call = Call::post("/v1/host-policies/static-ip/render?dry_run=true").json(&json!({"node": "n1"}));
    let tried: RenderedHostPolicy = client.call(call.unwrap().within(LONG)).await.unwrap();
    assert!(allocations(&client).await.is_empty());
    let first = render(&client, "n1").await.unwrap();
    assert_eq!((addresses(&tried), addresses(&first)), (addresses(&first), addresses(&tried)));
    assert_eq!(addresses(&first), ["10.10.10.1/24", "10.10.11.1/24"]);
    assert_eq!(first.endpoint.to_string(), "host/static-ip/n1");
    assert!(first.capture.is_empty() && first.interfaces.len() == 2);
    // A repetition changes nothing.
    let again = render(&client, "n1").await.unwrap();
    assert_eq!((&again.interfaces, again.revision), (&first.interfaces, first.revision));
    let mut body = policy(&["traffic-1", "traffic-2"]);
    body["interfaces"] = json!([{"name": "eth1", "ipv4_pools": ["traffic-1"], "clean_gateway": true}]);
    put(&client, "host-policies", body).await;
    let clean = render(&client, "n1").await.unwrap();
    assert_eq!(addresses(&clean), addresses(&first));
    assert!(clean.interfaces[0].addresses[0].clean_gateway, "{clean:?}");
    let held: Vec<Allocation> = allocations(&client).await;
    assert_eq!(held.len(), 2);
    assert!(held.iter().all(|one| one.lifecycle == Lifecycle::Held && one.node.is_some()), "{held:?}");

    let shown: Value = get(&client, "/v1/host-policies/static-ip").await.unwrap();
    assert_eq!(shown["status"], json!({"nodes": 4, "holding": 1}));
    let detail = refused(render(&client, "other").await, Code::ConflictingFields);
    assert!(detail.contains("labels of node default/other"), "{detail}");
    refused(render(&client, "missing").await, Code::NotFound);
    assert_eq!(allocations(&client).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_pools_releases_what_the_policy_no_longer_names() {
    let cluster = world().await;
    let client = cluster.ask();
    render(&client, "n1").await.unwrap();
    put(&client, "host-policies", policy(&["traffic-2"])).await;
    // Interface eth1 has the other pool now, and eth2 is gone.
    let rendered = render(&client, "n1").await.unwrap();
    assert!(addresses(&rendered)[0].starts_with("10.10.11."), "{rendered:?}");
    let held = allocations(&client).await;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!((held[0].interface.as_str(), held[0].pool.as_str()), ("eth1", "traffic-2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_5_a_new_policy_and_a_larger_pool_keep_the_addresses() {
    let cluster = world().await;
    let client = cluster.ask();
    let before = [render(&client, "n2").await.unwrap(), render(&client, "n1").await.unwrap()];
    delete(&client).await;
    assert_eq!(allocations(&client).await.len(), 4);
    let grown = json!({"name": "traffic-1", "subnet": "traffic-1", "ranges": ["10.10.10.1-10.10.10.200"]});
    put(&client, "pools", grown).await;
    put(&client, "host-policies", policy(&["traffic-1", "traffic-2"])).await;
    // In the other order.
    let after = [render(&client, "n1").await.unwrap(), render(&client, "n2").await.unwrap()];
    assert_eq!(addresses(&after[0]), addresses(&before[1]));
    assert_eq!(addresses(&after[1]), addresses(&before[0]));
    assert_eq!(after[0].interfaces, before[1].interfaces, "the allocations are the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_8_a_reset_releases_one_node_or_all() {
    let cluster = world().await;
    let client = cluster.ask();
    let first = render(&client, "n1").await.unwrap();
    let second = render(&client, "n2").await.unwrap();
    let done = reset(&client, json!({"node": "n1"})).await;
    assert_eq!((done.addresses.len(), done.more), (2, 0));
    assert_eq!(allocations(&client).await.len(), 2);
    // The pools allocate freed addresses last: the node gets others.
    let new = render(&client, "n1").await.unwrap();
    assert_ne!(addresses(&new), addresses(&first));
    assert_eq!(render(&client, "n2").await.unwrap().interfaces, second.interfaces);

    let done = reset(&client, json!({})).await;
    assert_eq!((done.addresses.len(), done.more), (4, 0));
    assert!(allocations(&client).await.is_empty());
    assert_eq!(reset(&client, json!({})).await.addresses.len(), 0);

    render(&client, "n3").await.unwrap();
    let servers = cluster.urls();
    ipamctl(&servers, "host-policy delete static-ip --release --yes").await.ends(0);
    assert!(allocations(&client).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_9_an_exhausted_pool_is_named_and_grows_in_place() {
    let cluster = world().await;
    let client = cluster.ask();
    let small = json!({"name": "traffic-2", "subnet": "traffic-2", "ranges": ["10.10.11.1-10.10.11.2"]});
    put(&client, "pools", small).await;
    let kept = render(&client, "n1").await.unwrap();
    render(&client, "n2").await.unwrap();
    let problem = render(&client, "n3").await.unwrap_err();
    assert_eq!(problem.code, Code::PoolExhausted, "{problem}");
    assert!(problem.detail.contains("host policy static-ip"), "{}", problem.detail);
    assert!(problem.detail.contains("pool traffic-2 has 2 addresses"), "{}", problem.detail);
    assert!(problem.help.contains("Grow the pool in place"), "{}", problem.help);
    // Neither interface has an address.
    assert_eq!(allocations(&client).await.len(), 4);
    let servers = cluster.urls();
    ipamctl(&servers, "pool set traffic-2 --add-range 10.10.11.3-10.10.11.9").await.ends(0);
    assert_eq!(addresses(&render(&client, "n3").await.unwrap()).len(), 2);
    assert_eq!(render(&client, "n1").await.unwrap().interfaces, kept.interfaces);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_are_checked_by_every_write() {
    let cluster = world().await;
    let client = cluster.ask();
    let wrong = json!({"desired_state": {"x": "{{ capture.missing.ip }}"}});
    let call = Call::patch("/v1/host-policies/static-ip").json(&wrong).unwrap();
    let problem = client.send(call.within(LONG)).await.unwrap_err();
    assert_eq!((problem.code, problem.errors[0].pointer.as_str()), (Code::InvalidField, "/desired_state/x"));
    let mut body = policy(&["traffic-1"]);
    body["desired_state"] = json!([]);
    let steps = json!({"steps": [{"method": "PUT", "path": "/v1/host-policies/static-ip", "body": body}]});
    let call = Call::post("/v1/transactions").json(&steps).unwrap();
    let problem = client.send(call.within(LONG)).await.unwrap_err();
    assert_eq!(problem.errors[0].pointer, "/steps/0/body/desired_state");
    body["desired_state"] = json!({});
    body["name"] = json!("default");
    let call = Call::post("/v1/host-policies").json(&body).unwrap();
    refused(client.send(call.within(LONG)).await, Code::InvalidField);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_applies_and_renders_the_proposals_policy() {
    let cluster = world().await;
    let servers = cluster.urls();
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), SEED).unwrap();
    let apply = format!("apply -f {}", file.path().display());
    ipamctl(&servers, &apply).await.ends(0);
    let again = ipamctl(&servers, &apply).await.ends(0);
    assert!(again.stderr.contains("nothing was changed"), "{again:?}");
    let line = "host-policy render static-ip --node n1 -o json";
    let rendered: Value = ipamctl(&servers, line).await.ends(0).json();
    let address = &rendered["desired_state"]["interfaces"][1]["ipv4"]["address"][0];
    assert_eq!(*address, json!({"ip": "10.10.11.1", "prefix-length": 24}));
    let yaml = ipamctl(&servers, "host-policy render static-ip --node n1").await.ends(0);
    assert!(yaml.stdout.contains("ip: \"10.10.11.1\""), "{yaml:?}");
}

/// Policy of the proposal of kubernetes-nmstate, verbatim.
const SEED: &str = r#"apiVersion: nmstate.io/v1
kind: NodeNetworkConfigurationPolicy
metadata:
  name: static-ip
capture:
    address-from-traffic-1: ippool.traffic-1.allocate
    address-from-traffic-2: ippool.traffic-2.allocate
desiredState:
    interfaces:
    - name: eth1
      type: ethernet
      state: up
      ipv4:
        address:
        - ip: "{{ capture.address-from-traffic-1.ip }}"
          prefix-length: "{{ capture.address-from-traffic-1.prefix-length }}"
        dhcp: false
        enabled: true
    - name: eth2
      type: ethernet
      state: up
      ipv4:
        address:
        - ip: "{{ capture.address-from-traffic-2.ip }}"
          prefix-length: "{{ capture.address-from-traffic-2.prefix-length }}"
        dhcp: false
        enabled: true
"#;
