//! Proposals of tasks, bound to the leadership that found them due.

use std::time::Duration;

use ipam_api::access::Role;
use ipam_machine::command::{Text, Via};
use ipam_machine::{Action, Answer, Command, Grant, Origin, Terms};
use ipam_raft::new_id;
use ipam_raft::node::Node;
use tokio::time::Instant;

use super::task::Task;

/// Time limit of a task's proposal.
const PATIENCE: Duration = Duration::from_secs(5);

/// This member in one of its leaderships, as tasks see it.
pub(super) struct Leader<'a> {
    pub(super) node: &'a Node,
    pub(super) leadership: u64,
}

impl Leader<'_> {
    /// Proposes a due action under the leadership in which the task found it; returns the answer to it.
    pub(super) async fn propose(&self, task: Task, action: Action) -> Option<Answer> {
        let task = task.name();
        let origin = Origin {
            principal: Text::given(format!("task/{task}")),
            via: Via::Task,
            request_id: Text::given(new_id().simple().to_string()),
            comment: None,
            not_after_ms: None,
        };
        let command = Command { origin, terms: Terms::of(Grant::of(Role::Admin)), action };
        match self.node.propose_as_leader(self.leadership, command, Instant::now() + PATIENCE).await {
            Ok((Ok(applied), _)) => return Some(applied.answer),
            Ok((Err(refusal), _)) => tracing::warn!(task, detail = refusal.detail(), "a task was refused"),
            Err(error) => tracing::debug!(task, %error, "a task came to nothing; the next round will do it"),
        }
        None
    }
}
