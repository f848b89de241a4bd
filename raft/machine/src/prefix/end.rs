//! End of prefixes by release or expiry, with everything below them.
//!
//! A prefix and everything below it end at the same instant: from then on, nothing below is refreshed or
//! divided. Rows are removed from the bottom up, a bounded number with every command, so a block becomes free
//! only after everything in it was removed.

use crate::apply::step::Step;
use crate::command::{Answer, Refusal};
use crate::event::{Delegation, EventKind};
use crate::prefix::delegate::no_prefix;
use crate::state::State;
use crate::state::id::{PrefixCoolingId, PrefixId};
use crate::state::row::{Prefix, PrefixCooling, WaitTarget};
use crate::value::row::RELEASED_MS;
use ipam_api::limits::EXPIRIES_PER_COMMAND_MAX;
use ipnet::IpNet;

impl Step<'_> {
    pub(crate) fn release_prefix(&mut self, id: PrefixId) -> Result<Answer, Refusal> {
        if self.state.prefix_claims.get(id.claim()).is_some() {
            self.withdraw_prefix_claim(id.claim());
            return Ok(Answer::PrefixReleased { cidrs: Vec::new(), ending: false });
        }
        let row = self.state.prefixes.get(id).ok_or_else(|| no_prefix(id))?.clone();
        self.end_prefix(id, row);
        let mut cidrs = self.clear_prefix(id, &mut { EXPIRIES_PER_COMMAND_MAX });
        cidrs.reverse();
        Ok(Answer::PrefixReleased { cidrs, ending: self.state.prefixes.get(id).is_some() })
    }

    /// Ends a prefix with everything below it. Its rows remain until they are cleared.
    pub(super) fn end_prefix(&mut self, id: PrefixId, row: Prefix) {
        self.state.tick();
        let ended = Prefix { until_ms: Some(RELEASED_MS), released: true, ..row };
        self.state.write(id, ended);
    }

    /// Clears rows of a prefix that has ended, at most `left` of them, and counts them down.
    pub(super) fn clear_prefix(&mut self, id: PrefixId, left: &mut usize) -> Vec<IpNet> {
        let mut cidrs = Vec::new();
        while *left > 0 && self.state.prefixes.get(id).is_some() {
            *left -= 1;
            cidrs.extend(self.clear_below(id));
        }
        cidrs
    }

    /// Removes one prefix: the lowest one below `root`, or that prefix itself. If blocks of the
    /// prefix cool, removes one of these blocks instead, and returns none.
    pub(crate) fn clear_below(&mut self, root: PrefixId) -> Option<IpNet> {
        let released = self.state.prefixes.get(root).is_some_and(|row| row.released);
        let below = |id: &PrefixId| self.state.prefixes_below((*id).into()).next();
        let id = std::iter::successors(Some(root), below).last()?;
        let cooling = self.state.prefix_coolings_of(id).next();
        if let Some(cooling) = cooling {
            drop(self.state.end_prefix_cooling(cooling));
            self.state.refresh_waiter(&WaitTarget::Block(id.into()));
            return None;
        }
        let row = self.state.erase::<Prefix>(id)?;
        self.state.give_back(&row);
        let of = self.state.delegation(id, &row);
        self.emit(EventKind::TakenBack { of, with: root, released });
        self.withdraw_prefix_claims_from(id.into());
        let is_of_prefix = row.parent != row.pool.into();
        if is_of_prefix {
            // The block cools before claims are redirected, since a claim of the same owner may take the
            // address.
            self.cool_block(&row);
        }
        self.turn_claims_for_block_of(id.into());
        if is_of_prefix {
            self.state.refresh_waiter(&WaitTarget::Block(row.parent));
        } else if !self.remove_if_drained(row.pool) {
            self.cool_block(&row);
            self.refresh_readiness(row.pool);
        }
        Some(row.cidr)
    }
}

impl Step<'_> {
    /// Lets a block of one address cool, as its pool lets its addresses. Larger blocks don't cool.
    fn cool_block(&mut self, row: &Prefix) {
        let Prefix { cidr, network, pool, parent, .. } = *row;
        let (address, cooling_ms) = (cidr.addr(), self.state.pools.named(pool).spec.cooling_ms);
        if cooling_ms == 0 || cidr.prefix_len() < cidr.max_prefix_len() {
            return;
        }
        if parent == pool.into() {
            let id = self.state.new_id();
            self.cool(id, network, pool, address, cooling_ms);
        } else if !self.state.has_ended(parent.prefix()) {
            // A block of an ended parent doesn't cool: its row would only delay the parent's removal.
            let id = self.state.new_id();
            let until_ms = self.state.log_time_ms().saturating_add(cooling_ms);
            let (parent, owner) = (parent.prefix(), row.owner.clone());
            self.state.cool_in_prefix(id, PrefixCooling { parent, network, pool, address, owner, until_ms });
        }
    }

    /// Ends the cooling of a block whose time has passed.
    pub(crate) fn prefix_cooled(&mut self, id: PrefixCoolingId) {
        let row = self.state.end_prefix_cooling(id);
        let pool = self.state.pools.named(row.pool).spec.name.clone();
        let network = self.state.name_of_network(row.network);
        self.emit(EventKind::Cooled { network, address: row.address, pool });
        self.state.refresh_waiter(&WaitTarget::Block(row.parent.into()));
    }
}

impl State {
    /// Returns a prefix in the form that events show.
    pub(crate) fn delegation(&self, prefix: PrefixId, row: &Prefix) -> Delegation {
        let pool = self.pools.named(row.pool).spec.name.clone();
        let network = self.name_of_network(row.network);
        Delegation { network, cidr: row.cidr, pool, owner: row.owner.clone(), prefix }
    }

    /// The prefix that ended first, if its time has passed.
    pub(crate) fn ended_prefix(&self) -> Option<PrefixId> {
        let now = self.ended_until_ms();
        self.index.prefix_until.first().filter(|(until_ms, _)| *until_ms <= now).map(|(_, id)| *id)
    }
}
