//! Choices of sessions: pace, timeouts, members and idempotency keys.

use std::time::Duration;

use ipam_api::brand::HEADER_IDEMPOTENCY_KEY;
use ipam_api::client::Call;
use tokio::time::Instant;

use super::{At, Phase, Session};

/// Mean pause between two operations of a session of a live run; its rate follows from it.
pub const PACE: Duration = Duration::from_millis(30);
/// Shortest and longest timeout of a request, in milliseconds.
const TIMEOUT_MS: (usize, usize) = (200, 2_000);
/// Time for the releases at the end of a run.
const SETTLE: Duration = Duration::from_secs(6);
/// Share of writes with an `Idempotency-Key`, in percent. Servers remember a limited number of keys.
const KEYED_PERCENT: usize = 25;

impl Session {
    /// Pauses for up to twice the pace of the run.
    pub async fn rest(&mut self) {
        let longest = usize::try_from(2 * self.pace.as_millis()).unwrap_or_default();
        let time = self.random.below(longest + 1);
        self.pause(milliseconds(time)).await;
    }

    /// Time at which the session stops to release its grants, at the end of a run.
    #[must_use]
    pub fn settle_deadline(&self) -> Instant {
        Instant::now() + SETTLE
    }

    /// Returns true while the session may release its grants.
    #[must_use]
    pub fn settles(&self, deadline: Instant) -> bool {
        self.phase() == Phase::Settle && Instant::now() < deadline
    }

    /// Returns true in `percent` of all cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    /// A number of a range, both ends included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.random.below(high.saturating_sub(low) + 1)
    }

    /// One of these choices; none without a choice.
    pub fn one_of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        let at = self.random.below(choices.len());
        choices.get(at).cloned()
    }

    /// Target of a request: all members for half of the requests, one member for the others.
    pub fn any_member(&mut self) -> At {
        if self.chance(50) { At::All } else { At::Member(self.random.below(self.members())) }
    }

    /// Timeout of a request.
    pub fn timeout(&mut self) -> Duration {
        let time = self.between(TIMEOUT_MS.0, TIMEOUT_MS.1);
        milliseconds(time)
    }

    /// An idempotency key for some writes.
    pub fn maybe_key(&mut self) -> Option<String> {
        self.chance(KEYED_PERCENT).then(|| self.new_key())
    }

    /// Gives a request its timeout and its key. Only a request with a key is repeated by the client: without
    /// one, a refusal of the second copy would say nothing about the first.
    pub fn prepared(&mut self, call: Call, key: Option<&str>) -> Call {
        let call = call.within(self.timeout());
        match key {
            Some(key) => match call.clone().header(HEADER_IDEMPOTENCY_KEY, key) {
                Ok(call) => call.repeatable(),
                Err(_) => call,
            },
            None => call,
        }
    }
}

fn milliseconds(number: usize) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap_or_default())
}
