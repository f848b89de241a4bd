//! Raises the cluster's level once all members know the next one: the end of a rolling upgrade.

use ipam_raft::machine::Action;
use ipam_raft::node::Node;

/// Proposes the next level, if there is one that all members know; false if that came to nothing.
pub(super) async fn run(node: &Node) -> bool {
    match node.next_level() {
        Some(level) => super::propose(node, "level", Action::RaiseLevel { level }).await,
        None => true,
    }
}
