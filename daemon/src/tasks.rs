//! Leader-only tasks. Each is an idempotent function without input, in a file of its own; what it does goes
//! through the log, and none repeats anything itself: the next round will.

mod expire;
pub mod journal;
mod level;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ipam_api::access::Role;
use ipam_raft::machine::command::{Text, Via};
use ipam_raft::machine::{Action, Command, Grant, Origin, Terms};
use ipam_raft::node::Node;

use journal::JournalLimits;

use crate::metrics::Metrics;

/// How often the leader looks whether there is something to do.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a proposal of a task may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the tasks on this member while it leads, until it is aborted.
pub async fn run(node: Node, journal: JournalLimits, metrics: Arc<Metrics>) {
    let mut leadership = node.leadership();
    loop {
        if leadership.wait_for(Option::is_some).await.is_err() {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
        let number = *leadership.borrow();
        if let Some(number) = number {
            let leader = Leader { node: &node, leadership: number };
            for (task, done) in [
                ("expire", expire::run(&leader).await),
                ("journal", journal::run(&leader, journal).await),
                ("level", level::run(&leader).await),
            ] {
                if done {
                    metrics.succeeded(task);
                }
            }
        }
    }
}

/// This member in one of its leaderships, as tasks see it.
struct Leader<'a> {
    node: &'a Node,
    leadership: u64,
}

impl Leader<'_> {
    /// Proposes a due action under the leadership in which the task found it; returns true if it was done.
    async fn propose(&self, task: &str, action: Action) -> bool {
        let origin = Origin {
            principal: Text::given(format!("task/{task}")),
            via: Via::Task,
            request_id: Text::given(uuid::Uuid::now_v7().simple().to_string()),
            comment: None,
            not_after_ms: None,
        };
        let command = Command { origin, terms: Terms::of(Grant::of(Role::Admin)), action };
        match self.node.propose_as_leader(self.leadership, command, Instant::now() + PATIENCE).await {
            Ok(Ok(_)) => return true,
            Ok(Err(refusal)) => tracing::warn!(task, detail = refusal.detail(), "a task was refused"),
            Err(error) => tracing::debug!(task, %error, "a task came to nothing; the next round will do it"),
        }
        false
    }
}
