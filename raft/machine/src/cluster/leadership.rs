//! Leaderships: the number that each entry names, and the time that a new leadership grants to leases.
//!
//! Log time stands still without a quorum, but holders of leases could not renew them either. So no lease and
//! no prefix ends within the grace of a leadership: a holder that is alive renews first.

use crate::seeded::SeededBug;
use crate::state::State;
use crate::state::id::ReplayId;
use crate::state::row::Replay;

impl State {
    /// Returns the number of the leadership that the state is in: 0 before the first.
    #[must_use]
    pub fn leadership(&self) -> u64 {
        self.header.leadership
    }

    /// Begins a leadership. Log time is unchanged; entries of another leadership have no effect from here on.
    pub fn begin_leadership(&mut self, number: u64, grace_ms: u64) {
        self.header.leadership = number;
        self.header.no_lease_ends_before_ms = self.header.log_time_ms.saturating_add(grace_ms);
        if SeededBug::ForgottenKeys.is_on() {
            let kept: Vec<ReplayId> = self.replays.iter().map(|(id, _)| id).collect();
            kept.into_iter().for_each(|id| drop(self.erase::<Replay>(id)));
        }
    }
}
