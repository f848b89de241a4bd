//! Counts of addresses by state.

use ipam_api::limits::JSON_INTEGER_MAX;
use serde::{Deserialize, Serialize};

/// Numbers of addresses by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All ranges.
    pub size: u128,
    /// Held by endpoints, or in delegated prefixes.
    pub allocated: u128,
    /// Cooling addresses.
    pub cooling: u128,
    /// Used by a stranger.
    pub quarantined: u128,
    /// Kept by reservations.
    pub reserved: u128,
    /// Excluded, gateway and edges included.
    pub excluded: u128,
    /// Addresses free for allocation.
    pub free: u128,
}

impl Counts {
    /// Both together.
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

/// As JSON carries them: saturated, and saying so.
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
