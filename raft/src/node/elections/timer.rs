//! The election timer: the length of each wait.
//!
//! The waits follow from settings, measured fsyncs, failed elections and a random number. The wait for a
//! silent leader doesn't depend on the disk, since heartbeats are sent and received without it. Waits for
//! votes depend on the disk, since a vote counts once it is on disk.

use ipam_api::limits::ELECTION_TIMEOUT_MS_MAX;

use super::super::config::Timing;

/// Fsyncs between a request for a vote and the first heartbeat of the new leader.
/// Two at the voter, for a flush under way and for the vote; two at the candidate, for a flush under way and
/// for its own vote.
const FLUSHES: u64 = 4;

/// Settings, and the number of failed elections since a leader was last known.
#[derive(Debug)]
pub(super) struct Timer {
    timing: Timing,
    failures: u32,
}

impl Timer {
    pub(super) fn new(timing: Timing) -> Self {
        Self { timing, failures: 0 }
    }

    /// Counts an election that passed the pre-vote and produced no leader in time.
    pub(super) fn fail(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Resets the number of failures, once a leader is known.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the time limit for votes to reach the disks, given the duration of a flush.
    pub(super) fn timeout_ms(&self, flush_ms: u64) -> u64 {
        let least = self.timing.election_min_ms;
        let needed = flush_ms.saturating_mul(FLUSHES).max(least);
        let backed_off = needed.saturating_mul(1_u64.checked_shl(self.failures).unwrap_or(u64::MAX));
        backed_off.min(ELECTION_TIMEOUT_MS_MAX.max(least))
    }

    /// Returns the wait after a start: zero if this member is the only voter.
    pub(super) fn start_ms(&self, alone: bool, random: u64) -> u64 {
        if alone { 0 } else { below(self.timing.election_min_ms, random) }
    }

    /// Returns the wait after the leader's last message: its lease at the voters and the election timeout.
    /// openraft uses the upper setting as the lease.
    pub(super) fn silence_ms(&self, random: u64) -> u64 {
        self.timing.election_max_ms.saturating_add(self.retry_ms(random))
    }

    /// Returns the wait after the leader closed its connection. If its process lives, it connects again and
    /// sends a heartbeat within two intervals.
    pub(super) fn gone_ms(&self, random: u64) -> u64 {
        let Timing { heartbeat_ms, election_min_ms: least, .. } = self.timing;
        heartbeat_ms.saturating_mul(2).saturating_add(below(least, random))
    }

    /// Wait after a pre-vote without a majority. No disk is involved, and the majority may return at any
    /// time: there is no back-off.
    pub(super) fn retry_ms(&self, random: u64) -> u64 {
        let Timing { election_min_ms: least, election_max_ms: most, .. } = self.timing;
        least.saturating_add(below(most.saturating_sub(least), random))
    }

    /// Returns the wait after a vote for another member, and after a failed election. The random part scales
    /// with the timeout, in the ratio of the settings.
    pub(super) fn vote_ms(&self, flush_ms: u64, random: u64) -> u64 {
        let Timing { election_min_ms: least, election_max_ms: most, .. } = self.timing;
        let timeout_ms = self.timeout_ms(flush_ms);
        let spread_ms = timeout_ms.saturating_mul(most.saturating_sub(least)) / least.max(1);
        timeout_ms.saturating_add(below(spread_ms, random))
    }
}

/// A number below a bound.
fn below(bound: u64, random: u64) -> u64 {
    random % bound.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing =
        Timing { heartbeat_ms: 50, election_min_ms: 150, election_max_ms: 300, lease_grace_ms: 0 };

    fn failed(times: u32) -> Timer {
        let mut timer = Timer::new(TIMING);
        (0..times).for_each(|_| timer.fail());
        timer
    }

    #[test]
    fn a_fast_disk_keeps_the_configured_waits() {
        let timer = Timer::new(TIMING);
        for flush_ms in [0, 1, 37] {
            assert_eq!(timer.timeout_ms(flush_ms), 150);
            assert_eq!((timer.vote_ms(flush_ms, 0), timer.vote_ms(flush_ms, 149)), (150, 299));
        }
        assert_eq!((timer.silence_ms(0), timer.silence_ms(149)), (450, 599));
        assert_eq!((timer.gone_ms(0), timer.gone_ms(149)), (100, 249));
        assert_eq!((timer.retry_ms(0), timer.retry_ms(149), timer.retry_ms(150)), (150, 299, 150));
        assert_eq!((timer.start_ms(false, 149), timer.start_ms(false, 150)), (149, 0));
        assert_eq!(timer.start_ms(true, 149), 0);
    }

    #[test]
    fn the_timeout_follows_the_disk_within_its_bounds() {
        let timer = Timer::new(TIMING);
        assert_eq!(timer.timeout_ms(100), 400);
        assert_eq!(timer.timeout_ms(400), 1_600);
        assert_eq!(timer.timeout_ms(u64::MAX), ELECTION_TIMEOUT_MS_MAX);
        // A configured timeout above the limit stays.
        let patient =
            Timing { election_min_ms: 2 * ELECTION_TIMEOUT_MS_MAX, election_max_ms: u64::MAX, ..TIMING };
        assert_eq!(Timer::new(patient).timeout_ms(u64::MAX), 2 * ELECTION_TIMEOUT_MS_MAX);
        // A silent leader is missed as early as on a fast disk.
        assert_eq!(timer.silence_ms(0), 450);
        assert_eq!(timer.gone_ms(0), 100);
    }

    #[test]
    fn failed_elections_back_off_until_a_leader_is_known() {
        assert_eq!([0, 1, 2, 3].map(|times| failed(times).timeout_ms(100)), [400, 800, 1_600, 3_200]);
        assert_eq!([0, 1, 2].map(|times| failed(times).vote_ms(0, 0)), [150, 300, 600]);
        assert_eq!([64, 1_000].map(|times| failed(times).timeout_ms(0)), [ELECTION_TIMEOUT_MS_MAX; 2]);
        // Nothing but an election that failed counts.
        assert_eq!([0, 5].map(|times| failed(times).retry_ms(0)), [150; 2]);
        let mut timer = failed(3);
        timer.reset();
        assert_eq!(timer.timeout_ms(100), 400);
    }

    #[test]
    fn the_random_part_grows_with_the_timeout() {
        let timer = failed(2);
        let (least, most) = (timer.vote_ms(100, 0), timer.vote_ms(100, 1_599));
        assert_eq!((least, most), (1_600, 3_199));
    }
}
