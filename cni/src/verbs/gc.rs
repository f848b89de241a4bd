//! GC: checks its input, and does nothing.
//!
//! The list is the knowledge of *one* runtime of *one* node; releasing everything else would release the
//! addresses of every other runtime. Only the node's agent, which sees the node's containers itself, can
//! decide; until it accepts the list, leaked addresses are left to reconciliation.

use crate::config::Network;
use crate::fail::Failure;

/// Reports why nothing is released.
///
/// # Errors
/// Code 7 for a malformed list.
pub fn gc(network: &Network) -> Result<Vec<u8>, Failure> {
    let why = match network.valid_attachments()? {
        None => "no list of valid attachments was given; that is no order to free everything".to_owned(),
        Some(valid) => format!(
            "{} valid attachments of {} were given; other attachments of this node are unknown without an \
             agent",
            valid.len(),
            network.name
        ),
    };
    crate::warn(&format!("GC frees nothing: {why}"));
    Ok(Vec::new())
}
