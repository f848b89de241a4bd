//! Responses kept for repetitions: a repeated request with the same key gets the same response. It changes
//! nothing.
//!
//! Time (log time), number and bytes are limited for each principal and in total; responses are dropped in
//! the order of the log. Above the total limit the principal with the most bytes loses its oldest response,
//! so a principal with few responses keeps them.

use crate::apply::step::Step;
use crate::broken::broken;
use crate::command::{Applied, Cause, Idempotency, Outcome, Refusal, Text};
use crate::invariant::COUNT;
use crate::state::State;
use crate::state::id::Id;
use crate::state::key::ReplayUsage;
use crate::state::row::Replay;
use ipam_api::limits::{
    IDEMPOTENCY_KEYS_MAX, IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX, IDEMPOTENCY_TTL_MS, REPLAY_BYTES_MAX,
    REPLAY_BYTES_PER_PRINCIPAL_MAX,
};

impl ReplayUsage {
    fn is_within(self, keys_max: usize, bytes_max: usize) -> bool {
        self.keys <= keys_max && self.bytes <= bytes_max as u64
    }
}

impl State {
    /// Returns the kept answer to a repeated request, if any.
    #[must_use]
    pub fn replayed(&self, principal: &Text, asked: &Idempotency) -> Option<Outcome> {
        let id = self.index.replays.get(&(Text::clone(principal), Text::clone(&asked.key)))?;
        let row = self.replays.named(*id);
        if row.request != asked.request {
            return Some(Err(Cause::KeyReused.into()));
        }
        Some(match row.outcome.clone() {
            Ok(applied) => Ok(Applied { replayed: true, ..applied }),
            Err(refusal) => Err(Refusal { replayed: true, ..refusal }),
        })
    }

    /// Kept answers of a principal.
    #[must_use]
    pub fn replay_usage_of(&self, principal: &str) -> ReplayUsage {
        self.index.replay_usage.get(principal).copied().unwrap_or_default()
    }

    /// Kept answers in all.
    #[must_use]
    pub fn replay_usage(&self) -> ReplayUsage {
        ReplayUsage { keys: self.replays.len(), bytes: self.index.replay_bytes }
    }

    /// Drops kept answers beyond the bounds after one more answer of a principal.
    fn bound_replays(&mut self, principal: &Text) {
        let (keys_max, bytes_max) = (IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX, REPLAY_BYTES_PER_PRINCIPAL_MAX);
        while !self.replay_usage_of(principal).is_within(keys_max, bytes_max) {
            self.forget_oldest_replay(principal);
        }
        while !self.replay_usage().is_within(IDEMPOTENCY_KEYS_MAX, REPLAY_BYTES_MAX) {
            let Some((_, largest)) = self.index.replay_bytes_of.last().cloned() else {
                broken(COUNT, "kept answers of no principal")
            };
            self.forget_oldest_replay(&largest);
        }
    }

    fn forget_oldest_replay(&mut self, principal: &Text) {
        let all = (Text::clone(principal), Id::MIN)..=(Text::clone(principal), Id::MAX);
        match self.index.replays_of.range(all).next().map(|(_, id)| *id) {
            Some(oldest) => drop(self.erase_named::<Replay>(oldest)),
            None => broken(COUNT, format!("kept answers of {principal}")),
        }
    }
}

#[cfg(feature = "testing")]
impl State {
    /// Test access: keeps an answer above the row limit, as a defect would. Returns the row's id.
    pub fn spoil_with_answer(&mut self, bytes: usize) -> crate::state::id::ReplayId {
        let answer = crate::command::Answer::Gone;
        let id = self.new_id::<Replay>();
        let row = Replay {
            principal: Text::identifier("defect"),
            key: Text::identifier("x".repeat(bytes)),
            request: 0,
            outcome: Ok(Applied { revision: id.get(), answer, replayed: false }),
            until_ms: u64::MAX,
        };
        self.write_of_any_size(id, row);
        id
    }

    /// Test access: deletes an answer that `spoil_with_answer` kept.
    pub fn mend_of_answer(&mut self, id: crate::state::id::ReplayId) {
        self.erase::<Replay>(id);
    }
}

impl Step<'_> {
    /// Keeps an answer for repetitions of the request.
    pub(crate) fn keep(&mut self, asked: &Idempotency, outcome: &Outcome) {
        let principal = Text::clone(&self.origin.principal);
        let id = self.state.new_id();
        let row = Replay {
            principal: Text::clone(&principal),
            key: Text::clone(&asked.key),
            request: asked.request,
            outcome: outcome.clone(),
            until_ms: self.state.log_time_ms().saturating_add(IDEMPOTENCY_TTL_MS),
        };
        self.state.write(id, row);
        self.state.bound_replays(&principal);
    }
}
