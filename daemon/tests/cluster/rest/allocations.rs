//! Allocation and release, with responses for programs.

use serde_json::{Value, json};

use super::with_pools;
use crate::support::Cluster;
use crate::support::ask::put;
use crate::support::raw::ask;

/// Two interfaces, both families, one entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_interfaces_get_all_addresses_in_one_step() {
    let cluster = with_pools(3).await;
    let client = cluster.ask();
    put(&client, "subnets", json!({"name": "san", "cidr": "10.9.0.0/24", "gateway": "10.9.0.1"})).await;
    put(&client, "pools", json!({"name": "storage", "subnet": "san"})).await;
    let key = [("idempotency-key", "attach:prod-eu/worker-3/9c1")];
    let body = json!({
        "endpoint": {"kind": "pod", "realm": "prod-eu", "namespace": "web", "name": "frontend-7"},
        "node": "worker-3",
        "interfaces": [
            {"name": "eth0", "ipv4_pools": ["web"], "ipv6_pools": ["web6"]},
            {"name": "net1", "ipv4_pools": ["storage"]},
        ],
    });
    let given = ask(cluster.members[0].client, "POST", "/v1/allocations", &key, &body).await;
    assert_eq!(given.status, 201, "{given:?}");
    let answer: Value = given.json();
    assert_eq!(answer["endpoint"], body["endpoint"]);
    let pools: Vec<Vec<&str>> = answer["interfaces"].as_array().unwrap().iter().map(pools_of).collect();
    assert_eq!(pools, [vec!["web", "web6"], vec!["storage"]]);
    let eth0 = &answer["interfaces"][0]["addresses"][0];
    assert_eq!((&eth0["address"], &eth0["gateway"]), (&json!("10.7.0.2/16"), &json!("10.7.0.1")));
    // Through another member, with the same key: the same response, marked as a repetition.
    let again = ask(cluster.members[2].client, "POST", "/v1/allocations", &key, &body).await;
    assert_eq!((again.status, &again.headers["idempotency-replayed"]), (201, &"true".to_owned()));
    assert_eq!(again.json::<Value>(), answer);
    assert_eq!(again.headers["revision"], given.headers["revision"]);
}

fn pools_of(interface: &Value) -> Vec<&str> {
    let addresses = interface["addresses"].as_array().unwrap();
    addresses.iter().map(|address| address["pool"].as_str().unwrap()).collect()
}

/// The text of a refusal comes from its machine-readable context.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_says_why_each_pool_could_not_give() {
    let cluster = Cluster::up(1).await;
    let (client, to) = (cluster.ask(), cluster.members[0].client);
    put(&client, "subnets", json!({"name": "lan", "cidr": "10.1.0.0/24"})).await;
    let range = |name: &str, range: &str| json!({"name": name, "subnet": "lan", "ranges": [range]});
    put(&client, "pools", range("web", "10.1.0.10-10.1.0.11")).await;
    let off = json!({"name": "off", "subnet": "lan", "ranges": ["10.1.0.20"], "disabled": true});
    put(&client, "pools", off).await;
    let body = |name: &str, pools: &[&str]| {
        json!({
            "endpoint": {"kind": "host", "name": name},
            "interfaces": [{"name": "eth0", "ipv4_pools": pools}],
        })
    };
    let allocate =
        async |name: &str| ask(to, "POST", "/v1/allocations", &[], &body(name, &["web", "off"])).await;
    assert_eq!(allocate("a").await.status, 201);
    assert_eq!(allocate("b").await.status, 201);
    let refused = allocate("c").await;
    assert_eq!(refused.status, 409);
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    let problem: Value = refused.json();
    assert_eq!(problem["code"], "pool-exhausted");
    let context = &problem["context"];
    assert_eq!((&context["interface"], &context["pools"][0]["pool"]), (&json!("eth0"), &json!("web")));
    assert_eq!(context["pools"][0]["verdict"], "exhausted");
    assert_eq!(
        (&context["pools"][0]["counts"]["allocated"], &context["pools"][0]["counts"]["free"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(
        (&context["pools"][1]["pool"], &context["pools"][1]["verdict"]),
        (&json!("off"), &json!("disabled"))
    );
    assert_eq!(context.get("next_free_ms"), None, "nothing rests");
    // If nothing fits, the same text is used.
    let none = ask(to, "POST", "/v1/allocations", &[], &body("c", &["off"])).await;
    let none: Value = none.json();
    assert_eq!(
        (&none["code"], &none["context"]["pools"][0]["verdict"]),
        (&json!("pool-disabled"), &json!("disabled"))
    );
}

/// A release by an old id doesn't affect a newer holder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_names_the_allocation_that_it_means() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let body = |name: &str| {
        json!({
            "endpoint": {"kind": "host", "name": name},
            "interfaces": [{"name": "eth0", "ipv4_pools": ["web"], "addresses": ["10.7.0.9"]}],
        })
    };
    let first: Value = ask(to, "POST", "/v1/allocations", &[], &body("a")).await.json();
    let path = format!("/v1/allocations/{}", first["interfaces"][0]["addresses"][0]["allocation"]);
    assert_eq!(ask(to, "DELETE", &path, &[], &Value::Null).await.status, 200);
    assert_eq!(ask(to, "POST", "/v1/allocations", &[], &body("b")).await.status, 201);
    let late = ask(to, "DELETE", &path, &[], &Value::Null).await;
    assert_eq!((late.status, late.problem().code), (409, ipam_api::Code::AllocationChanged));
    let known: Value = super::read(to, "/v1/addresses/10.7.0.9").await.json();
    assert_eq!(known["allocation"]["endpoint"]["name"], "b");
}
