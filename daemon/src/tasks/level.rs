//! Raises the cluster's level once all members support the next one: the end of a rolling upgrade.

use ipam_machine::Action;

use super::leader::Leader;
use super::status::Run;
use super::task::Task;

/// Proposes the next level, if all members support it.
pub(super) async fn run(leader: &Leader<'_>) -> Run {
    match leader.node.next_level() {
        Some(level) => Run::of(leader.propose(Task::Level, Action::RaiseLevel { level }).await.is_some()),
        None => Run::of(true),
    }
}
