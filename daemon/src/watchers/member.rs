//! Servers of a watcher on the leader: the API of its own member, with a status among the tasks.

use axum::Router;
use ipam_api::Problem;
use ipam_api::client::{Answer, Call};
use ipam_api::reclaim::Task;
use ipam_kubernetes::Servers;
use ipam_machine::Grant;

use super::news::{News, Reported};
use crate::http::request::LocalServer;
use crate::tasks::Statuses;

/// This member, in one leadership.
#[derive(Debug, Clone)]
pub(super) struct Member(LocalServer);

impl Member {
    /// Member for requests of a principal with these rights.
    pub(super) fn new(router: &Router, principal: &str, grant: Grant, leadership: u64) -> Self {
        Self(LocalServer::new(router.clone(), principal, grant, Some(leadership)))
    }
}

impl Servers for Member {
    async fn send(&self, call: Call) -> Result<Answer, Problem> {
        self.0.send(call).await
    }
}

/// Shows each status as a task, with the number of errors so far.
pub(super) async fn publish<S: Reported>(
    mut news: News<S>,
    statuses: &Statuses,
    shown: impl Fn(&S, u64) -> Task,
) {
    statuses.put(shown(&S::default(), 0));
    while let Some(status) = news.next().await {
        statuses.put(shown(&status, news.errors));
    }
}
