//! Pods with Spiderpool's annotations, unedited, through the real plugin.

use serde_json::{Value, json};

use crate::support::Cluster;
use crate::support::ask::put;
use crate::support::plugin::{Outcome, Plugin, network};
use crate::support::raw::ask;

async fn with_two_subnets() -> Cluster {
    let cluster = Cluster::up(3).await;
    for (name, cidr, gateway) in [("lan", "10.1.0.0/28", "10.1.0.1"), ("fabric", "10.9.0.0/28", "10.9.0.1")] {
        put(
            &cluster.ask(),
            "subnets",
            json!({"name": name, "cidr": cidr, "gateway": gateway, "automatic": {}}),
        )
        .await;
        let ranges = [format!("{}8-{}14", &cidr[..7], &cidr[..7])];
        put(&cluster.ask(), "pools", json!({"name": name, "subnet": name, "ranges": ranges})).await;
    }
    cluster
}

/// One ADD or DEL of an interface of a pod of the Deployment `web` with three replicas.
async fn run(
    cluster: &Cluster,
    verb: &'static str,
    (pod, interface): (&str, &'static str),
    annotations: &[(&str, &str)],
) -> Outcome {
    let mut conf = network(&cluster.urls(), "n1", &["fabric"]);
    conf["name"] = json!(if interface == "eth0" { "lan" } else { "fabric" });
    let annotations = annotations.iter().map(|(key, text)| (format!("ipam.spidernet.io/{key}"), json!(text)));
    let annotations: serde_json::Map<String, Value> = annotations.collect();
    conf["args"] = json!({"cni": {
        "annotations": annotations,
        "controller": {"group": "apps", "kind": "Deployment", "name": "web", "uid": "u1"},
        "replicas": 3,
    }});
    let arguments = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={pod};K8S_POD_UID={pod}");
    Plugin::new(verb, pod, &conf).arguments(&arguments).interface(interface).run().await
}

/// Address and routes of a result.
#[track_caller]
fn result(outcome: &Outcome) -> Vec<String> {
    let result: Value = serde_json::from_str(&outcome.succeeds().stdout).unwrap();
    let list = |key: &str| result[key].as_array().cloned().unwrap_or_default();
    let addresses = list("ips").into_iter().map(|one| one["address"].as_str().unwrap().to_owned());
    let route =
        |one: Value| format!("{} {}", one["dst"].as_str().unwrap(), one["gw"].as_str().unwrap_or("-"));
    addresses.chain(list("routes").into_iter().map(route)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pools_interfaces_and_routes_are_what_the_annotations_say() {
    let cluster = with_two_subnets().await;
    // Before what the node's configuration names.
    let own = [("ippool", r#"{"ipv4": ["lan"]}"#)];
    assert_eq!(
        result(&run(&cluster, "ADD", ("a", "eth0"), &own).await),
        ["10.1.0.8/28", "0.0.0.0/0 10.1.0.1"]
    );
    // All interfaces with the first ADD; `ippools` counts, and not `ippool`.
    let both = [
        (
            "ippools",
            r#"[{"interface": "eth0", "ipv4": ["lan"], "cleangateway": true},
                        {"interface": "net1", "ipv4": ["fabric"]}]"#,
        ),
        ("ippool", r#"{"ipv4": ["fabric"]}"#),
        ("routes", r#"[{"dst": "10.7.0.0/16", "gw": "10.9.0.9"}]"#),
    ];
    assert_eq!(result(&run(&cluster, "ADD", ("b", "eth0"), &both).await), ["10.1.0.9/28"]);
    let net1 = ["10.9.0.8/28", "0.0.0.0/0 10.9.0.1", "10.7.0.0/16 10.9.0.9"];
    assert_eq!(result(&run(&cluster, "ADD", ("b", "net1"), &both).await), net1);
    // An annotation about all interfaces is in each ADD, which has its own interface only.
    let each = [
        ("ippool", r#"{"ipv4": ["lan"]}"#),
        ("default-route-nic", "net1"),
        (
            "routes",
            r#"[{"dst": "10.7.0.0/16", "gw": "10.9.0.9"}, {"dst": "10.6.0.0/16", "gw": "10.1.0.14"}]"#,
        ),
    ];
    let eth0 = ["10.1.0.10/28", "10.6.0.0/16 10.1.0.14"];
    assert_eq!(result(&run(&cluster, "ADD", ("c", "eth0"), &each).await), eth0);
    for verb in ["ADD", "CHECK", "DEL"] {
        run(&cluster, verb, ("c", "eth0"), &each).await.succeeds();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subnet_gives_the_application_a_pool_of_its_own() {
    let cluster = with_two_subnets().await;
    let printed = [("subnet", r#"{"ipv4": ["lan"]}"#)];
    let first = result(&run(&cluster, "ADD", ("web-a", "eth0"), &printed).await);
    assert_eq!(first, ["10.1.0.2/28", "0.0.0.0/0 10.1.0.1"]);
    let pools = async || {
        let to = cluster.members[0].client;
        let page: Value = ask(to, "GET", "/v1/pools?subnet=lan", &[], &Value::Null).await.json();
        let all = page["items"].as_array().unwrap().iter();
        let own = all.filter(|pool| pool["status"]["application"].is_object());
        own.map(|pool| (pool["ranges"].clone(), pool["reclaim"].clone())).collect::<Vec<_>>()
    };
    // One more than the replicas by default.
    assert_eq!(pools().await, [(json!(["10.1.0.2-10.1.0.5"]), json!(true))]);
    let fixed = [printed[0], ("ippool-ip-number", "2"), ("ippool-reclaim", "false")];
    run(&cluster, "ADD", ("web-b", "eth0"), &fixed).await.succeeds();
    assert_eq!(pools().await, [(json!(["10.1.0.2-10.1.0.3"]), json!(false))]);
    assert!(
        run(&cluster, "ADD", ("web-c", "eth0"), &fixed)
            .await
            .fails(101)
            .contains("0 free in auto4-web-eth0-")
    );
    let more = [printed[0], ("ippool-ip-number", "+0")];
    run(&cluster, "ADD", ("web-c", "eth0"), &more).await.succeeds();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_annotation_is_named_in_the_problem() {
    let cluster = with_two_subnets().await;
    let thousand: Vec<String> = (0..1000).map(|at| format!("pool-{at}")).collect();
    let thousand = json!({"ipv4": thousand}).to_string();
    let rows: [(&str, &str, u64, &str); 13] = [
        ("ippool", "web", 7, "ipam.spidernet.io/ippool can't be read"),
        ("ippool", r#"{"ipv4": ["nowhere"]}"#, 102, "nowhere"),
        ("ippool", r#"{"ipv4": ["nowhere-*"]}"#, 102, "nowhere-*"),
        ("ippool", &thousand, 7, "1000"),
        ("ippools", r#"[{"interface": "net1", "ipv4": ["lan"]}]"#, 7, "and eth0 is asked for"),
        ("ippools", r#"[{"ipv4": ["lan"]}, {"interface": "eth0", "ipv4": ["lan"]}]"#, 7, "of some entries"),
        ("subnet", r#"{"ipv4": ["nowhere"]}"#, 102, "subnet nowhere does not exist"),
        ("ippool-ip-number", "-1", 7, "is not a number of addresses"),
        ("ippool-ip-number", "++2", 7, "is not a number of addresses"),
        ("ippool-ip-number", "1e9", 7, "is not a number of addresses"),
        ("ippool-ip-number", "1000000000", 7, "is too many"),
        ("ipools", "x", 2, "did you mean"),
        ("default-ipv4-ippool", "[]", 7, "is said of a namespace"),
    ];
    for (key, text, code, says) in rows {
        let printed = run(&cluster, "ADD", ("x", "eth0"), &[(key, text)]).await.fails(code);
        assert!(printed.contains(says), "{key} {text}: {printed}");
    }
    let to = cluster.members[0].client;
    let held: Value = ask(to, "GET", "/v1/allocations", &[], &Value::Null).await.json();
    assert_eq!(held["items"], json!([]));
    // HTTP clients use the same annotations, and `explain` shows their effect.
    let body = json!({
        "endpoint": {"kind": "host", "name": "h1"},
        "interfaces": [{"name": "ens3"}],
        "annotations": {"ipam.spidernet.io/ippool": "{\"ipv4\": [\"lan\"]}"},
    });
    let explained: Value = ask(to, "POST", "/v1/allocations/explain", &[], &body).await.json();
    assert_eq!(explained["choices"][0]["came_from"], "request", "{explained}");
    let given = ask(to, "POST", "/v1/allocations", &[], &body).await;
    assert_eq!(given.status, 201);
    let mut both = body.clone();
    both["interfaces"][0]["ipv4_pools"] = json!(["fabric"]);
    let problem = ask(to, "POST", "/v1/allocations", &[], &both).await.problem();
    assert_eq!(problem.errors[0].pointer, "/annotations/ipam.spidernet.io~1ippool", "{problem:?}");
}
