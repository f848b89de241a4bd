//! Views of the custom resources.

use ipam_api::resource::{Pool, Reservation, Subnet};

use super::facts::CustomFacts;
use crate::mirror::Mirrored;

/// Views of the custom resources.
#[derive(Debug, Default)]
pub(crate) struct CustomViews {
    pub(crate) subnets: Mirrored<CustomFacts<Subnet>>,
    pub(crate) pools: Mirrored<CustomFacts<Pool>>,
    pub(crate) reservations: Mirrored<CustomFacts<Reservation>>,
}

impl CustomViews {
    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.subnets.listed.len() + self.pools.listed.len() + self.reservations.listed.len()
    }
}
