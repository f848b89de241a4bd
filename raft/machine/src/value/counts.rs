//! Counts of addresses by state.

use ipam_api::limits::JSON_INTEGER_MAX;
use serde::{Deserialize, Serialize};

/// Numbers of addresses by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Addresses of all ranges.
    pub size: u128,
    /// Addresses held by endpoints, or in delegated prefixes.
    pub allocated: u128,
    /// Cooling addresses.
    pub cooling: u128,
    /// Addresses that foreign hosts use.
    pub quarantined: u128,
    /// Addresses that reservations cover.
    pub reserved: u128,
    /// Excluded addresses, including gateways and edges.
    pub excluded: u128,
    /// Addresses free for allocation.
    pub free: u128,
}

impl Counts {
    /// Adds the counts of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            size: self.size.saturating_add(other.size),
            allocated: self.allocated.saturating_add(other.allocated),
            cooling: self.cooling.saturating_add(other.cooling),
            quarantined: self.quarantined.saturating_add(other.quarantined),
            reserved: self.reserved.saturating_add(other.reserved),
            excluded: self.excluded.saturating_add(other.excluded),
            free: self.free.saturating_add(other.free),
        }
    }
}

/// Counts in the form of JSON: saturated, with a flag.
impl From<Counts> for ipam_api::resource::Counts {
    fn from(counts: Counts) -> Self {
        let mut saturated = false;
        let mut cut = |count: u128| {
            saturated |= count > JSON_INTEGER_MAX.into();
            u64::try_from(count).unwrap_or(u64::MAX).min(JSON_INTEGER_MAX)
        };
        let Counts { size, allocated, cooling, quarantined, reserved, excluded, free } = counts;
        let mut shown = Self {
            size: cut(size),
            allocated: cut(allocated),
            cooling: cut(cooling),
            quarantined: cut(quarantined),
            reserved: cut(reserved),
            excluded: cut(excluded),
            free: cut(free),
            saturated: false,
        };
        shown.saturated = saturated;
        shown
    }
}
