//! Several changes in one step: all of them, or none.

use ipam_api::Code;
use serde_json::{Value, json};

use super::{counted, read, with_pools};
use crate::support::ask::{allocate, allocate_request, put};
use crate::support::raw::ask;

const PATH: &str = "/v1/transactions";

/// Eighth pair of the conventions, and every other kind of step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_of_all_kinds_come_about_together() {
    let cluster = with_pools(3).await;
    let client = cluster.ask();
    let to = cluster.members[cluster.follower().await].client;
    let held = allocate(&client, &allocate_request("old", &["web"])).await.unwrap();
    allocate(&client, &allocate_request("older", &["web"])).await.unwrap();
    let id = held.interfaces[0].addresses[0].allocation;
    let etag = read(to, "/v1/pools/web6").await.headers["etag"].trim_matches('"').to_owned();
    let allocate_request = serde_json::to_value(allocate_request("new", &["rack-12"])).unwrap();
    let body = json!({
        "if": [{"path": "/v1/subnets/lan-12", "absent": true}, {"path": "/v1/pools/web6", "revision": etag}],
        "steps": [
            {"method": "PUT", "path": "/v1/subnets/lan-12", "body": {"name": "lan-12", "cidr": "10.12.0.0/24"}},
            {"method": "PUT", "path": "/v1/pools/rack-12", "body": {"name": "rack-12", "subnet": "lan-12"}},
            {"method": "PATCH", "path": "/v1/pools/rack-12", "body": {"labels": {"rack": "12"}}},
            {"method": "PATCH", "path": "/v1/pools/rack-12", "body": {"default": true}},
            {"method": "PATCH", "path": "/v1/pools/web6", "if_match": etag, "body": {"disabled": true}},
            {"method": "PATCH", "path": "/v1/pools/web", "body": {"description": "merged"}},
            {"method": "POST", "path": "/v1/networks", "body": {"name": "lab"}},
            {"method": "POST", "path": "/v1/allocations", "body": allocate_request},
            {"method": "DELETE", "path": format!("/v1/allocations/{id}")},
            {"method": "DELETE", "path": "/v1/endpoints/host/default/default/older"},
            {"method": "DELETE", "path": "/v1/networks/lab"},
        ],
    });
    let before = cluster.settled().await;
    let tried = ask(to, "POST", &format!("{PATH}?dry_run=true"), &[], &body).await;
    assert_eq!((tried.status, cluster.settled().await.revision), (200, before.revision));
    let key = [("idempotency-key", "t1")];
    let done = ask(to, "POST", PATH, &key, &body).await;
    let answer: Value = done.json();
    let statuses = |answer: &Value| -> Vec<u64> {
        answer["results"].as_array().unwrap().iter().map(|one| one["status"].as_u64().unwrap()).collect()
    };
    let expected = [201, 201, 200, 200, 200, 200, 201, 201, 200, 200, 204];
    assert_eq!((done.status, statuses(&answer).as_slice()), (200, expected.as_slice()), "{answer}");
    assert_eq!(statuses(&tried.json()), expected);
    assert_eq!(answer["results"][7]["body"]["interfaces"][0]["addresses"][0]["pool"], "rack-12");
    let pool: Value = read(to, "/v1/pools/rack-12").await.json();
    assert_eq!((&pool["labels"], &pool["default"]), (&json!({"rack": "12"}), &json!(true)));
    assert_eq!(pool["status"]["counts"]["allocated"], 1);
    assert_eq!(read(to, "/v1/pools/web").await.json::<Value>()["status"]["counts"]["allocated"], 0);
    // One entry, and known again by its key.
    let after = cluster.settled().await;
    let again = ask(cluster.members[0].client, "POST", PATH, &key, &body).await;
    assert_eq!(again.headers["idempotency-replayed"], "true", "{again:?}");
    assert_eq!(statuses(&again.json()), expected);
    assert_eq!(cluster.settled().await.revision, after.revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_step_that_is_refused_undoes_all_and_is_named() {
    let cluster = with_pools(1).await;
    let client = cluster.ask();
    let to = cluster.members[0].client;
    put(&client, "networks", json!({"name": "kept", "managed_by": "argocd"})).await;
    allocate(&client, &allocate_request("holder", &["web"])).await.unwrap();
    let good = json!({"method": "POST", "path": "/v1/networks", "body": {"name": "lab"}});
    let step = |method: &str, path: &str, body: Value| json!({"method": method, "path": path, "body": body});
    let before = cluster.settled().await;
    for (bad, status, code, pointer) in [
        (step("PUT", "/v1/pools/p", json!({"name": "p", "subnet": "none"})), 404, Code::NotFound, None),
        (step("PATCH", "/v1/pools/web", json!({"ranges": ["10.7.9.0/24"]})), 409, Code::InUse, None),
        (step("PATCH", "/v1/networks/kept", json!({"description": "x"})), 409, Code::ManagedElsewhere, None),
        (step("PATCH", "/v1/networks/none", json!({})), 404, Code::NotFound, None),
        (
            json!({"method": "DELETE", "path": "/v1/pools/web6", "if_match": "7"}),
            412,
            Code::RevisionMismatch,
            None,
        ),
        (step("POST", "/v1/networks", json!({"name": "lab"})), 409, Code::AlreadyExists, None),
        (
            step("PUT", "/v1/pools/p", json!({"name": "p", "subnet": "web", "ranges": ["x"]})),
            422,
            Code::InvalidField,
            Some("/steps/1/body/ranges/0"),
        ),
        (
            step("PUT", "/v1/pools/p", json!({"name": "q", "subnet": "web"})),
            422,
            Code::ConflictingFields,
            Some("/steps/1/body/name"),
        ),
        (
            step("PATCH", "/v1/pools/web", json!({"rangs": []})),
            400,
            Code::UnknownField,
            Some("/steps/1/body/rangs"),
        ),
        (step("PUT", "/v1/tokens/t", json!({})), 422, Code::InvalidField, Some("/steps/1/path")),
        (step("PUT", "/v1/pools", json!({})), 422, Code::ConflictingFields, Some("/steps/1/method")),
        (
            json!({"method": "PUT", "path": "/v1/networks/x"}),
            422,
            Code::ConflictingFields,
            Some("/steps/1/body"),
        ),
    ] {
        let answer = ask(to, "POST", PATH, &[], &json!({"steps": [good, bad]})).await;
        let problem = answer.problem();
        assert_eq!((answer.status, problem.code), (status, code), "{bad}: {problem:?}");
        assert_eq!(problem.context.as_ref().unwrap().step, Some(1), "{bad}: {problem:?}");
        assert_eq!(problem.errors.first().map(|error| error.pointer.as_str()), pointer, "{bad}: {problem:?}");
        let after = cluster.settled().await;
        assert_eq!(after.revision, before.revision, "{bad}");
    }
    for (body, code) in [
        (json!({"if": [{"path": "/v1/pools/web", "absent": true}], "steps": []}), Code::AlreadyExists),
        (json!({"if": [{"path": "/v1/pools/web", "revision": "7"}], "steps": []}), Code::RevisionMismatch),
        (json!({"if": [{"path": "/v1/pools/web"}], "steps": []}), Code::ConflictingFields),
        (json!({"if": [{"path": "/v1/allocations", "absent": true}], "steps": []}), Code::InvalidField),
        (json!({"steps": vec![good.clone(); 1025]}), Code::LimitExceeded),
        (json!({"step": []}), Code::UnknownField),
        (json!({"steps": [{"method": "GET", "path": "/v1/pools"}]}), Code::InvalidField),
    ] {
        assert_eq!(ask(to, "POST", PATH, &[], &body).await.problem().code, code, "{body:.200}");
    }
    let all = json!({"steps": [good], "if": []});
    assert_eq!(ask(to, "POST", PATH, &[], &all).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_counts_the_same_allocations_as_a_single_request() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let add = |container: &str| {
        json!({
            "endpoint": {"kind": "container", "name": container},
            "attachment": {"node": "n1", "config": "lan", "container_id": container, "interface": "eth0"},
            "started": {"boot_id": "boot-1", "at_us": 1000, "start_ticks": 1},
            "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}, {"name": "net1", "ipv4_pools": ["web"]}],
        })
    };
    let single = ask(to, "POST", "/v1/allocations", &[], &add("c1")).await;
    assert_eq!((single.status, counted(to).await), (201, 1), "{single:?}");
    let step = |body: Value| json!({"method": "POST", "path": "/v1/allocations", "body": body});
    let unattached = serde_json::to_value(allocate_request("h1", &["web"])).unwrap();
    let steps = json!({"steps": [step(unattached), step(add("c2"))]});
    let done = ask(to, "POST", PATH, &[], &steps).await;
    assert_eq!((done.status, counted(to).await), (200, 3), "{done:?}");
    let interfaces = &done.json::<Value>()["results"][1]["body"]["interfaces"];
    assert_eq!(interfaces.as_array().unwrap().len(), 2, "{done:?}");
}

/// The manager comes from all bodies together, or from the parameter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_changes_its_own_in_one_step() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let network = |name: &str, manager: &str, description: &str| {
        let body = json!({"name": name, "managed_by": manager, "description": description});
        json!({"method": "PUT", "path": format!("/v1/networks/{name}"), "body": body})
    };
    let change = async |path: &str, steps: Vec<Value>| {
        ask(to, "POST", path, &[], &json!({ "steps": steps })).await.status
    };
    assert_eq!(change(PATH, vec![network("a", "argocd", "1"), network("b", "argocd", "1")]).await, 200);
    assert_eq!(change(PATH, vec![network("a", "argocd", "2"), network("b", "argocd", "2")]).await, 200);
    assert_eq!(change(PATH, vec![network("a", "argocd", "3"), network("b", "ansible", "3")]).await, 409);
    let gone = json!({"method": "DELETE", "path": "/v1/networks/a"});
    assert_eq!(change(PATH, vec![gone.clone()]).await, 409);
    assert_eq!(change(&format!("{PATH}?manager=argocd"), vec![gone]).await, 200);
    let taken = vec![network("b", "ansible", "3")];
    assert_eq!(change(&format!("{PATH}?take_over=true"), taken).await, 200);
}
