//! How prefixes end: released, or not refreshed in time, and everything below with them.
//!
//! All of it ends at one instant: from then on nothing of it is refreshed or divided. It is cleared away from the
//! bottom up, a bounded number with every command, so that a block is free only once all in it is gone.

use ipam_api::RangeSet;
use ipam_api::limits::EXPIRIES_PER_COMMAND_MAX;
use ipam_api::name::Name;
use ipnet::IpNet;

use super::blocks::blocks_within;
use super::no_prefix;
use crate::machine::command::cause::NamedPrefix;
use crate::machine::command::{Answer, Cause, Refusal};
use crate::machine::event::What;
use crate::machine::model::Prefix;
use crate::machine::state::State;
use crate::machine::step::Step;

/// End of a prefix that was released: earlier than any log time, so that the grace of a leadership doesn't delay it.
pub(in crate::machine) const RELEASED_MS: u64 = 0;

/// Prefixes that a refusal names.
const EXAMPLES: usize = 3;

impl Step<'_> {
    pub(in crate::machine) fn release_prefix(&mut self, id: u64) -> Result<Answer, Refusal> {
        let row = self.state.prefixes.get(id).ok_or_else(|| no_prefix(id))?.clone();
        self.state.tick();
        let ended = Prefix { until_ms: Some(RELEASED_MS), released: true, ..row };
        self.state.end_prefix_at(id, ended);
        let mut cidrs = Vec::new();
        while cidrs.len() < EXPIRIES_PER_COMMAND_MAX && self.state.prefixes.get(id).is_some() {
            cidrs.extend(self.clear_below(id));
        }
        cidrs.reverse();
        Ok(Answer::PrefixReleased { cidrs, ending: self.state.prefixes.get(id).is_some() })
    }

    /// Clears away one prefix: the first at the bottom of what ends with `anchor`, or that one itself.
    pub(in crate::machine) fn clear_below(&mut self, anchor: u64) -> Option<IpNet> {
        let released = self.state.prefixes.get(anchor).is_some_and(|row| row.released);
        let below = |id: &u64| self.state.prefixes_below(*id).next();
        let id = std::iter::successors(Some(anchor), below).last()?;
        let row = self.state.prefixes.remove(id, &mut self.state.ledger)?;
        self.state.index.remove_prefix(id, &row);
        self.state.give_back(&row);
        let pool = self.state.pools.get(row.pool).map(|pool| pool.intention.name.clone());
        self.emit(What::TakenBack {
            network: self.state.name_of_network(row.network),
            cidr: row.cidr,
            pool: pool.unwrap_or_else(Name::default_name),
            owner: row.owner.clone(),
            prefix: id,
            with: anchor,
            released,
        });
        if row.parent == row.pool && !self.remove_if_drained(row.pool) {
            self.refresh_readiness(row.pool);
        }
        Some(row.cidr)
    }
}

impl State {
    /// The prefix that ended first, if its time has passed.
    pub(in crate::machine) fn ended_prefix(&self) -> Option<u64> {
        let now = self.ended_until_ms();
        self.index.prefix_until.get_min().filter(|(until_ms, _)| *until_ms <= now).map(|(_, id)| *id)
    }

    /// Writes a prefix that ends at another time.
    pub(in crate::machine) fn end_prefix_at(&mut self, id: u64, row: Prefix) {
        if let Some(before) = self.prefixes.get(id).and_then(|row| row.until_ms) {
            self.index.prefix_until.remove(&(before, id));
        }
        self.index.prefix_until.extend(row.until_ms.map(|until_ms| (until_ms, id)));
        self.prefixes.put(id, row, &mut self.ledger);
    }

    /// Refuses to take addresses from a pool that are delegated.
    pub(in crate::machine) fn check_not_delegated(
        &self,
        pool: u64,
        name: &Name,
        lost: &RangeSet,
    ) -> Result<(), Refusal> {
        let cut = lost.ranges().flat_map(|range| {
            let blocks = blocks_within(&self.index.blocks, pool, range.first(), range.last());
            blocks.map(|(_, (_, id))| id)
        });
        let mut ids: Vec<u64> = cut.collect();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = ids.iter().take(EXAMPLES).filter_map(|id| self.prefixes.get(*id).map(|row| (*id, row)));
        let examples = rows.map(|(id, row)| NamedPrefix::of(id, row)).collect();
        Err(Cause::PrefixesLost { pool: name.clone(), held: ids.len() as u64, examples }.into())
    }
}
