//! Changing a part of a resource that others change and use at the same time.

use ipam_api::Code;
use serde_json::{Value, json};

use super::{read, with_pools};
use crate::support::ask::{allocate, put, refused, wish};
use crate::support::raw::ask;
use ipam_api::client::Call;

/// The second pair of the conventions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_edits_what_somebody_else_has_changed_is_told() {
    let cluster = with_pools(3).await;
    let to = cluster.members[cluster.follower().await].client;
    let etag = read(to, "/v1/pools/web").await.headers["etag"].clone();
    let first = ask(to, "PATCH", "/v1/pools/web", &[("if-match", &etag)], &json!({"cooling_ms": 5})).await;
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(first.json::<Value>()["cooling_ms"], 5);
    assert_ne!(first.headers["etag"], etag);
    let late = ask(to, "PATCH", "/v1/pools/web", &[("if-match", &etag)], &json!({"default": true})).await;
    assert_eq!((late.status, late.problem().code), (412, Code::RevisionMismatch));
    assert_eq!(late.headers["etag"], first.headers["etag"]);
    let context = late.problem().context.unwrap();
    assert_eq!(context.changed_fields, Some(vec!["cooling_ms".to_owned()]));
    assert_eq!(format!("\"{}\"", context.current.unwrap()), first.headers["etag"]);
    assert_eq!(context.changed_by.as_deref(), Some("anonymous"));
    assert!(late.problem().revision.is_some());

    // What was shown and comes back in part says itself what it was made from.
    let meta = first.json::<Value>()["meta"].clone();
    let body = json!({"meta": meta, "description": "x", "status": {"counts": 7}});
    assert_eq!(ask(to, "PATCH", "/v1/pools/web", &[], &body).await.status, 200);
    assert_eq!(ask(to, "PATCH", "/v1/pools/web", &[], &body).await.status, 412);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_is_a_merge_and_is_read_strictly() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let body = json!({"name": "lab", "labels": {"team": "web", "zone": "a"}, "description": "one"});
    put(&cluster.ask(), "networks", body).await;
    let merge = [("content-type", "application/merge-patch+json")];
    let change = json!({"labels": {"zone": null, "tier": "db"}, "description": null});
    let changed = ask(to, "PATCH", "/v1/networks/lab", &merge, &change).await;
    let shown: Value = changed.json();
    assert_eq!(shown["labels"], json!({"team": "web", "tier": "db"}));
    assert_eq!(shown["description"], "");
    for (body, status, code, pointer) in [
        (json!({"name": "other"}), 422, Code::ImmutableField, "/name"),
        (json!({"descripton": "x"}), 400, Code::UnknownField, "/descripton"),
        (json!({"labels": {"team": 7}}), 422, Code::InvalidField, "/labels/team"),
    ] {
        let answer = ask(to, "PATCH", "/v1/networks/lab", &merge, &body).await;
        let problem = answer.problem();
        assert_eq!(
            (answer.status, problem.code, problem.errors[0].pointer.as_str()),
            (status, code, pointer)
        );
    }
    let missing = ask(to, "PATCH", "/v1/networks/lba", &merge, &json!({})).await.problem();
    assert_eq!((missing.code, missing.context.unwrap().similar), (Code::NotFound, vec!["lab".to_owned()]));
    let put = ask(to, "PUT", "/v1/networks/lab", &merge, &json!({"name": "lab"})).await;
    assert_eq!(put.problem().code, Code::UnsupportedMediaType);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_of_different_fields_all_survive() {
    let cluster = with_pools(3).await;
    let mut racers = Vec::new();
    for at in 0..12 {
        let client = cluster.at(at % 3);
        let body = json!({"labels": {format!("k{at}"): "v"}});
        racers.push(tokio::spawn(async move {
            client.send(Call::patch("/v1/pools/web").json(&body).unwrap()).await.unwrap();
        }));
    }
    for racer in racers {
        racer.await.unwrap();
    }
    let pool: Value = read(cluster.members[0].client, "/v1/pools/web").await.json();
    assert_eq!(pool["labels"].as_object().unwrap().len(), 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_pool_can_be_edited_since_its_use_never_moves_its_etag() {
    let cluster = with_pools(3).await;
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let (count, mut counted) = tokio::sync::watch::channel(0_u64);
    let mut users = Vec::new();
    for at in 0..16 {
        let (client, stopping, count) = (cluster.at(at % 3), stopping.clone(), count.clone());
        users.push(tokio::spawn(async move {
            for round in 0.. {
                if *stopping.borrow() {
                    break;
                }
                allocate(&client, &wish(&format!("h{at}-{round}"), &["web", "web6"])).await.unwrap();
                count.send_modify(|count| *count += 2);
            }
        }));
    }
    let to = cluster.members[0].client;
    let mut etag = read(to, "/v1/pools/web").await.headers["etag"].clone();
    for edit in 0..10 {
        let seen = *counted.borrow_and_update();
        counted.wait_for(|count| *count > seen + 100).await.unwrap();
        assert_eq!(read(to, "/v1/pools/web").await.headers["etag"], etag);
        let body = json!({"description": format!("edit {edit}")});
        let edited = ask(to, "PATCH", "/v1/pools/web", &[("if-match", &etag)], &body).await;
        assert_eq!(edited.status, 200, "{edited:?}");
        etag = edited.headers["etag"].clone();
    }
    stop.send(true).unwrap();
    for user in users {
        user.await.unwrap();
    }
    let pool: Value = read(to, "/v1/pools/web").await.json();
    assert_eq!(pool["description"], "edit 9");
    assert_eq!(pool["status"]["counts"]["allocated"].as_u64().unwrap() * 2, *counted.borrow());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_manages_is_changed_by_that_one_only() {
    let cluster = with_pools(1).await;
    let (client, to) = (cluster.ask(), cluster.members[0].client);
    put(&client, "networks", json!({"name": "lab", "managed_by": "argocd/infra"})).await;
    let patch = |path: &str, body: Value| Call::patch(path).json(&body).unwrap();
    let body = json!({"description": "x"});
    refused(client.send(patch("/v1/networks/lab", body.clone())).await, Code::ManagedElsewhere);
    let problem = ask(to, "DELETE", "/v1/networks/lab", &[], &Value::Null).await.problem();
    assert_eq!(problem.context.unwrap().managed_by.as_deref(), Some("argocd/infra"));
    client.send(patch("/v1/networks/lab?manager=argocd/infra", body)).await.unwrap();
    refused(
        client.send(patch("/v1/networks/lab?manager=ansible", json!({"description": "y"}))).await,
        Code::ManagedElsewhere,
    );
    // Who sends the whole names the manager in it.
    put(&client, "networks", json!({"name": "lab", "description": "z", "managed_by": "argocd/infra"})).await;
    client.send(patch("/v1/networks/lab?take_over=true", json!({"managed_by": null}))).await.unwrap();
    client.send(Call::delete("/v1/networks/lab")).await.unwrap();
}
