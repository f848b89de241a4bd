//! Registry of all nemeses.

use super::Nemesis;

/// Returns all nemeses, in the order in which `ipam-jepsen list` shows them.
#[must_use]
pub fn all() -> Vec<Box<dyn Nemesis>> {
    Vec::new()
}
