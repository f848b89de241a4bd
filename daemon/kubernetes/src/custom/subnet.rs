//! Subnets.

use ipam_api::resource::{Subnet, SubnetStatus};
use serde_json::{Value, json};

use super::facts::CustomFacts;
use super::kind::CustomKind;
use super::views::CustomViews;
use crate::mirror::Mirrored;

/// Subnets.
#[derive(Debug)]
pub(crate) struct Subnets;

impl CustomKind for Subnets {
    type Spec = Subnet;
    type Status = SubnetStatus;
    const KIND: &'static str = "Subnet";
    const PLURAL: &'static str = "subnets";

    fn view(views: &mut CustomViews) -> &mut Mirrored<CustomFacts<Subnet>> {
        &mut views.subnets
    }

    fn name(spec: &Subnet) -> &str {
        spec.name.as_str()
    }

    fn manager(spec: &Subnet) -> Option<&str> {
        spec.managed_by.as_deref()
    }

    fn shown(status: &SubnetStatus) -> Value {
        json!({
            "family": status.family, "pools": status.pools, "allocated": status.allocated,
            "counts": status.counts,
        })
    }
}
