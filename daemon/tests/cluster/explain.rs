//! Explanations of requests: over HTTP and with `ipamctl`, on a real cluster.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::raw::ask;

/// Mock-up of the design: a namespace with three exhausted pools, and IPv6 that is available.
async fn world(servers: &[String]) {
    for line in [
        "subnet create lan --cidr 10.1.0.0/28 --gateway 10.1.0.1",
        "subnet create lan6 --cidr 2001:db8:1::/64",
        "pool create web --subnet lan --range 10.1.0.2 --cooling 1h --strict-cooling",
        "pool create web-b --subnet lan --range 10.1.0.4 --for-nodes zone=b",
        "pool create web-old --subnet lan --range 10.1.0.5 --disabled",
        "pool create common --subnet lan --range 10.1.0.8-10.1.0.9 --default",
        "pool create web6 --subnet lan6",
        "node create worker-3 --label zone=a",
        "namespace create web --ipv4-pool web --ipv4-pool web-* --ipv6-pool web6",
    ] {
        ipamctl(servers, line).await.ends(0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_says_what_came_into_question_and_what_would_help() {
    let cluster = Cluster::up(3).await;
    let servers = cluster.urls();
    world(&servers).await;
    ipamctl(&servers, "allocate --endpoint host/web/h0 --node worker-3").await.ends(0);
    let line = "explain --endpoint pod/web/frontend-7 --node worker-3";
    let printed = ipamctl(&servers, line).await.ends(1);
    for words in [
        "would be refused: pool-exhausted",
        "eth0 IPv4: candidates by the namespace",
        "1  web-b    no match",
        "for nodes with other labels",
        "0 free of 1: 1 held",
        "web-old  pool-disabled  disabled",
        "eth0 IPv6: candidates by the namespace",
        "web6  selected  2001:db8:1::2",
        "ipamctl pool set web --add-range 10.1.0.3",
        "ipamctl pool set web-old --enable",
    ] {
        assert!(printed.stdout.contains(words), "{words}: {}", printed.stdout);
    }
    ipamctl(&servers, "release --endpoint host/web/h0 --yes").await.ends(0);
    let printed = ipamctl(&servers, line).await.ends(1);
    assert!(printed.stdout.contains("would be refused: pool-exhausted"), "{printed:?}");
    let wait = printed.stdout.lines().find(|line| line.contains("wait about")).unwrap_or_default();
    assert!(wait.contains("the cooling of an address of web ends then"), "{printed:?}");
    // What helps, helps.
    ipamctl(&servers, "pool set web-old --enable").await.ends(0);
    let printed = ipamctl(&servers, line).await.ends(0);
    assert!(printed.stdout.contains("would allocate: eth0 10.1.0.5/28 from pool web-old"), "{printed:?}");
    let given = ipamctl(&servers, "allocate --endpoint pod/web/frontend-7 --node worker-3").await.ends(0);
    assert!(given.stdout.contains("10.1.0.5/28"), "{given:?}");
    let printed = ipamctl(&servers, line).await.ends(0);
    assert!(printed.stdout.contains("already allocated: eth0 10.1.0.5/28"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explaining_changes_nothing_and_is_for_all_who_may_read() {
    let cluster = Cluster::up(3).await;
    world(&cluster.urls()).await;
    let body = json!({"endpoint": {"kind": "pod", "namespace": "shop", "name": "s0"},
                      "interfaces": [{"name": "eth0"}, {"name": "eth1"}, {"name": "eth2"}]});
    let mut seen = Vec::new();
    for member in &cluster.members {
        let answer = ask(member.client, "POST", "/v1/allocations/explain", &[], &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let shown: Value = answer.json();
        assert_eq!(
            (&shown["outcome"], &shown["problem"]["code"]),
            (&json!("refused"), &json!("pool-exhausted"))
        );
        let given: Vec<&Value> =
            shown["choices"].as_array().unwrap().iter().map(|choice| &choice["address"]).collect();
        assert_eq!(given, [&json!("10.1.0.8"), &json!("10.1.0.9"), &Value::Null]);
        seen.push(shown["revision"].as_u64().unwrap());
    }
    assert!(seen.iter().all(|revision| *revision == seen[0]), "it changed something: {seen:?}");
    let to = cluster.members[0].client;
    for (body, status, code) in [
        (json!({"endpoint": {"kind": "pod", "name": "a"}}), 422, "invalid-field"),
        (json!({"endpoint": {"kind": "pod", "name": "a"}, "interfaces": []}), 422, "invalid-field"),
        (
            json!({"endpoint": {"kind": "pod", "name": "a"}, "interfaces": [{"nam": "e"}]}),
            400,
            "unknown-field",
        ),
    ] {
        let refused = ask(to, "POST", "/v1/allocations/explain", &[], &body).await;
        let problem: Value = refused.json();
        assert_eq!((refused.status, problem["code"].as_str().unwrap()), (status, code), "{problem}");
    }
    assert_eq!(ask(to, "GET", "/v1/allocations/explain", &[], &Value::Null).await.status, 405);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn default_pools_for_others_are_counted_by_reason_and_named_on_request() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    for line in [
        "subnet create lan --cidr 10.1.0.0/24",
        "pool create any --subnet lan --range 10.1.0.10 --default",
        "pool create n1-a --subnet lan --range 10.1.0.11 --default --for-node n1",
        "pool create n1-b --subnet lan --range 10.1.0.12 --default --for-node n1",
        "pool create shop --subnet lan --range 10.1.0.13 --default --for-namespace shop",
    ] {
        ipamctl(&servers, line).await.ends(0);
    }
    let line = "explain --endpoint host/web/h0 --node n9";
    let printed = ipamctl(&servers, line).await.ends(0);
    for words in [
        "1  any   selected",
        "2 skipped, for other nodes: n1-a, …",
        "1 skipped, for other namespaces: shop\n",
    ] {
        assert!(printed.stdout.contains(words), "{words}: {}", printed.stdout);
    }
    let printed = ipamctl(&servers, &format!("{line} --all-skipped")).await.ends(0);
    assert!(printed.stdout.contains("2 skipped, for other nodes: n1-a, n1-b\n"), "{}", printed.stdout);
    ipamctl(&servers, "explain pool --all-skipped").await.ends(2);
    let body = json!({"endpoint": {"kind": "host", "name": "h0"}, "interfaces": [{"name": "eth0"}]});
    let to = cluster.members[0].client;
    for (query, names) in [("", 1), ("?all_skipped=false", 1), ("?all_skipped=true", 2)] {
        let path = format!("/v1/allocations/explain{query}");
        let shown: Value = ask(to, "POST", &path, &[], &body).await.json();
        let skipped = &shown["choices"][0]["skipped"][0];
        assert_eq!((&skipped["verdict"], &skipped["count"]), (&json!("no-pool-fits"), &json!(2)), "{shown}");
        assert_eq!(skipped["pools"].as_array().unwrap().len(), names, "{shown}");
    }
    let refused = ask(to, "POST", "/v1/allocations/explain?all=true", &[], &body).await;
    assert_eq!(refused.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pools_off_the_link_of_the_host_are_named() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    for line in [
        "subnet create a --cidr 10.1.0.0/24",
        "subnet create b --cidr 10.2.0.0/24",
        "pool create a --subnet a",
        "pool create b --subnet b",
    ] {
        ipamctl(&servers, line).await.ends(0);
    }
    let request = "--endpoint pod/web/w0 --pool a --pool b --link-address 10.2.0.9";
    let printed = ipamctl(&servers, &format!("explain {request}")).await.ends(0);
    for words in
        ["in a subnet without an address of the host's interface", "would allocate: eth0 10.2.0.1/24"]
    {
        assert!(printed.stdout.contains(words), "{words}: {}", printed.stdout);
    }
    let given = ipamctl(&servers, &format!("allocate {request}")).await.ends(0);
    assert!(given.stdout.contains("10.2.0.1/24"), "{given:?}");
    let many: Vec<String> = (0..65).map(|at| format!("10.1.0.{at}")).collect();
    for (addresses, wait, status, code) in [
        (json!(many), false, 422, "limit-exceeded"),
        (json!(["10.1.0.9"]), true, 422, "conflicting-fields"),
        (json!(["10.1.0.9/24"]), false, 422, "invalid-field"),
    ] {
        let interface = json!({"name": "eth0", "ipv4_pools": ["a"], "link_addresses": addresses});
        let body =
            json!({"endpoint": {"kind": "claim", "name": "c"}, "interfaces": [interface], "wait": wait});
        let refused = ask(cluster.members[0].client, "POST", "/v1/allocations", &[], &body).await;
        let problem: Value = refused.json();
        assert_eq!((refused.status, problem["code"].as_str().unwrap()), (status, code), "{problem}");
    }
}
