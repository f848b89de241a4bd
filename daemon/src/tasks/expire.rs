//! Lets log time pass where nobody asks for anything, so that what has cooled is shown as free. `apply` does the
//! same with every command; this only keeps a quiet cluster honest.

use ipam_raft::machine::Action;
use ipam_raft::node::Node;

/// Proposes that time has passed, if something waits for that; false if that came to nothing.
pub(super) async fn run(node: &Node) -> bool {
    node.stale().0.next_expiry_ms().is_none() || super::propose(node, "expire", Action::Expire).await
}
