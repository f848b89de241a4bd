//! Views of the custom resources.

use std::collections::BTreeMap;

use ipam_api::host_policy::HostPolicy;
use ipam_api::name::ObjectName;
use ipam_api::resource::{Pool, Reservation, Subnet};

use super::facts::CustomFacts;
use crate::host_policies::Rollout;
use crate::mirror::Mirrored;

/// Views of the custom resources.
#[derive(Debug, Default)]
pub(crate) struct CustomViews {
    pub(crate) subnets: Mirrored<CustomFacts<Subnet>>,
    pub(crate) pools: Mirrored<CustomFacts<Pool>>,
    pub(crate) reservations: Mirrored<CustomFacts<Reservation>>,
    pub(crate) host_policies: Mirrored<CustomFacts<HostPolicy>>,
    /// Progress of the host policies.
    pub(crate) rollouts: BTreeMap<ObjectName, Rollout>,
}

impl CustomViews {
    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        let own = self.subnets.listed.len() + self.pools.listed.len() + self.reservations.listed.len();
        own + self.host_policies.listed.len()
    }
}
