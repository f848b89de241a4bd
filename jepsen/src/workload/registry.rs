//! Registry of all workloads.

use super::Workload;

/// Returns all workloads, in the order in which `ipam-jepsen list` shows them.
#[must_use]
pub fn all() -> Vec<Box<dyn Workload>> {
    Vec::new()
}
