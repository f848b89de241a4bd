//! Readiness of the node for ADD, as CNI STATUS reports it.

use ipam_api::problem::{Code, Problem};

use crate::config::StatusPolicy;
use crate::node::Node;

/// Reports whether this node can serve ADD, from what the agent has already observed.
///
/// A lost leader or a full pool is no reason to fail: the runtime would take the whole node out of service.
///
/// # Errors
/// The reason.
pub fn status(node: &Node) -> Result<(), Problem> {
    if !node.journal.is_writable() {
        return Err(Problem::new(Code::JournalUnwritable, "the newest record could not be written"));
    }
    match node.config.status_policy {
        StatusPolicy::Agent => return Ok(()),
        StatusPolicy::Servers => {}
    }
    let silence = node.cluster.silent_for();
    if silence <= node.config.status_grace {
        return Ok(());
    }
    Err(Problem::new(Code::Unreachable, format!("no server has answered for {} s", silence.as_secs())))
}
