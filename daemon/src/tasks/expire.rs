//! Advances log time in an idle cluster, so that cooled addresses are shown as free.
//!
//! Every command expires rows in `apply`; this task only covers a cluster without commands.

use ipam_machine::{Action, Answer};

use super::leader::Leader;
use super::status::Run;
use super::task::Task;

/// Proposes an expiry if a row or a token is due.
pub(super) async fn run(leader: &Leader<'_>) -> Run {
    let state = leader.node.stale().0;
    // All members check tokens against the state's log time, which only a log entry can advance.
    let has_passed = |at_ms| leader.node.log_time_ms().is_some_and(|now_ms| now_ms >= at_ms);
    let is_due = state.next_expiry_ms().is_some() || state.next_token_expiry_ms().is_some_and(has_passed);
    if !is_due {
        return Run::of(true);
    }
    match leader.propose(Task::Expire, Action::Expire).await {
        Some(Answer::Expired { rows }) => Run { is_complete: true, reclaimed: rows },
        answer => Run::of(answer.is_some()),
    }
}
