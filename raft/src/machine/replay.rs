//! Answers kept for a repetition: the same request under the same key is answered the same, and changes
//! nothing. Kept for a stated log time and number; what goes, goes in the order of the log.

use ipam_api::limits::{IDEMPOTENCY_KEYS_MAX, IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX, IDEMPOTENCY_TTL_MS};

use super::command::{Applied, Cause, Idempotency, Outcome, Refusal, Text};
use super::index::Index;
use super::model::Replay;
use super::state::State;
use super::step::Step;

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

    /// Forgets a kept answer.
    pub(super) fn forget_replay(&mut self, id: u64) {
        let Some(row) = self.replays.remove(id, &mut self.ledger) else { return };
        self.index.replays.remove(&(Text::clone(&row.principal), Text::clone(&row.key)));
        self.index.replays_of.remove(&(Text::clone(&row.principal), id));
        if let Some(count) = self.index.replay_counts.get_mut(&row.principal) {
            *count -= 1;
            if *count == 0 {
                self.index.replay_counts.remove(&row.principal);
            }
        }
    }
}

impl Index {
    pub(super) fn keep(&mut self, row: &Replay, id: u64) {
        self.replays.insert((Text::clone(&row.principal), Text::clone(&row.key)), id);
        self.replays_of.insert((Text::clone(&row.principal), id));
        *self.replay_counts.entry(Text::clone(&row.principal)).or_insert(0) += 1;
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
        self.state.index.keep(&row, id);
        self.state.replays.put(id, row, &mut self.state.ledger);
        let of_principal = self.state.index.replay_counts.get(&principal).copied().unwrap_or_default();
        let oldest = if of_principal > IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX {
            self.state.index.replays_of.range((principal, 0)..).next().map(|(_, id)| *id)
        } else if self.state.replays.len() > IDEMPOTENCY_KEYS_MAX {
            self.state.replays.first().map(|(id, _)| id)
        } else {
            None
        };
        if let Some(oldest) = oldest {
            self.state.forget_replay(oldest);
        }
    }
}
