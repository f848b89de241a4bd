//! Leader-only tasks. Each is an idempotent function without input; what it does goes through the log.
//!
//! So far there is one: letting log time pass where nobody asks for anything, so that what has cooled is
//! shown as free. `apply` does the same with every command; this only keeps a quiet cluster honest.

use std::time::{Duration, Instant};

use ipam_api::access::Role;
use ipam_raft::machine::command::{Text, Via};
use ipam_raft::machine::{Action, Command, Grant, Origin, Terms};
use ipam_raft::node::Node;

/// How often the leader looks whether something has passed.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a proposal of a task may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the tasks on this member while it leads, until it is aborted.
pub async fn run(node: Node) {
    let mut leadership = node.leadership();
    loop {
        if leadership.wait_for(Option::is_some).await.is_err() {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
        if leadership.borrow().is_some() {
            expire(&node).await;
        }
    }
}

/// Proposes that time has passed, if something waits for that.
async fn expire(node: &Node) {
    let (state, _) = node.stale();
    if state.next_expiry_ms().is_none() {
        return;
    }
    let origin = Origin {
        principal: Text::from("task/expire"),
        via: Via::Task,
        request_id: Text::from(uuid::Uuid::now_v7().simple().to_string()),
        comment: None,
        not_after_ms: None,
    };
    let command = Command { origin, terms: Terms::of(Grant::of(Role::Admin)), action: Action::Expire };
    if let Err(error) = node.propose(command, Instant::now() + PATIENCE).await {
        tracing::debug!(%error, "time could not be let pass; the next round will");
    }
}
