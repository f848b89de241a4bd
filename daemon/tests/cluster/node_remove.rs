//! `ipamctl node remove`: the addresses of a host end with its node, and nothing else does.

use ipam_api::node_report::Inventory;
use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::cluster::node_agent::heartbeat;
use crate::support::Cluster;
use crate::support::ask::{make_pools, put};
use crate::support::raw::ask;

async fn hold(to: std::net::SocketAddr, endpoint: &str, node: Option<&str>) {
    let parts: Vec<&str> = endpoint.split('/').collect();
    let [kind, realm, namespace, name] = parts.as_slice() else { panic!("{endpoint}") };
    let body = json!({
        "endpoint": {"kind": kind, "realm": realm, "namespace": namespace, "name": name}, "node": node,
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}],
    });
    let held = ask(to, "POST", "/v1/allocations", &[], &body).await;
    assert_eq!(held.status, 201, "{held:?}");
}

async fn attach(to: std::net::SocketAddr, name: &str, node: &str, sticky: bool) {
    let body = json!({
        "endpoint": {"kind": "pod", "namespace": "shop", "name": name}, "node": node, "sticky": sticky,
        "attachment": {"node": node, "config": "lan", "container_id": name, "interface": "eth0"},
        "started": {"boot_id": "boot-1", "at_us": 1000, "start_ticks": 1},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}],
    });
    let attached = ask(to, "POST", "/v1/allocations", &[], &body).await;
    assert_eq!(attached.status, 201, "{attached:?}");
}

async fn holders(to: std::net::SocketAddr) -> Vec<String> {
    let list: Value = ask(to, "GET", "/v1/allocations", &[], &Value::Null).await.json();
    let items = list["items"].as_array().unwrap();
    let text = |item: &Value, field: &str| item["endpoint"][field].as_str().unwrap().to_owned();
    let path = |item| ["kind", "realm", "namespace", "name"].map(|field| text(item, field)).join("/");
    items.iter().map(path).collect()
}

/// The host db-07 with a host policy, pods on it, and namesakes that must stay.
async fn scene() -> Cluster {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    make_pools(&client).await;
    put(&client, "nodes/default", json!({"name": "db-07"})).await;
    let to = cluster.members[0].client;
    hold(to, "host/default/default/db-07", Some("db-07")).await;
    hold(to, "host/default/racks/db-07", None).await;
    for stays in ["host/prod/default/db-07", "host/default/default/db-08", "vm/default/default/db-07"] {
        hold(to, stays, None).await;
    }
    attach(to, "web-0", "db-07", false).await;
    attach(to, "db-0", "db-07", true).await;
    attach(to, "web-1", "db-08", false).await;
    cluster
}

const STAYS: [&str; 5] = [
    "host/prod/default/db-07",
    "host/default/default/db-08",
    "vm/default/default/db-07",
    "pod/default/shop/db-0",
    "pod/default/shop/web-1",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_removal_of_a_node_releases_exactly_what_its_dry_run_shows() {
    let cluster = scene().await;
    let (servers, to) = (cluster.urls(), cluster.members[0].client);
    let before = holders(to).await;

    // Nothing happens without the word.
    let refused = ipamctl(&servers, "node remove db-07").await.ends(1);
    assert!(refused.stderr.contains("4 addresses") && refused.stderr.contains("--release"), "{refused:?}");
    let unconfirmed = ipamctl(&servers, "node remove db-07 --release").await.ends(2);
    assert!(unconfirmed.stderr.contains("--yes"), "{unconfirmed:?}");
    let shown = ipamctl(&servers, "node remove db-07 --release --dry-run").await.ends(0);
    for part in ["host/db-07", "host/racks/db-07", "pod/shop/web-0", "pod/shop/db-0"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    assert!(!shown.stdout.contains("web-1") && !shown.stdout.contains("db-08"), "{shown:?}");
    let report = ipamctl(&servers, "node remove db-07 --release --dry-run -o json").await.ends(0);
    assert_eq!(report.json()["items"].as_array().unwrap().len(), 4, "{report:?}");
    assert_eq!(holders(to).await, before, "nothing was changed");

    // What came after the report is left alone, also a newer allocation of the same endpoint.
    let file = cluster.dir.path().join("db-07.json");
    std::fs::write(&file, &report.stdout).unwrap();
    let released = "/v1/endpoints/host/default/racks/db-07";
    assert_eq!(ask(to, "DELETE", released, &[], &Value::Null).await.status, 200);
    hold(to, "host/default/racks/db-07", None).await;
    let from = format!("node remove db-07 --release --yes --from {}", file.display());
    let other = format!("node remove db-08 --release --yes --from {}", file.display());
    ipamctl(&servers, &other).await.ends(2);
    let done = ipamctl(&servers, &from).await.ends(0);
    assert!(done.stderr.contains("2 addresses released, 2 kept or left alone"), "{done:?}");
    let left = holders(to).await;
    assert!(left.contains(&"host/default/racks/db-07".to_owned()), "{left:?}");
    assert!(!left.contains(&"host/default/default/db-07".to_owned()), "{left:?}");
    assert_eq!(ask(to, "GET", "/v1/nodes/default/db-07", &[], &Value::Null).await.status, 404);

    // A repetition continues with what there is.
    let rest = ipamctl(&servers, "node remove db-07 --release --yes").await.ends(0);
    assert!(rest.stderr.contains("1 address released"), "{rest:?}");
    let mut left = holders(to).await;
    left.sort();
    let mut stays = STAYS.map(str::to_owned).to_vec();
    stays.sort();
    assert_eq!(left, stays);
    let nothing = ipamctl(&servers, "node remove db-07 --release").await.ends(0);
    assert!(nothing.stderr.contains("neither a description nor heartbeats"), "{nothing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_withdraws_what_the_host_waits_for() {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    make_pools(&client).await;
    let only = json!({"name": "one", "cidr": "10.9.0.0/30", "gateway": "10.9.0.1"});
    put(&client, "subnets", only).await;
    put(&client, "pools", json!({"name": "one", "subnet": "one", "cooling_ms": 0})).await;
    let (servers, to) = (cluster.urls(), cluster.members[0].client);
    ipamctl(&servers, "allocate --endpoint host/printer --pool one").await.ends(0);
    ipamctl(&servers, "allocate --endpoint host/db-07 --pool one --wait").await.ends(0);
    let refused = ipamctl(&servers, "node remove db-07").await.ends(1);
    assert!(refused.stderr.contains("1 waiting claim"), "{refused:?}");
    ipamctl(&servers, "node remove db-07 --release --yes").await.ends(0);
    ipamctl(&servers, "release --endpoint host/printer").await.ends(0);
    assert_eq!(holders(to).await, Vec::<String>::new(), "the claim is not served any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_removal_of_a_living_node_warns_and_spares_its_containers() {
    let cluster = scene().await;
    let (servers, to) = (cluster.urls(), cluster.members[0].client);
    let call = heartbeat("db-07", 1, true, &Inventory::default().digest());
    cluster.ask().send(call).await.unwrap();
    let before = holders(to).await;
    let refused = ipamctl(&servers, "node remove db-07 --release --yes").await.ends(1);
    assert!(refused.stderr.contains("stop it first"), "{refused:?}");
    assert_eq!(holders(to).await, before, "also the addresses of the host stay");
    // Without containers the operator decides.
    for pod in ["web-0", "db-0"] {
        let path = format!("/v1/endpoints/pod/default/shop/{pod}");
        assert_eq!(ask(to, "DELETE", &path, &[], &Value::Null).await.status, 200);
    }
    let warned = ipamctl(&servers, "node remove db-07 --release").await.ends(2);
    assert!(warned.stderr.contains("goes on using its addresses"), "{warned:?}");
    ipamctl(&servers, "node remove db-07 --release --yes").await.ends(0);
    assert!(holders(to).await.iter().all(|key| !key.starts_with("host/default/default/db-07")));
}
