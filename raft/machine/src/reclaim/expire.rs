//! Expiry by log time: cooling, leases, checks, tombstones, kept answers, prefixes and reported pods.
//!
//! Every command deletes a bounded number of rows, in order, so that no command faces an hour's backlog.

use crate::apply::step::Step;
use crate::event::EventKind;
use crate::state::id::CoolingId;
use crate::state::row::{Replay, Tombstone};
use ipam_api::limits::EXPIRIES_PER_COMMAND_MAX;

impl Step<'_> {
    /// Deletes a bounded number of expired rows, and returns how many.
    pub(crate) fn expire(&mut self) -> u64 {
        let (now, leases_until_ms) = (self.state.log_time_ms(), self.state.ended_until_ms());
        let mut rows = 0;
        while rows < EXPIRIES_PER_COMMAND_MAX as u64 {
            let cooled = self.state.index.cooling_until.first().copied().filter(|(until, _)| *until <= now);
            let ended = self.state.index.leases.first();
            let ended = ended.filter(|(end_ms, _)| *end_ms <= leases_until_ms);
            let unchecked = self.state.index.checks_until.first().copied().filter(|(until, _)| *until <= now);
            let forgotten = self.state.tombstones.first().filter(|(_, row)| row.until_ms <= now);
            let replayed =
                self.state.replays.first().filter(|(_, row)| row.until_ms <= now).map(|(id, _)| id);
            if let Some((_, id)) = cooled {
                self.cooled(id);
            } else if let Some(id) = self.state.cooled_prefix() {
                self.prefix_cooled(id);
            } else if let Some((_, id)) = ended {
                rows += self.end_leases(id);
                continue;
            } else if let Some((_, id)) = unchecked {
                self.state.end_check(id);
            } else if let Some((id, _)) = forgotten {
                self.state.erase::<Tombstone>(id);
            } else if let Some(id) = replayed {
                self.state.erase::<Replay>(id);
            } else if let Some(id) = self.state.ended_prefix() {
                self.clear_below(id);
            } else if !self.forget_pod() {
                break;
            }
            rows += 1;
        }
        if rows > 0 {
            self.state.tick();
        }
        rows
    }

    fn cooled(&mut self, id: CoolingId) {
        let row = self.state.end_cooling(id);
        let pool = self.state.pools.named(row.pool).spec.name.clone();
        let network = self.state.name_of_network(row.network);
        self.emit(EventKind::Cooled { network, address: row.address, pool });
        self.shed(row.pool, row.address, true);
        self.refresh_readiness(row.pool);
    }
}
