//! Checks: proofs that free addresses are unused, made ahead of requests.

use crate::space::Space;
use crate::state::State;
use crate::state::id::{CheckId, PoolId};
use crate::state::row::Check;
use ipam_api::address::number;
use ipam_api::resource::Strategy;
use std::net::IpAddr;

impl State {
    /// Check of an address that is valid now.
    pub(crate) fn check_of(&self, space: &Space, address: u128) -> Option<&Check> {
        let id = space.checks.get(&address)?;
        Some(self.checks.named(*id)).filter(|row| row.until_ms > self.log_time_ms())
    }

    /// Next free address of a pool that was found unused ahead of the request, if its addresses need that.
    pub(crate) fn next_checked(
        &self,
        pool: PoolId,
        space: &Space,
        may: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        // Most pools have none.
        if space.checks.is_empty() || !self.probing(pool).conflicts() {
            return None;
        }
        let from = self.next_from(pool);
        let numbers = space.checks.range(from..).chain(space.checks.range(..from)).map(|(number, _)| *number);
        let mut fit = numbers.filter(|number| {
            space.free.is_free(*number)
                && self.check_of(space, *number).is_some()
                && may(space.family.address(*number))
        });
        fit.next().map(|number| space.family.address(number))
    }

    /// Deletes the check of an address that is being allocated; returns true if the check was valid.
    pub(crate) fn use_check(&mut self, pool: PoolId, address: IpAddr) -> bool {
        let space = self.space_of(pool);
        let Some(id) = space.checks.get(&number(address)).copied() else { return false };
        let is_valid = self.check_of(space, number(address)).is_some();
        self.end_check(id);
        is_valid
    }

    /// A check of a pool that no allocation can use: its address is not free, or the check has expired.
    pub(crate) fn unusable_check(&self, pool: PoolId) -> Option<CheckId> {
        let space = self.space_of(pool);
        let is_usable = |number: u128| space.free.is_free(number) && self.check_of(space, number).is_some();
        space.checks.iter().find(|(number, _)| !is_usable(**number)).map(|(_, id)| *id)
    }

    /// Returns the address number from which on a pool allocates next.
    ///
    /// Random picks can't be predicted: a random pool with probes allocates from its cursor on.
    pub(crate) fn next_from(&self, pool: PoolId) -> u128 {
        match self.pools.named(pool).spec.strategy {
            Strategy::Sequential => 0,
            Strategy::Next | Strategy::Random => {
                let cursor = self.pool_states.get(pool).and_then(|row| row.cursor);
                cursor.map_or(0, number).saturating_add(1)
            }
        }
    }

    /// Returns true if an address of a pool has no check that is valid for half of its time.
    pub(crate) fn is_check_due(&self, pool: PoolId, number: u128) -> bool {
        let until_ms = self.log_time_ms().saturating_add(self.probing(pool).valid_ms() / 2);
        self.check_of(self.space_of(pool), number).is_none_or(|row| row.until_ms <= until_ms)
    }

    /// Deletes the checks of addresses that a pool can't allocate now. Once such an address is free again,
    /// its old check would prove nothing.
    pub(crate) fn end_checks_of_unfree(&mut self, pool: PoolId) {
        let space = self.space_of(pool);
        let unfree = space.checks.iter().filter(|(number, _)| !space.free.is_free(**number));
        let unfree: Vec<CheckId> = unfree.map(|(_, id)| *id).collect();
        unfree.into_iter().for_each(|check| self.end_check(check));
    }

    /// Deletes a check.
    pub(crate) fn end_check(&mut self, id: CheckId) {
        let row = self.erase_named::<Check>(id);
        self.space_mut(row.pool).checks.remove(&number(row.address));
    }
}
