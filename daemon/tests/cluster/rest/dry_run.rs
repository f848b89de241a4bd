//! A dry run changes nothing, and returns the result of the real request.

use ipam_api::Code;
use serde_json::{Value, json};

use super::{read, with_pools};
use crate::support::ask::{addresses, allocate, allocate_request, put};
use crate::support::raw::{Raw, ask};

/// A body without what differs from one time to the next: revisions, ids, times.
fn lasting(answer: &Raw) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.retain(|key, _| {
                    !matches!(
                        key.as_str(),
                        "revision"
                            | "id"
                            | "created_at"
                            | "updated_at"
                            | "since"
                            | "request_id"
                            | "allocation"
                    )
                });
                object.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    if answer.body.is_empty() {
        return Value::Null;
    }
    let mut value: Value = answer.json();
    strip(&mut value);
    value
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_changes_nothing_and_says_what_the_real_thing_says() {
    let cluster = with_pools(3).await;
    let client = cluster.ask();
    put(&client, "networks", json!({"name": "lab", "managed_by": "argocd"})).await;
    let held = allocate(&client, &allocate_request("holder", &["web"])).await.unwrap();
    let id = held.interfaces[0].addresses[0].allocation;
    let host = json!({"endpoint": {"kind": "host", "name": "h1"},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"], "ipv6_pools": ["web6"]}]});
    let key = json!({"node": "n", "config": "lan", "container_id": "c", "interface": "eth0"});
    let release = json!({"attachment": key, "started": {"boot_id": "b", "at_us": 7}});
    let to = cluster.members[cluster.follower().await].client;
    for (method, path, body) in [
        ("POST", "/v1/networks", json!({"name": "new"})),
        ("POST", "/v1/networks", json!({"name": "lab"})),
        ("PUT", "/v1/networks/lab", json!({"name": "lab", "description": "x"})),
        ("PUT", "/v1/networks/lab", json!({"name": "lab", "description": "x", "managed_by": "argocd"})),
        ("PUT", "/v1/subnets/s", json!({"name": "s", "cidr": "10.9.0.0/24"})),
        ("PUT", "/v1/pools/p", json!({"name": "p", "subnet": "s"})),
        ("PATCH", "/v1/pools/web", json!({"description": "patched"})),
        ("PATCH", "/v1/pools/web", json!({"ranges": ["10.7.1.0/24"]})),
        ("POST", "/v1/allocations", host.clone()),
        ("POST", "/v1/attachments/release", release),
        ("DELETE", "/v1/pools/web", Value::Null),
        ("DELETE", "/v1/networks/none", Value::Null),
        ("DELETE", &format!("/v1/allocations/{id}"), Value::Null),
        ("DELETE", "/v1/endpoints/host/default/default/h1", Value::Null),
        ("DELETE", "/v1/pools/web6", Value::Null),
    ] {
        let before = cluster.settled().await;
        let tried = ask(to, method, &format!("{path}?dry_run=true"), &[], &body).await;
        let after = cluster.settled().await;
        // Not the digest: the leader's own entries may move log time meanwhile. Every change raises the
        // revision.
        assert_eq!(after.revision, before.revision, "{method} {path}");
        assert_eq!(tried.headers["dry-run"], "true");
        let done = ask(to, method, path, &[], &body).await;
        assert!(!done.headers.contains_key("dry-run"));
        assert_eq!((tried.status, lasting(&tried)), (done.status, lasting(&done)), "{method} {path}");
        assert_eq!(tried.headers.get("location"), done.headers.get("location"), "{method} {path}");
    }
}

/// The third pair of the conventions: a shrink that would lose what is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shrink_says_who_would_lose_what() {
    let cluster = with_pools(1).await;
    let client = cluster.ask();
    let address = addresses(&allocate(&client, &allocate_request("holder", &["web"])).await.unwrap())[0];
    let to = cluster.members[0].client;
    let body = json!({"ranges": ["10.7.200.0/24"]});
    let tried = ask(to, "PATCH", "/v1/pools/web?dry_run=true", &[], &body).await;
    assert_eq!((tried.status, tried.problem().code), (409, Code::InUse));
    let context = tried.problem().context.unwrap();
    assert_eq!(context.held, Some(1));
    assert_eq!(
        (context.examples[0].address, context.examples[0].endpoint.to_string()),
        (address, "host/holder".to_owned())
    );
    let pool: Value = read(to, "/v1/pools/web").await.json();
    assert_eq!(pool["ranges"], json!([]));
}
