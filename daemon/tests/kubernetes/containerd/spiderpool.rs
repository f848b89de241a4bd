//! Pods with the annotations of Spiderpool's documentation, unchanged.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;

use serde_json::{Value, json};
use test_apiserver::ApiServer;

use super::kubelet::{Answer, Pod};
use super::node::{Node, POD_ANNOTATIONS, bridge, ipam};
use crate::support::ask::{get, put};
use crate::support::live::{Addresses, settled};
use crate::support::{Cluster, until};

/// `docs/reference/annotation.md` of Spiderpool: `ippool`, `ippools` and `routes`.
const IPPOOL: &str = r#"{
  "ipv4": ["demo-v4-ippool1"],
  "ipv6": ["demo-v6-ippool1", "demo-v6-ippool2"]
}"#;
const IPPOOLS: &str = r#"[{
    "interface": "eth0",
    "ipv4": ["demo-v4-ippool1"],
    "ipv6": ["demo-v6-ippool1"],
    "cleangateway": true
 },{
    "interface": "net1",
    "ipv4": ["demo-v4-ippool2"],
    "ipv6": ["demo-v6-ippool2"],
    "cleangateway": false
}]"#;
const ROUTES: &str = r#"[{
    "dst": "10.0.0.0/16",
    "gw": "192.168.1.1"
},{
    "dst": "172.10.40.0/24",
    "gw": "172.18.40.1"
}]"#;
const SUBNET: &str = r#"{
  "ipv4": ["demo-v4-subnet1"],
  "ipv6": ["demo-v6-subnet1"]
}"#;

const NODE: &str = "node-1";

/// Pools of the documentation, in subnets with the gateways of its routes, and default pools of the node.
async fn make_pools(cluster: &Cluster) {
    for (name, pool, cidr, gateway, range) in [
        ("demo-v4-subnet1", "demo-v4-ippool1", "192.168.1.0/24", "192.168.1.1", "192.168.1.10-192.168.1.19"),
        ("demo-v6-subnet1", "demo-v6-ippool1", "fd00:1::/64", "fd00:1::1", "fd00:1::10-fd00:1::19"),
        ("demo-v4-subnet2", "demo-v4-ippool2", "172.18.40.0/24", "172.18.40.1", "172.18.40.10-172.18.40.19"),
        ("demo-v6-subnet2", "demo-v6-ippool2", "fd00:2::/64", "fd00:2::1", "fd00:2::10-fd00:2::19"),
        ("other", "other", "10.5.0.0/24", "10.5.0.1", "10.5.0.10-10.5.0.19"),
    ] {
        let subnet = json!({"name": name, "cidr": cidr, "gateway": gateway, "automatic": {}});
        put(&cluster.ask(), "subnets", subnet).await;
        // The second pools are those of one Multus network, by the name that a multusName has.
        let attachments = if pool.ends_with('2') { json!(["kube-system/macvlan-fabric"]) } else { json!([]) };
        let pool = json!({
            "name": pool, "subnet": name, "ranges": [range], "cooling_ms": 0,
            "network_attachments": attachments,
        });
        put(&cluster.ask(), "pools", pool).await;
    }
}

/// Plugin that puts pods on a bridge, and on further networks as Multus does.
fn multus() -> Value {
    let mut default = bridge(ipam(NODE, json!({"ipv4_pools": ["other"]})));
    default["name"] = json!("lan");
    json!({
        "type": "multus-stand-in", "capabilities": {POD_ANNOTATIONS: true},
        "delegate": default, "networks": "/opt/networks", "cache": "/var/lib/multus",
    })
}

/// A node with these networks, whose agent has further settings.
async fn node(cluster: &Cluster, more: &str) -> Node {
    let node = Node::make(NODE, &cluster.urls(), multus(), |root| {
        networks(root);
        let mut config = File::options().append(true).open(root.join("opt/agent.toml")).unwrap();
        config.write_all(more.as_bytes()).unwrap();
    })
    .await;
    for words in [
        "link add uplink type veth peer name switch",
        "address add 172.18.40.2/24 dev uplink",
        "link set uplink up",
        "link set switch up",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        node.machine.run(&[&["ip"], &words[..]].concat());
    }
    node
}

/// Networks that a pod can name. Multus passes no annotations on to their plugins.
fn networks(root: &Path) {
    fs::create_dir_all(root.join("opt/networks")).unwrap();
    for (name, more) in [
        ("macvlan-fabric", json!({})),
        ("sriov", json!({"match_master_subnet": true, "ipv4_pools": ["demo-v4-ippool1", "demo-v4-port"]})),
    ] {
        let network = json!({
            "cniVersion": "1.0.0", "name": name, "type": "macvlan", "master": "uplink",
            "ipam": ipam(NODE, more),
        });
        fs::write(root.join(format!("opt/networks/kube-system_{name}.json")), network.to_string()).unwrap();
    }
}

fn parsed(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|text| text.parse().unwrap()).collect()
}

/// Checks the addresses of an interface in a sandbox.
#[track_caller]
fn has(node: &Node, answer: &Answer, interface: &str, addresses: &[&str]) {
    let process = answer.pid.unwrap().to_string();
    assert_eq!(node.machine.configured_on(&process, interface), parsed(addresses), "{interface}");
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Creates the pod in the API server, which gives it a uid.
fn created(api: &ApiServer, pod: Pod, owner: Value) -> Pod {
    let metadata = json!({"name": pod.name, "annotations": pod.annotations, "ownerReferences": owner});
    let object = json!({"metadata": metadata, "spec": {"nodeName": NODE}});
    let object = api.put("/api/v1/namespaces/shop/pods", object);
    Pod { uid: object["metadata"]["uid"].as_str().unwrap().to_owned(), ..pod }
}

/// Creates a controller of the group `apps`; returns the reference to it.
fn controller(
    api: &ApiServer,
    (kind, plural, name): (&str, &str, &str),
    replicas: u32,
    owner: Value,
) -> Value {
    let object = json!({
        "metadata": {"name": name, "ownerReferences": owner}, "spec": {"replicas": replicas},
    });
    let object = api.put(&format!("/apis/apps/v1/namespaces/shop/{plural}"), object);
    let uid = &object["metadata"]["uid"];
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}])
}

/// Waits until the agent's view has these pods.
async fn sees(node: &Node, pods: usize) {
    let doctor = ["/opt/real/ipam-agent", "doctor", "-o", "json", "--config", "/opt/agent.toml"];
    until(&format!("the agent sees {pods} pods"), async || {
        let output = node.machine.command(&doctor).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let checks = report["checks"].as_array().cloned().unwrap_or_default();
        let check = checks.iter().find(|check| check["name"] == "pods").cloned().unwrap_or_default();
        let is_so = check["detail"].as_str().is_some_and(|text| text.starts_with(&format!("{pods} pods,")));
        if is_so { Ok(()) } else { Err(format!("{output:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_2_unchanged_pods_of_spiderpool_get_what_their_annotations_say_without_an_api_server() {
    let (cluster, mut api) = (Cluster::up(3).await, ApiServer::start());
    make_pools(&cluster).await;
    let node = node(&cluster, &format!("[kubernetes]\nserver = {:?}\n", api.url())).await;
    let kubelet = &node.kubelet;
    let one = Pod::new("one", &[("ipam.spidernet.io/ippool", IPPOOL), ("kubernetes.io/other", "x")]);
    let two = Pod::new(
        "two",
        &[
            ("ipam.spidernet.io/ippools", IPPOOLS),
            ("ipam.spidernet.io/routes", ROUTES),
            ("k8s.v1.cni.cncf.io/networks", "kube-system/macvlan-fabric"),
        ],
    );
    let four = Pod::new("four", &[("ipam.spidernet.io/subnet", SUBNET)]);
    let [one, two, three] = [one, two, Pod::new("three", &[])].map(|pod| created(&api, pod, json!([])));
    let deployment = controller(&api, ("Deployment", "deployments", "web"), 2, json!([]));
    let replica_set = controller(&api, ("ReplicaSet", "replicasets", "web-1"), 2, deployment);
    let four = created(&api, four, replica_set);
    sees(&node, 4).await;
    api.stop();
    // Both families, and not the default pool of the node.
    let first = kubelet.create(&one).await;
    assert_eq!(first.addresses, parsed(&["192.168.1.10", "fd00:1::10"]));
    has(&node, &first, "eth0", &["192.168.1.10", "fd00:1::10"]);
    let expected = set(&["default via 192.168.1.1 dev eth0", "default via fd00:1::1 dev eth0"]);
    assert_eq!(node.routes(first.pid.unwrap()), expected);
    // Two interfaces through two plugins. The second one's ADD has no annotations: its addresses were
    // allocated with the first one's.
    let second = kubelet.create(&two).await;
    has(&node, &second, "eth0", &["192.168.1.11", "fd00:1::11"]);
    has(&node, &second, "net1", &["172.18.40.10", "fd00:2::10"]);
    let expected = set(&[
        "10.0.0.0/16 via 192.168.1.1 dev eth0",
        "default via 172.18.40.1 dev net1",
        "172.10.40.0/24 via 172.18.40.1 dev net1",
        "default via fd00:2::1 dev net1",
    ]);
    assert_eq!(node.routes(second.pid.unwrap()), expected);
    // Without annotations the node's configuration counts.
    let third = kubelet.create(&three).await;
    assert_eq!(third.addresses, parsed(&["10.5.0.10"]));
    let live: Addresses = [
        (first.sandbox, parsed(&["192.168.1.10", "fd00:1::10"])),
        (second.sandbox, parsed(&["172.18.40.10", "192.168.1.11", "fd00:1::11", "fd00:2::10"])),
        (third.sandbox, parsed(&["10.5.0.10"])),
    ]
    .into();
    settled(&cluster, &live).await;
    // An automatic pool is that of the pod's application, which no annotation names: the agent has seen it.
    let fourth = kubelet.create(&four).await;
    assert_eq!(fourth.addresses, parsed(&["192.168.1.2", "fd00:1::2"]));
    let pools: Value = get(&cluster.ask(), "/v1/pools?subnet=demo-v4-subnet1").await.unwrap();
    let pools = pools["items"].as_array().unwrap().iter();
    let own: Vec<&Value> = pools.filter(|pool| pool["status"]["application"].is_object()).collect();
    assert_eq!(own.len(), 1);
    assert_eq!(own[0]["ranges"], json!(["192.168.1.2-192.168.1.4"]));
    for pod in [&one, &two, &three, &four] {
        kubelet.delete(pod).await;
    }
    settled(&cluster, &Addresses::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_reach_the_pod_and_a_masters_subnet_limits_the_pools() {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster).await;
    let pool = json!({
        "name": "demo-v4-port", "subnet": "demo-v4-subnet2", "ranges": ["172.18.40.30-172.18.40.39"],
    });
    put(&cluster.ask(), "pools", pool).await;
    let node = node(&cluster, "").await;
    let kubelet = &node.kubelet;
    for (name, annotation, text, says) in [
        // The pool is that of an application, which the plugin does not know.
        ("bare", "subnet", SUBNET, "replicas"),
        ("unknown", "ippool", r#"{"ipv4": ["nowhere"]}"#, "nowhere"),
        ("misspelt", "ippool", r#"{"ip4": ["demo-v4-ippool1"]}"#, "did you mean"),
    ] {
        let annotation = format!("ipam.spidernet.io/{annotation}");
        let refused = kubelet.create_once(&Pod::new(name, &[(&annotation, text)])).await;
        let error = refused.error.expect(name);
        assert!(error.contains(says), "{name}: {error}");
    }
    // The list has a pool of the bridge's subnet first.
    let pod = Pod::new("port", &[("k8s.v1.cni.cncf.io/networks", "kube-system/sriov")]);
    let answer = kubelet.create(&pod).await;
    has(&node, &answer, "net1", &["172.18.40.30"]);
    node.machine.run(&["ip", "address", "flush", "dev", "uplink"]);
    let next = Pod::new("portless", &[("k8s.v1.cni.cncf.io/networks", "kube-system/sriov")]);
    let error = kubelet.create_once(&next).await.error.unwrap();
    assert!(error.contains("of the host has no address"), "{error}");
    let held: Value = get(&cluster.ask(), "/v1/allocations").await.unwrap();
    let held: Vec<&str> =
        held["items"].as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap()).collect();
    assert_eq!(held, ["10.5.0.10/24", "172.18.40.30/24"]);
}
