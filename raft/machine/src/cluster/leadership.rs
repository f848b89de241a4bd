//! Leaderships: the number that each entry names, and the time that a new leadership grants to leases.
//!
//! Log time stands still without a quorum, but holders of leases could not renew them either. So no lease and no
//! prefix ends within the grace of a leadership: a holder that is alive renews first.

use crate::state::State;

impl State {
    /// Returns the number of the leadership that the state is in: 0 before the first.
    #[must_use]
    pub fn leadership(&self) -> u64 {
        self.header.leadership
    }

    /// Begins a leadership. Log time stays as it is; entries that name another leadership have no effect from here on.
    pub fn begin_leadership(&mut self, number: u64, grace_ms: u64) {
        self.header.leadership = number;
        self.header.no_lease_ends_before_ms = self.header.log_time_ms.saturating_add(grace_ms);
    }

    /// Returns the log time up to which leases and prefixes have ended: 0 during the grace of a leadership, so that
    /// only prefixes that were released count as ended then.
    pub(crate) fn ended_until_ms(&self) -> u64 {
        let now = self.header.log_time_ms;
        if now < self.header.no_lease_ends_before_ms { 0 } else { now }
    }

    /// Returns the log time at which a lease or prefix ends that isn't renewed.
    pub(crate) fn end_of_lease_ms(&self, until_ms: u64) -> u64 {
        until_ms.max(self.header.no_lease_ends_before_ms)
    }
}
