//! Backups of real clusters, as an administrator takes and uses them.

mod recovering;
mod restoring;
mod taking;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ipam_api::client::Client;
use serde_json::json;

use crate::support::ask::{allocate, allocate_request, put};

/// Clients that allocate addresses in sequence until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    given: Arc<AtomicUsize>,
    clients: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn on(asking: impl IntoIterator<Item = Client>) -> Self {
        let (stop, given) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let clients = asking.into_iter().enumerate().map(|(number, client)| {
            let (stop, given) = (stop.clone(), given.clone());
            tokio::spawn(async move {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    allocate(&client, &allocate_request(&format!("load-{number}-{round}"), &["web"]))
                        .await
                        .unwrap();
                    given.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let clients = clients.collect();
        Self { stop, given, clients }
    }

    fn given(&self) -> usize {
        self.given.load(Ordering::Relaxed)
    }

    /// Number of all allocated addresses.
    async fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.unwrap();
        }
        self.given.load(Ordering::Relaxed)
    }
}

/// Enlarges the state so that no buffer on the way holds all of it.
async fn fatten(client: &Client) {
    let notes: serde_json::Map<String, serde_json::Value> =
        (0..64).map(|number| (format!("{number}-{}", "k".repeat(240)), json!("v".repeat(250)))).collect();
    for number in 0..200 {
        let name = format!("fat-{number}");
        put(client, "networks", json!({"name": name, "labels": notes, "annotations": notes})).await;
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
