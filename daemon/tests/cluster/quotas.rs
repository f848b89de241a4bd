//! Quotas of namespaces and applications: set with `ipamctl`, met over HTTP and by the plugin, kept.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::{make_pools, put};
use crate::support::plugin::{Outcome, Plugin, network};
use crate::support::raw::{Raw, ask};

async fn add(cluster: &Cluster, pod: &str, application: &str, more: Value) -> Outcome {
    let mut conf = network(&cluster.urls(), "n1", &["web", "web6"]);
    let mut printed = json!({"controller": {"group": "apps", "kind": "Deployment", "name": application}});
    printed.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    conf["args"] = json!({"cni": printed});
    let arguments = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={pod};K8S_POD_UID={pod}");
    Plugin::new("ADD", pod, &conf).arguments(&arguments).run().await
}

async fn delete(cluster: &Cluster, pod: &str) {
    let conf = network(&cluster.urls(), "n1", &[]);
    Plugin::new("DEL", pod, &conf).run().await.succeeds();
}

async fn shop(cluster: &Cluster, at: usize) -> Value {
    let answer =
        ask(cluster.members[at].client, "GET", "/v1/namespaces/default/shop", &[], &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn held(namespace: &Value) -> (u64, u64) {
    let held = &namespace["status"]["held"];
    (held["ipv4"].as_u64().unwrap(), held["ipv6"].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_too_many_is_told_which_quota_is_used_up() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("namespace create shop --quota ipv4=3 --quota-per-application ipv4=2 --quota-of apps/Deployment/big,ipv4=3")
        .await;
    for pod in ["web-1", "web-2"] {
        add(&cluster, pod, "web", json!({})).await.succeeds();
    }
    // A repeated request isn't counted again.
    add(&cluster, "web-1", "web", json!({})).await.succeeds();
    let why = add(&cluster, "web-3", "web", json!({})).await.fails(114);
    assert!(
        why.contains("apps/Deployment/web of namespace shop may have 2 IPv4 addresses and has 2"),
        "{why}"
    );
    add(&cluster, "big-1", "big", json!({})).await.succeeds();
    let why = add(&cluster, "big-2", "big", json!({})).await.fails(114);
    assert!(why.contains("namespace shop may have 3 IPv4 addresses and has 3; this needs 1 more"), "{why}");
    // Only IPv4 is bounded.
    add(&cluster, "big-2", "big", json!({"ipv4_pools": [], "ipv6_pools": ["web6"]})).await.succeeds();
    // The counts are equal on every member, also after a restart of all.
    cluster.kill_all();
    cluster.start_all();
    cluster.ready().await;
    for at in 0..3 {
        assert_eq!(held(&shop(&cluster, at).await), (3, 4));
    }
    let shown = done("namespace show shop").await.stdout;
    assert!(shown.contains("3 of 3 IPv4   4 IPv6"), "{shown}");
    assert!(shown.contains("apps/Deployment/big ipv4=3"), "{shown}");
    let list = done("namespace list").await.stdout;
    assert!(list.contains("3/3"), "{list}");
    delete(&cluster, "web-1").await;
    add(&cluster, "big-3", "big", json!({})).await.succeeds();
    add(&cluster, "web-3", "web", json!({})).await.fails(114);
    let line = "explain --endpoint pod/shop/web-3 --pool web --controller apps/Deployment/web";
    let explained = ipamctl(&servers, line).await.ends(1).stdout;
    assert!(explained.contains("would be refused: quota-exceeded"), "{explained}");
    assert!(explained.contains("what would help\n  Release some of them, or raise quota."), "{explained}");
    done("namespace set shop --quota ipv4=4,ipv6=100").await;
    add(&cluster, "web-3", "web", json!({})).await.succeeds();
    done("namespace set shop --no-quota").await;
    add(&cluster, "web-4", "web", json!({})).await.succeeds();
    let read = shop(&cluster, 0).await;
    assert!(read.get("quota").is_none(), "{read}");
}

async fn allocate(cluster: &Cluster, name: &str, more: Value) -> Raw {
    let mut body = json!({
        "endpoint": {"kind": "claim", "namespace": "shop", "name": name},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}],
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask(cluster.members[0].client, "POST", "/v1/allocations", &[], &body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_are_told_the_numbers_and_who_waits_is_served() {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    put(&cluster.ask(), "subnets", json!({"name": "lan", "cidr": "10.1.0.0/24", "automatic": {}})).await;
    let to = cluster.members[0].client;
    let controller = json!({"kind": "Deployment", "group": "apps", "name": "web"});
    let quota = json!({"per_application": {"ipv4": 1}, "applications": [
        {"group": "apps", "kind": "Deployment", "name": "api", "ipv4": 4},
    ]});
    let printed = json!({"name": "shop", "quota": quota});
    assert_eq!(ask(to, "PUT", "/v1/namespaces/default/shop", &[], &printed).await.status, 201);
    let read = shop(&cluster, 0).await;
    assert_eq!(read["quota"], quota, "it can be sent back as it is");
    assert_eq!(ask(to, "PUT", "/v1/namespaces/default/shop", &[], &read).await.status, 200);
    assert_eq!(allocate(&cluster, "one", json!({"controller": controller})).await.status, 201);
    let refused = allocate(&cluster, "two", json!({"controller": controller})).await;
    assert_eq!(refused.status, 409);
    let body: Value = refused.json();
    assert_eq!((&body["code"], &body["context"]["family"]), (&json!("quota-exceeded"), &json!(4)), "{body}");
    let expected = json!({
        "realm": "default", "namespace": "shop", "application": "apps/Deployment/web",
        "limit": 1, "held": 1, "asked": 1,
    });
    assert_eq!(body["context"]["quota"], expected, "{body}");
    assert!(body["help"].as_str().unwrap().contains("quota.per_application.ipv4"), "{body}");
    let waits = allocate(&cluster, "two", json!({"controller": controller, "wait": true})).await;
    assert_eq!((waits.status, &waits.json::<Value>()["waiting"]["reason"]), (202, &json!("QuotaExceeded")));
    let patch = json!({"quota": {"per_application": {"ipv4": 2}}});
    assert_eq!(ask(to, "PATCH", "/v1/namespaces/default/shop", &[], &patch).await.status, 200);
    let given = allocate(&cluster, "two", json!({"controller": controller, "wait": true})).await;
    assert_eq!((given.status, &given.json::<Value>()["repeated"]), (200, &json!(true)));
    // An automatic pool is limited before its first address is allocated.
    let own = |size: &str| {
        json!({
            "controller": {"group": "apps", "kind": "Deployment", "name": "api"},
            "interfaces": [{"name": "eth0", "subnets": ["lan"]}], "automatic_pool": {"size": size},
        })
    };
    let refused = allocate(&cluster, "api", own("5")).await;
    assert_eq!(refused.json::<Value>()["context"]["quota"]["asked"], 5, "{refused:?}");
    assert_eq!(allocate(&cluster, "api", own("4")).await.status, 201);
    assert_eq!(held(&shop(&cluster, 0).await), (6, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_quotas_are_refused() {
    let cluster = Cluster::up(1).await;
    let to = cluster.members[0].client;
    let one = json!({"kind": "Deployment", "name": "web", "ipv4": 1});
    let many: Vec<Value> =
        (0..257).map(|i| json!({"kind": "Deployment", "name": format!("web-{i}"), "ipv4": 1})).collect();
    for (quota, status, code, says) in [
        (json!({"ipv4": -1}), 422, "invalid-field", "-1"),
        (json!({"ipv4": "5"}), 422, "invalid-field", "expected"),
        (json!({"ipv6": 1_u64 << 53}), 422, "invalid-field", "exceeds 9007199254740991"),
        (json!({"per_application": {"ipv4": u64::MAX}}), 422, "invalid-field", "exceeds 9007199254740991"),
        (json!({"ipv5": 1}), 400, "unknown-field", "ipv5"),
        (json!({"per_application": {"ip": 1}}), 400, "unknown-field", "ip"),
        (json!({"applications": [one, one]}), 422, "conflicting-fields", "two quotas"),
        (json!({"applications": [{"kind": "", "name": "web", "ipv4": 1}]}), 422, "invalid-field", "kind"),
        (
            json!({"applications": [{"kind": "Deployment", "name": "web"}]}),
            422,
            "conflicting-fields",
            "has no limit",
        ),
        (json!({"applications": many}), 422, "limit-exceeded", "256"),
    ] {
        let printed = json!({"name": "shop", "quota": quota});
        let refused = ask(to, "PUT", "/v1/namespaces/default/shop", &[], &printed).await;
        let problem = refused.problem();
        assert_eq!((refused.status, problem.code.to_string().as_str()), (status, code), "{problem:?}");
        let told = format!("{} {:?}", problem.detail, problem.errors);
        assert!(told.contains(says), "{told}");
    }
    let servers = cluster.urls();
    for line in [
        "namespace create shop --quota 5",
        "namespace create shop --quota ipv4=-1",
        "namespace create shop --quota-of apps/Deployment/web",
        "namespace create shop --quota-of web,ipv4=1",
        "namespace set shop --no-quota --quota ipv4=1",
    ] {
        ipamctl(&servers, line).await.ends(2);
    }
}
