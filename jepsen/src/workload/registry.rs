//! Registry of all workloads.

use super::Workload;
use super::admin::Admin;
use super::adopted::Adopted;
use super::alloc_any::AllocAny;
use super::alloc_specific::AllocSpecific;
use super::churn::Churn;
use super::cni::Cni;
use super::dual_stack::DualStack;
use super::exhaustion::Exhaustion;
use super::gc_probe::GcProbe;
use super::idempotence::Idempotence;
use super::leases::Leases;
use super::prefixes::Prefixes;
use super::reads::Reads;
use super::sticky::Sticky;
use super::transactions::Transactions;

/// Returns all workloads, in the order in which `ipam-jepsen list` shows them.
#[must_use]
pub fn all() -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(AllocAny),
        Box::new(AllocSpecific),
        Box::new(Churn),
        Box::new(Exhaustion),
        Box::new(Leases),
        Box::new(GcProbe),
        Box::new(Prefixes),
        Box::new(DualStack),
        Box::new(Idempotence),
        Box::new(Cni),
        Box::new(Reads),
        Box::new(Admin),
        Box::new(Transactions),
        Box::new(Sticky),
        Box::new(Adopted),
    ]
}
