//! Pools.

use ipam_api::resource::{Condition, Pool, PoolStatus};
use serde_json::{Value, json};

use super::facts::CustomFacts;
use super::kind::CustomKind;
use super::views::CustomViews;
use crate::mirror::Mirrored;

/// Pools.
#[derive(Debug)]
pub(crate) struct Pools;

impl CustomKind for Pools {
    type Spec = Pool;
    type Status = PoolStatus;
    const KIND: &'static str = "Pool";
    const PLURAL: &'static str = "pools";
    const DRAINS: bool = true;

    fn view(views: &mut CustomViews) -> &mut Mirrored<CustomFacts<Pool>> {
        &mut views.pools
    }

    fn name(spec: &Pool) -> &str {
        spec.name.as_str()
    }

    fn manager(spec: &Pool) -> Option<&str> {
        spec.managed_by.as_deref()
    }

    /// The network of a pool is that of its subnet.
    fn complete(spec: &mut Pool, present: &Pool) {
        if spec.network.is_none() {
            spec.network.clone_from(&present.network);
        }
    }

    fn is_terminating(spec: &Pool) -> bool {
        spec.terminating
    }

    /// The revision is left out: it changes with every command.
    fn shown(status: &PoolStatus) -> Value {
        json!({
            "family": status.family, "cidr": status.cidr, "counts": status.counts,
            "reserved_while_held": status.reserved_while_held,
        })
    }

    fn conditions(status: &PoolStatus) -> &[Condition] {
        &status.conditions
    }
}
