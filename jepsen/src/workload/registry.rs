//! Registry of all workloads.

use super::Workload;
use super::alloc_any::AllocAny;
use super::alloc_specific::AllocSpecific;

/// Returns all workloads, in the order in which `ipam-jepsen list` shows them.
#[must_use]
pub fn all() -> Vec<Box<dyn Workload>> {
    vec![Box::new(AllocAny), Box::new(AllocSpecific)]
}
