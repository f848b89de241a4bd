//! Watchers of Kubernetes clusters: they run on the leader, each with the API of its own member.
//!
//! A new leadership starts them anew: what an earlier one knew of a cluster proves nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::future::{join_all, pending};
use ipam_api::Problem;
use ipam_api::access::Role;
use ipam_api::client::{Answer, Call};
use ipam_api::reclaim::Task;
use ipam_kubernetes::{Servers, Settings, Status, watch};
use ipam_machine::Grant;
use ipam_raft::node::Node;
use tokio::sync::watch::{Receiver, channel};

use super::news::News;
use crate::config::KubernetesSettings;
use crate::http::request::LocalServer;
use crate::tasks::Statuses;

const PURPOSE: &str = "Mirrors nodes and namespaces of a Kubernetes cluster, and reports what is gone in it.";

/// This member, in one leadership.
#[derive(Debug, Clone)]
struct Member(LocalServer);

impl Servers for Member {
    async fn send(&self, call: Call) -> Result<Answer, Problem> {
        self.0.send(call).await
    }
}

/// Runs the watchers of all sections while this member leads, until it is aborted.
pub async fn run(node: Node, router: Router, sections: Vec<KubernetesSettings>, statuses: Arc<Statuses>) {
    let (sections, router, statuses) = (&sections, &router, &*statuses);
    let watchers = move |number| async move {
        let all: Vec<_> = sections.iter().map(|section| one(section, router, number, statuses)).collect();
        join_all(all).await;
    };
    in_each(node.leadership(), watchers).await;
}

/// Does the work once in each leadership of this member; both end together.
async fn in_each<F: Future<Output = ()>>(mut leadership: Receiver<Option<u64>>, work: impl Fn(u64) -> F) {
    while leadership.wait_for(Option::is_some).await.is_ok() {
        let Some(number) = *leadership.borrow() else { continue };
        let work = async {
            work(number).await;
            // Without sections it is done at once, and the leadership goes on.
            pending::<()>().await;
        };
        tokio::select! {
            () = work => {}
            ended = leadership.wait_for(|now| *now != Some(number)) => {
                if ended.is_err() {
                    return;
                }
            }
        }
    }
}

/// Runs one watcher, and publishes its status.
async fn one(section: &KubernetesSettings, router: &Router, leadership: u64, statuses: &Statuses) {
    let KubernetesSettings { realm, kubeconfig, context, scan_interval_ms, verify, custom_resources } =
        section.clone();
    let name = format!("kubernetes/{realm}");
    // All realms share the pools, subnets and reservations that custom resources describe.
    let grant =
        Grant { realms: vec![realm.clone()], allow_shared: custom_resources, ..Grant::of(Role::Admin) };
    let servers = Member(LocalServer::new(router.clone(), &name, grant, leadership));
    let scan_interval = Duration::from_millis(scan_interval_ms);
    let settings = Settings {
        kubeconfig,
        context,
        scan_interval,
        verify,
        custom_resources,
        ..Settings::new(realm.clone())
    };
    let (status, news) = channel(Status::new());
    let publish = publish(News::new(realm, news), &name, scan_interval_ms, statuses);
    tokio::join!(watch(settings, servers, status), publish);
}

async fn publish(mut news: News, name: &str, interval_ms: u64, statuses: &Statuses) {
    statuses.put(shown(name, interval_ms, &Status::new(), 0));
    while let Some(status) = news.next().await {
        statuses.put(shown(name, interval_ms, &status, news.errors));
    }
}

/// Status as a task: a scan is a run, and the last success is the sign of life of the watches.
fn shown(name: &str, interval_ms: u64, status: &Status, errors: u64) -> Task {
    let heard = ["pods", "nodes"].into_iter().filter_map(|plural| status.heard.get(plural).copied());
    Task {
        name: name.to_owned(),
        purpose: PURPOSE.to_owned(),
        interval_ms,
        runs: status.scans,
        failures: errors,
        reclaimed: status.reclaimed,
        started_at: Some(status.since),
        succeeded_at: status.synced.then(|| heard.min().unwrap_or(status.since)),
        duration_us: None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn work_that_is_done_is_not_done_again_in_the_same_leadership() {
        let (leads, leadership) = channel(None);
        let done = RefCell::new(Vec::new());
        let work = |number| {
            done.borrow_mut().push(number);
            ready(())
        };
        let changes = async {
            for now in [Some(3), Some(3), None, Some(5), Some(6)] {
                leads.send_replace(now);
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            drop(leads);
        };
        tokio::join!(in_each(leadership, work), changes);
        assert_eq!(*done.borrow(), [3, 5, 6]);
    }
}
