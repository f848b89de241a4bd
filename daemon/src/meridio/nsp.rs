//! Conduits of Meridio's NSP service, which the leader follows.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use axum::Router;
use ipam_api::limits::MERIDIO_BACKOFF_MS_MIN;
use ipam_api::reclaim::Task;
use ipam_api::time::Timestamp;
use ipam_meridio::{Caller, Followed, Settings, Tls, follow_conduits};
use ipam_raft::node::Node;
use tokio::sync::watch::{Receiver, channel};

use super::certificates::Certificates;
use super::identity::PRINCIPAL;
use super::member::Member;
use crate::tasks::{Statuses, in_each_leadership};

const PURPOSE: &str = "Makes the conduits of Meridio's NSP service those of the trench.";

/// Follows the service, if there is one, in each leadership of this member.
pub(super) async fn run(
    node: &Node,
    router: &Router,
    settings: &Arc<Settings>,
    member: &Member,
    certificates: Option<&Certificates>,
    statuses: &Statuses,
) -> Infallible {
    let Some(nsp) = &settings.nsp else { return pending().await };
    let work = move |leadership| async move {
        let servers = member.of_front_end(router.clone(), settings.realm.clone(), Some(leadership));
        let certificates = certificates.cloned();
        let tls: Tls = Arc::new(move || certificates.as_ref().map(Certificates::of_client));
        let (news, followed) = channel(Followed::default());
        let caller = Caller(PRINCIPAL.into());
        let name = format!("{PRINCIPAL}/{}", settings.trench);
        let follow = follow_conduits(Arc::clone(settings), nsp.clone(), tls, servers, caller, news);
        tokio::join!(follow, publish(name, followed, statuses));
    };
    in_each_leadership(node.leadership(), work).await;
    // Reached only when this member stops.
    pending().await
}

/// Publishes the status of the service among the tasks.
async fn publish(name: String, mut news: Receiver<Followed>, statuses: &Statuses) {
    let since = Timestamp::now();
    let mut applied = None;
    loop {
        let now = news.borrow_and_update().clone();
        if applied.map_or(0, |(count, _)| count) != now.applied {
            applied = Some((now.applied, Timestamp::now()));
        }
        statuses.put(shown(&name, since, &now, applied.map(|(_, at)| at)));
        if news.changed().await.is_err() {
            return;
        }
    }
}

/// Status as a task: each applied list is a run. The interval is the shortest pause between two attempts.
fn shown(name: &str, since: Timestamp, news: &Followed, applied_at: Option<Timestamp>) -> Task {
    Task {
        name: name.to_owned(),
        purpose: PURPOSE.to_owned(),
        interval_ms: MERIDIO_BACKOFF_MS_MIN,
        runs: news.applied,
        failures: news.failures,
        reclaimed: 0,
        started_at: Some(since),
        succeeded_at: applied_at,
        duration_us: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn lists_and_failures_are_shown_as_a_task() {
        let statuses = Statuses::default();
        let (news, followed) = channel(Followed::default());
        let shown = || statuses.shown().into_iter().find(|task| task.name == "meridio/red");
        let until = async |applied: u64, failures: u64| {
            let is_shown = |task: Task| (task.runs, task.failures) == (applied, failures);
            while !shown().is_some_and(is_shown) {
                tokio::task::yield_now().await;
            }
        };
        let changes = async {
            until(0, 0).await;
            assert_eq!(shown().unwrap().succeeded_at, None);
            let refused = Followed { failures: 1, error: Some("refused".to_owned()), ..Followed::default() };
            news.send_replace(refused);
            until(0, 1).await;
            assert_eq!(shown().unwrap().succeeded_at, None);
            news.send_modify(|news| news.applied = 1);
            until(1, 1).await;
            assert!(shown().unwrap().succeeded_at >= shown().unwrap().started_at);
            drop(news);
        };
        let both = async { tokio::join!(publish("meridio/red".to_owned(), followed, &statuses), changes) };
        tokio::time::timeout(Duration::from_secs(10), both).await.unwrap();
    }
}
