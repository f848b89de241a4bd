//! Raises the cluster's level once all members know the next one: the end of a rolling upgrade.

use ipam_machine::Action;

use super::leader::Leader;

/// Proposes the next level, if there is one that all members know; false if that came to nothing.
pub(super) async fn run(leader: &Leader<'_>) -> bool {
    match leader.node.next_level() {
        Some(level) => leader.propose("level", Action::RaiseLevel { level }).await,
        None => true,
    }
}
