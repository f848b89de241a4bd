//! Watchers over many events, while leaders are killed in turn: each event exactly once, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use ipam_api::client::{Call, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{Cluster, LONG};

const NETWORKS: usize = 1000;
const ROUNDS: usize = 100;
/// Before these rounds the leader is killed.
const KILLS: [usize; 3] = [25, 50, 75];

/// Every network in one step: new in the first round, changed in all others. The same again changes nothing.
fn round(number: usize) -> Value {
    let step = |network: usize| {
        json!({"method": "PUT", "path": format!("/v1/networks/n-{network}"),
               "body": {"name": format!("n-{network}"), "description": format!("round {number}")}})
    };
    json!({"steps": (0..NETWORKS).map(step).collect::<Vec<_>>()})
}

/// Follows until it has seen all events; reports its position.
fn watch(urls: Vec<String>, after: String, seen: Arc<AtomicUsize>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let client = Client::new(&urls).unwrap();
        let mut stream = client.events("/v1/events?kind=network", Some(after), LONG);
        let mut last = (0, 0);
        for number in 0..ROUNDS {
            for network in 0..NETWORKS {
                let event = stream.next().await.unwrap();
                let word = if number == 0 { "network.created" } else { "network.changed" };
                assert_eq!((event.event_type.as_str(), event.object), (word, format!("n-{network}")));
                if number > 0 {
                    assert_eq!(event.changes[0].to, format!("round {number}"));
                }
                assert!((event.revision, event.number) > last, "in order");
                assert_eq!(event.by.via, "http");
                last = (event.revision, event.number);
                seen.fetch_add(1, Relaxed);
            }
        }
        // No event follows the last one.
        assert!(tokio::time::timeout(Duration::from_millis(300), stream.next()).await.is_err());
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sees_every_event_once_and_in_order_through_three_leaders() {
    let mut cluster = Cluster::up(3).await;
    let client = cluster.ask();
    let mut watchers = Vec::new();
    // Each begins at another member, and continues at any.
    for at in 0..3 {
        let mut urls = cluster.urls();
        urls.rotate_left(at);
        let seen = Arc::new(AtomicUsize::new(0));
        watchers.push((watch(urls, "0".to_owned(), seen.clone()), seen));
    }
    for number in 0..ROUNDS {
        let killed = if KILLS.contains(&number) {
            let leader = cluster.leader().await;
            cluster.members[leader].kill();
            Some(leader)
        } else {
            None
        };
        let call = Call::post("/v1/transactions").json(&round(number)).unwrap().repeatable().within(LONG);
        client.send(call).await.unwrap();
        if let Some(leader) = killed {
            cluster.start(leader);
        }
    }
    for (watcher, seen) in watchers {
        let waited = tokio::time::timeout(LONG, watcher).await;
        let seen = seen.load(Relaxed);
        waited.unwrap_or_else(|_| panic!("it saw {seen} of {}", NETWORKS * ROUNDS)).unwrap();
        assert_eq!(seen, NETWORKS * ROUNDS);
    }
}
