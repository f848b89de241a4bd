//! Changing a part of a resource that others change and use at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ipam_api::Code;
use ipam_api::client::{Call, Client};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::{read, with_pools};
use crate::support::ask::{allocate_request, make_pools, put, refused};
use crate::support::raw::ask;
use crate::support::{Cluster, LONG};

/// The second pair of the conventions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_an_older_revision_gets_a_conflict() {
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

    // A partial body that was read before has its own revision.
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

/// Allocations of one transaction of the load. A clock starts 50 transactions, 1,250 allocations, a second.
const BULK: usize = 25;
const EVERY: Duration = Duration::from_millis(20);
/// Allocations that must be acknowledged between two edits: 250 ms at 1,000 a second.
const BETWEEN_EDITS: u64 = 250;
const WINDOW: Duration = Duration::from_millis(250);
const EDITS: u32 = 12;

/// Maximum number of concurrent transactions: the clock waits on a slower machine.
const UNDER_WAY_MAX: usize = 10;

/// Starts transactions by the clock, regardless of running ones, until it is stopped. All must succeed;
/// `acknowledged` counts their allocations.
fn load(cluster: &Cluster, stop: watch::Receiver<bool>, acknowledged: watch::Sender<u64>) -> JoinHandle<()> {
    let clients: Vec<Arc<Client>> = (0..3).map(|at| Arc::new(cluster.at(at))).collect();
    tokio::spawn(async move {
        let mut clock = tokio::time::interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let room = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        let mut started = JoinSet::new();
        for (number, client) in clients.iter().cycle().enumerate() {
            clock.tick().await;
            if *stop.borrow() {
                break;
            }
            let step = |one: usize| {
                let body = allocate_request(&format!("h{number}-{one}"), &["web6"]);
                json!({"method": "POST", "path": "/v1/allocations", "body": body})
            };
            let steps = json!({"steps": (0..BULK).map(step).collect::<Vec<_>>()});
            let call = Call::post("/v1/transactions").json(&steps).unwrap().repeatable().within(LONG);
            let (client, acknowledged) = (Arc::clone(client), acknowledged.clone());
            let place = Arc::clone(&room).acquire_owned().await.unwrap();
            started.spawn(async move {
                let _place = place;
                client.send(call).await.unwrap();
                acknowledged.send_modify(|count| *count += BULK as u64);
            });
        }
        while let Some(ended) = started.join_next().await {
            ended.unwrap();
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_is_edited_under_a_thousand_allocations_a_second() {
    // A machine that is too busy for heartbeats would elect leaders, and that isn't the question here.
    let cluster = Cluster::calm(3).await;
    make_pools(&cluster.ask()).await;
    let to = cluster.members[cluster.follower().await].client;
    let edit = async |etag: &str, body: &Value| {
        ask(to, "PATCH", "/v1/pools/web6", &[("if-match", etag)], body).await
    };
    let (stop, stopping) = watch::channel(false);
    let (acknowledge, mut acknowledged) = watch::channel(0_u64);
    let load = load(&cluster, stopping, acknowledge);

    let mut etag = read(to, "/v1/pools/web6").await.headers["etag"].clone();
    let mut allocated = 0;
    let mut stale: Option<String> = None;
    let (begun, mut seen) = (Instant::now(), *acknowledged.borrow());
    let at_first = seen;
    for number in 0..EDITS {
        acknowledged.wait_for(|count| *count >= seen + BETWEEN_EDITS).await.unwrap();
        tokio::time::sleep_until((begun + WINDOW * (number + 1)).into()).await;
        seen = *acknowledged.borrow();
        // The counts move, the spec doesn't. A read counts at least what was acknowledged before it.
        let shown = read(to, "/v1/pools/web6").await;
        let count = shown.json::<Value>()["status"]["counts"]["allocated"].as_u64().unwrap();
        assert!(count >= seen.max(allocated), "{count} after {allocated}, {seen} acknowledged");
        assert_eq!(shown.headers["etag"], etag);
        allocated = count;
        let body = json!({"description": format!("edit {number}")});
        if let Some(stale) = &stale {
            let late = edit(stale, &body).await;
            assert_eq!((late.status, late.problem().code), (412, Code::RevisionMismatch));
        }
        let edited = edit(&etag, &body).await;
        assert_eq!(edited.status, 200, "{edited:?}");
        stale = Some(std::mem::replace(&mut etag, edited.headers["etag"].clone()));
    }
    let rate = (*acknowledged.borrow() - at_first) as f64 / begun.elapsed().as_secs_f64();
    stop.send(true).unwrap();
    load.await.unwrap();

    let total = *acknowledged.borrow();
    println!("{EDITS} edits while {rate:.0} allocations a second were acknowledged, {total} in all");
    // Each edit follows as many allocations as its window has at that rate. A slow machine makes the windows
    // longer, which doesn't affect the edits.
    if rate < 1000.0 {
        println!("THIS MACHINE IS TOO SLOW to show 1,000 allocations a second: it was {rate:.0}");
    }
    let pool: Value = read(to, "/v1/pools/web6").await.json();
    assert_eq!(pool["description"], format!("edit {}", EDITS - 1));
    assert_eq!(pool["status"]["counts"]["allocated"], total);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_managed_resource_is_changed_by_its_manager_only() {
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
    // A complete body names the manager itself.
    put(&client, "networks", json!({"name": "lab", "description": "z", "managed_by": "argocd/infra"})).await;
    client.send(patch("/v1/networks/lab?take_over=true", json!({"managed_by": null}))).await.unwrap();
    client.send(Call::delete("/v1/networks/lab")).await.unwrap();
}
