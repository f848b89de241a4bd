//! Cooling blocks of prefixes: single addresses that are not free in their parent prefix.

use crate::state::State;
use crate::state::damaged::Damaged;
use crate::state::division::blocks_within;
use crate::state::id::{Id, ParentId, PrefixCoolingId, PrefixId};
use crate::state::row::{PrefixCooling, PrefixOwner};
use ipam_api::Family;
use ipam_api::address::{AddressRange, number};
use std::net::IpAddr;
use std::sync::Arc;

impl State {
    /// Cooling blocks that were cut from a prefix, the longest-cooling first.
    pub fn prefix_coolings_of(&self, parent: PrefixId) -> impl Iterator<Item = PrefixCoolingId> {
        self.index.prefix_coolings_of.range((parent, Id::MIN)..=(parent, Id::MAX)).map(|(_, id)| *id)
    }

    /// Cooling block that was cut from a prefix at an address.
    pub(crate) fn prefix_cooling_at(&self, parent: PrefixId, address: IpAddr) -> Option<PrefixCoolingId> {
        self.index.prefix_cooling_at.get(&(parent, number(address))).copied()
    }

    /// Cooling address that an owner last held in a prefix, if the requested block is a single address.
    pub(crate) fn own_block(&self, parent: ParentId, owner: &PrefixOwner, length: u8) -> Option<IpAddr> {
        let id = *self.index.prefix_cooling_owners.get(&(parent.prefix(), owner.clone()))?;
        let address = self.prefix_coolings.named(id).address;
        (length == Family::of(address).bits()).then_some(address)
    }

    /// Address that a prefix offers as the last resort. Only a block of one address can take it.
    pub(crate) fn prefix_cooling_offered(&self, parent: PrefixId) -> Option<IpAddr> {
        let row = self.prefix_coolings.named(self.prefix_coolings_of(parent).next()?);
        (!self.pools.named(row.pool).spec.strict_cooling).then_some(row.address)
    }

    /// Cooling block whose time passed first, if any did.
    pub(crate) fn cooled_prefix(&self) -> Option<PrefixCoolingId> {
        let first = self.index.prefix_cooling_until.first();
        first.filter(|(until_ms, _)| *until_ms <= self.log_time_ms()).map(|(_, id)| *id)
    }

    /// Lets an address of a prefix cool.
    pub(crate) fn cool_in_prefix(&mut self, id: PrefixCoolingId, row: PrefixCooling) {
        self.take_cooling(&row);
        self.write(id, row);
    }

    /// Ends the cooling of an address: its prefix may allocate it.
    pub(crate) fn end_prefix_cooling(&mut self, id: PrefixCoolingId) -> Arc<PrefixCooling> {
        let row = self.erase_named::<PrefixCooling>(id);
        let range = AddressRange::single(row.address);
        self.give_in_prefix(row.parent, range, |division| &mut division.cooling);
        row
    }

    /// Removes all cooling addresses from the free sets of their prefixes, after all blocks.
    pub(super) fn index_prefix_coolings(&mut self) -> Result<(), Damaged> {
        if self.index.prefix_cooling_at.len() != self.prefix_coolings.len() {
            return Err(Damaged("one address of a prefix cools twice".to_owned()));
        }
        if self.index.prefix_cooling_owners.len() != self.prefix_coolings.len() {
            return Err(Damaged("two addresses of a prefix cool for one owner".to_owned()));
        }
        let rows: Vec<_> = self.prefix_coolings.iter().map(|(id, row)| (id, row.clone())).collect();
        for (id, row) in rows {
            if !self.is_sound_cooling(&row) {
                return Err(Damaged(format!("cooling block {id} has an address that isn't its prefix's")));
            }
            if self.holds_address(&row) {
                return Err(Damaged(format!("block {id} cools for an owner that has another address")));
            }
            self.take_cooling(&row);
        }
        Ok(())
    }

    fn take_cooling(&mut self, row: &PrefixCooling) {
        let range = AddressRange::single(row.address);
        self.take_in_prefix(row.parent, range, |division| &mut division.cooling);
    }

    /// Returns true if the last owner of a cooling address has another address of its prefix.
    fn holds_address(&self, row: &PrefixCooling) -> bool {
        let held = self.prefix_of(row.parent.into(), &row.owner);
        held.is_some_and(|(_, held)| held.cidr.prefix_len() == held.cidr.max_prefix_len())
    }

    /// Returns true if an address lies in its prefix and in no block that is cut from it.
    fn is_sound_cooling(&self, row: &PrefixCooling) -> bool {
        let at = number(row.address);
        self.prefixes.get(row.parent).is_some_and(|parent| {
            let whole = AddressRange::of_cidr(parent.cidr);
            let edge = u128::from(parent.keep_edges);
            parent.pool == row.pool
                && parent.cidr.prefix_len() < parent.cidr.max_prefix_len()
                && parent.cidr.contains(&row.address)
                && (whole.first() + edge..=whole.last() - edge).contains(&at)
        }) && blocks_within(&self.index.blocks, row.parent.into(), at, at).next().is_none()
    }
}
