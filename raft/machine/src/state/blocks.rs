//! Blocks of prefixes in the index: by address, by owner and by end; and the free rest of parents.

use crate::broken::broken;
use crate::invariant::DIVISION_OF_PARENT;
use crate::state::State;
use crate::state::damaged::Damaged;
use crate::state::division::{Division, blocks_within};
use crate::state::id::{NetworkId, ParentId, PrefixId};
use crate::state::indexed::less;
use crate::state::row::{Prefix, PrefixOwner};
use ipam_api::address::{AddressRange, number};
use ipam_api::name::{Name, ObjectName};
use std::net::IpAddr;
use std::sync::Arc;

impl State {
    /// Takes a block out of its parent.
    pub(crate) fn cut(&mut self, row: &Prefix) {
        let range = AddressRange::of_cidr(row.cidr);
        if row.parent == row.pool.into() {
            self.space_mut(row.pool).delegate(range.first(), range.last());
            return;
        }
        self.take_in_prefix(row.parent.prefix(), range, |division| &mut division.children);
    }

    /// Removes addresses from the free set of a prefix, and increments a count of its division.
    pub(super) fn take_in_prefix(
        &mut self,
        parent: PrefixId,
        range: AddressRange,
        count: fn(&mut Division) -> &mut u64,
    ) {
        let Prefix { cidr, keep_edges, .. } = *self.prefixes.named(parent);
        if self.index.divided.get(&parent).is_none() {
            self.index.divided.insert(parent, Division::none_of(cidr, keep_edges).into());
        }
        let division = self.division_mut(parent);
        division.free.take(range.first(), range.last());
        *count(division) += 1;
    }

    /// Returns addresses to the free set of a prefix, and decrements a count of its division.
    pub(super) fn give_in_prefix(
        &mut self,
        parent: PrefixId,
        range: AddressRange,
        count: fn(&mut Division) -> &mut u64,
    ) {
        let division = self.division_mut(parent);
        division.free.give(range.first(), range.last());
        less(count(division), 1);
        if division.is_none() {
            self.index.divided.remove(&parent);
        }
    }

    fn division_mut(&mut self, parent: PrefixId) -> &mut Division {
        match self.index.divided.get_mut(&parent) {
            Some(division) => Arc::make_mut(division),
            None => broken(DIVISION_OF_PARENT, format!("prefix {parent}")),
        }
    }

    /// A prefix and all above it, the lowest first; nothing for a pool.
    #[must_use]
    pub fn prefix_chain(&self, id: PrefixId) -> Vec<PrefixId> {
        let row = |id: PrefixId| self.prefixes.get(id).map(|row| row.parent.prefix());
        std::iter::successors(row(id).map(|_| id), |id| row(*id).filter(|parent| row(*parent).is_some()))
            .collect()
    }

    /// Returns true if a prefix, or one above it, has ended: its rows are only waiting for deletion.
    pub(crate) fn has_ended(&self, id: PrefixId) -> bool {
        let now = self.ended_until_ms();
        let ended = |id: &PrefixId| {
            self.prefixes.get(*id).and_then(|row| row.until_ms).is_some_and(|until| until <= now)
        };
        self.prefix_chain(id).iter().any(ended)
    }

    /// Prefix of an owner with this parent.
    #[must_use]
    pub fn prefix_of(&self, parent: ParentId, owner: &PrefixOwner) -> Option<(PrefixId, &Prefix)> {
        let id = *self.index.prefix_owners.get(&(parent, owner.clone()))?;
        self.prefixes.get(id).map(|row| (id, row))
    }

    /// Prefixes of one realm that are cut from a pool or a prefix, by owner. Other realms cost nothing.
    pub(crate) fn prefixes_of_realm<'a>(
        &'a self,
        parent: ParentId,
        realm: &'a Name,
    ) -> impl Iterator<Item = (PrefixId, &'a Prefix)> + 'a {
        let lowest = PrefixOwner { realm: realm.clone(), name: ObjectName::lower_bound() };
        let behind = self.index.prefix_owners.range((parent, lowest)..);
        let own = behind.take_while(move |((of, owner), _)| *of == parent && owner.realm == *realm);
        own.map(|(_, id)| (*id, self.prefixes.named(*id)))
    }

    /// Prefixes that are cut from a pool or a prefix, by address.
    pub fn prefixes_below(&self, parent: ParentId) -> impl Iterator<Item = PrefixId> {
        self.index.blocks.range((parent, 0)..=(parent, u128::MAX)).map(|(_, (_, id))| *id)
    }

    /// The smallest prefix that an address is in.
    #[must_use]
    pub fn prefix_at(&self, network: NetworkId, address: IpAddr) -> Option<(PrefixId, &Prefix)> {
        let number = number(address);
        let inside = |parent: ParentId| {
            let mut blocks = blocks_within(&self.index.blocks, parent, number, number);
            blocks.next().map(|(_, (_, id))| id)
        };
        let pool = self.pool_at(network, address)?;
        let id = std::iter::successors(inside(pool.into()), |id| inside((*id).into())).last()?;
        self.prefixes.get(id).map(|row| (id, row))
    }

    /// Returns a block to its parent.
    pub(crate) fn give_back(&mut self, row: &Prefix) {
        let range = AddressRange::of_cidr(row.cidr);
        if row.parent == row.pool.into() {
            self.space_mut(row.pool).take_back(range.first(), range.last());
            return;
        }
        self.give_in_prefix(row.parent.prefix(), range, |division| &mut division.children);
    }

    /// Removes all blocks from the free sets of their parents, once all rows are loaded.
    pub(crate) fn index_blocks(&mut self) -> Result<(), Damaged> {
        let all = self.prefixes.len();
        if self.index.blocks.len() != all || self.index.prefix_owners.len() != all {
            return Err(Damaged("two prefixes have one owner or one block".to_owned()));
        }
        let rows: Vec<(PrefixId, Prefix)> = self.prefixes.iter().map(|(id, row)| (id, row.clone())).collect();
        for (id, row) in rows {
            if !self.is_sound(id, &row) {
                return Err(Damaged(format!("prefix {id} has addresses that aren't its own")));
            }
            self.cut(&row);
        }
        self.index_prefix_coolings()
    }

    /// Returns true if a prefix lies in its parent and overlaps nothing else there.
    fn is_sound(&self, id: PrefixId, row: &Prefix) -> bool {
        let range = AddressRange::of_cidr(row.cidr);
        let (first, last) = (range.first(), range.last());
        let alone = blocks_within(&self.index.blocks, row.parent, first, last).count() == 1;
        let fits = if row.parent == row.pool.into() {
            self.space(row.pool).is_some_and(|space| {
                space.family == range.family() && space.allocatable.within(first, last).eq([(first, last)])
            }) && self.occupied(row.network, range).next().is_none()
        } else {
            self.prefixes.get(row.parent.prefix()).is_some_and(|parent| {
                let whole = AddressRange::of_cidr(parent.cidr);
                let edge = u128::from(parent.keep_edges);
                parent.pool == row.pool
                    && row.parent < id.into()
                    && row.cidr.prefix_len() > parent.cidr.prefix_len()
                    && whole.family() == range.family()
                    && whole.first() + edge <= first
                    && last <= whole.last() - edge
            })
        };
        row.cidr == row.cidr.trunc() && alone && fits
    }
}
