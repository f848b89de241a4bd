//! Answers kept for a repetition: the same request under the same key is answered the same, and changes
//! nothing. Kept for a stated log time, number and bytes, of each principal and in all; what goes, goes in the order
//! of the log. Where all principals together keep too much, the one that keeps the most bytes loses its oldest: a
//! principal with few answers keeps them, whatever others do.

use ipam_api::limits::{
    IDEMPOTENCY_KEYS_MAX, IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX, IDEMPOTENCY_TTL_MS, REPLAY_BYTES_MAX,
    REPLAY_BYTES_PER_PRINCIPAL_MAX,
};

use super::command::{Applied, Cause, Idempotency, Outcome, Refusal, Text};
use super::index::Index;
use super::model::Replay;
use super::state::State;
use super::step::Step;

/// How much is kept for one principal, or for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayUsage {
    /// Answers.
    pub keys: usize,
    /// Bytes of their rows.
    pub bytes: u64,
}

impl ReplayUsage {
    fn is_within(self, keys_max: usize, bytes_max: usize) -> bool {
        self.keys <= keys_max && self.bytes <= bytes_max as u64
    }
}

impl State {
    /// The kept answer to a request, if it was made before.
    #[must_use]
    pub fn replayed(&self, principal: &Text, asked: &Idempotency) -> Option<Outcome> {
        let id = self.index.replays.get(&(Text::clone(principal), Text::clone(&asked.key)))?;
        let row = self.replays.get(*id)?;
        if row.request != asked.request {
            return Some(Err(Cause::KeyReused.into()));
        }
        Some(match row.outcome.clone() {
            Ok(applied) => Ok(Applied { replayed: true, ..applied }),
            Err(refusal) => Err(Refusal { replayed: true, ..refusal }),
        })
    }

    /// How much is kept for a principal.
    #[must_use]
    pub fn replay_usage_of(&self, principal: &str) -> ReplayUsage {
        self.index.replay_usage.get(principal).copied().unwrap_or_default()
    }

    /// How much is kept in all.
    #[must_use]
    pub fn replay_usage(&self) -> ReplayUsage {
        ReplayUsage { keys: self.replays.len(), bytes: self.index.replay_bytes }
    }

    /// Forgets a kept answer.
    pub(super) fn forget_replay(&mut self, id: u64) {
        let bytes = self.replays.bytes_of(id);
        let Some(row) = self.replays.remove(id, &mut self.ledger) else { return };
        self.index.replays.remove(&(Text::clone(&row.principal), Text::clone(&row.key)));
        self.index.replays_of.remove(&(Text::clone(&row.principal), id));
        self.index.use_for_replays(&row.principal, |usage| {
            usage.keys -= 1;
            usage.bytes -= bytes;
        });
        self.index.replay_bytes -= bytes;
    }

    /// Forgets what is too much after one more answer of a principal.
    fn bound_replays(&mut self, principal: &Text) {
        let (keys_max, bytes_max) = (IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX, REPLAY_BYTES_PER_PRINCIPAL_MAX);
        while !self.replay_usage_of(principal).is_within(keys_max, bytes_max)
            && self.forget_oldest_replay(principal)
        {}
        while !self.replay_usage().is_within(IDEMPOTENCY_KEYS_MAX, REPLAY_BYTES_MAX) {
            let Some((_, largest)) = self.index.replay_bytes_of.get_max().cloned() else { return };
            if !self.forget_oldest_replay(&largest) {
                return;
            }
        }
    }

    /// False if nothing is kept for the principal.
    fn forget_oldest_replay(&mut self, principal: &Text) -> bool {
        let all = (Text::clone(principal), 0)..=(Text::clone(principal), u64::MAX);
        let oldest = self.index.replays_of.range(all).next().map(|(_, id)| *id);
        if let Some(oldest) = oldest {
            self.forget_replay(oldest);
        }
        oldest.is_some()
    }
}

#[cfg(feature = "spoil")]
impl State {
    /// Keeps an answer of so many bytes, more than a row may have, as a defect would. Its row's id.
    pub fn spoil_with_answer(&mut self, bytes: usize) -> u64 {
        use std::net::Ipv4Addr;

        use super::command::Answer;

        // Each address takes five bytes.
        let addresses = vec![Ipv4Addr::LOCALHOST.into(); bytes / 5];
        let answer = Answer::Released { addresses, more: 0, late: false };
        let id = self.tick();
        let row = Replay {
            principal: Text::identifier("defect"),
            key: Text::identifier("large"),
            request: 0,
            outcome: Ok(Applied { revision: id, answer, replayed: false }),
            until_ms: u64::MAX,
        };
        self.replays.put_of_any_size(id, row.clone(), &mut self.ledger);
        self.index.keep(&row, id, self.replays.bytes_of(id));
        id
    }

    /// Forgets such an answer.
    pub fn mend_of_answer(&mut self, id: u64) {
        self.forget_replay(id);
    }
}

impl Index {
    pub(super) fn keep(&mut self, row: &Replay, id: u64, bytes: u64) {
        self.replays.insert((Text::clone(&row.principal), Text::clone(&row.key)), id);
        self.replays_of.insert((Text::clone(&row.principal), id));
        self.use_for_replays(&row.principal, |usage| {
            usage.keys += 1;
            usage.bytes += bytes;
        });
        self.replay_bytes += bytes;
    }

    /// Changes how much is kept for a principal, and its place among all of them.
    fn use_for_replays(&mut self, principal: &Text, change: impl FnOnce(&mut ReplayUsage)) {
        let before = self.replay_usage.get(principal).copied().unwrap_or_default();
        let mut after = before;
        change(&mut after);
        self.replay_bytes_of.remove(&(before.bytes, Text::clone(principal)));
        if after.keys == 0 {
            self.replay_usage.remove(principal);
        } else {
            self.replay_usage.insert(Text::clone(principal), after);
            self.replay_bytes_of.insert((after.bytes, Text::clone(principal)));
        }
    }
}

impl Step<'_> {
    /// Keeps an answer.
    pub(super) fn keep(&mut self, asked: &Idempotency, outcome: &Outcome) {
        let principal = Text::clone(&self.origin.principal);
        let id = self.state.tick();
        let row = Replay {
            principal: Text::clone(&principal),
            key: Text::clone(&asked.key),
            request: asked.request,
            outcome: outcome.clone(),
            until_ms: self.state.log_time_ms().saturating_add(IDEMPOTENCY_TTL_MS),
        };
        let State { replays, index, ledger, .. } = &mut *self.state;
        replays.put(id, row, ledger);
        if let Some(row) = replays.get(id) {
            index.keep(row, id, replays.bytes_of(id));
        }
        self.state.bound_replays(&principal);
    }
}
