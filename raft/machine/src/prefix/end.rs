//! End of prefixes by release or expiry, with everything below them.
//!
//! All of it ends at one instant: from then on nothing below is refreshed or divided. Rows are removed from
//! the bottom up, a bounded number with every command, so a block is free only after everything in it is
//! gone.

use crate::apply::step::Step;
use crate::command::{Answer, Refusal};
use crate::event::{Delegation, EventKind};
use crate::prefix::delegate::no_prefix;
use crate::state::State;
use crate::state::id::PrefixId;
use crate::state::row::Prefix;
use crate::value::row::RELEASED_MS;
use ipam_api::limits::EXPIRIES_PER_COMMAND_MAX;
use ipnet::IpNet;

impl Step<'_> {
    pub(crate) fn release_prefix(&mut self, id: PrefixId) -> Result<Answer, Refusal> {
        let row = self.state.prefixes.get(id).ok_or_else(|| no_prefix(id))?.clone();
        self.state.tick();
        let ended = Prefix { until_ms: Some(RELEASED_MS), released: true, ..row };
        self.state.write(id, ended);
        let mut cidrs = Vec::new();
        while cidrs.len() < EXPIRIES_PER_COMMAND_MAX && self.state.prefixes.get(id).is_some() {
            cidrs.extend(self.clear_below(id));
        }
        cidrs.reverse();
        Ok(Answer::PrefixReleased { cidrs, ending: self.state.prefixes.get(id).is_some() })
    }

    /// Removes one prefix: the lowest one below `selector_key`, or that one itself.
    pub(crate) fn clear_below(&mut self, selector_key: PrefixId) -> Option<IpNet> {
        let released = self.state.prefixes.get(selector_key).is_some_and(|row| row.released);
        let below = |id: &PrefixId| self.state.prefixes_below((*id).into()).next();
        let id = std::iter::successors(Some(selector_key), below).last()?;
        let row = self.state.erase::<Prefix>(id)?;
        self.state.give_back(&row);
        let of = self.state.delegation(id, &row);
        self.emit(EventKind::TakenBack { of, with: selector_key, released });
        if row.parent == row.pool.into() && !self.remove_if_drained(row.pool) {
            self.refresh_readiness(row.pool);
        }
        Some(row.cidr)
    }
}

impl State {
    /// A prefix as events show it.
    pub(crate) fn delegation(&self, prefix: PrefixId, row: &Prefix) -> Delegation {
        let pool = self.pools.named(row.pool).spec.name.clone();
        let network = self.name_of_network(row.network);
        Delegation { network, cidr: row.cidr, pool, owner: row.owner.clone(), prefix }
    }

    /// The prefix that ended first, if its time has passed.
    pub(crate) fn ended_prefix(&self) -> Option<PrefixId> {
        let now = self.ended_until_ms();
        self.index.prefix_until.get_min().filter(|(until_ms, _)| *until_ms <= now).map(|(_, id)| *id)
    }
}
