//! What is derived from prefixes: what is cut from what, by address, by owner and by time; what is left of each.

use std::net::IpAddr;
use std::sync::Arc;

use imbl::OrdMap;
use ipam_api::address::{AddressRange, number};
use ipnet::IpNet;

use crate::machine::Damaged;
use crate::machine::free_set::FreeSet;
use crate::machine::index::Index;
use crate::machine::model::{Prefix, PrefixOwner};
use crate::machine::state::State;

/// What is left of a prefix from which something is cut.
#[derive(Debug, Clone)]
pub(in crate::machine) struct Division {
    pub(in crate::machine) free: FreeSet,
    pub(in crate::machine) children: u64,
}

impl Division {
    /// A prefix from which nothing is cut.
    pub(in crate::machine) fn none_of(cidr: IpNet, keep_edges: bool) -> Self {
        let range = AddressRange::of_cidr(cidr);
        let mut free = FreeSet::nothing_free(range.first(), order_of(cidr));
        let edge = u128::from(keep_edges);
        // Saturated, since both ends of the address space are addresses.
        free.give(range.first().saturating_add(edge), range.last().saturating_sub(edge));
        Self { free, children: 0 }
    }
}

/// log2 of a block's size.
fn order_of(cidr: IpNet) -> u8 {
    cidr.max_prefix_len().saturating_sub(cidr.prefix_len())
}

impl Index {
    pub(in crate::machine) fn insert_prefix(&mut self, id: u64, row: &Prefix) {
        let range = AddressRange::of_cidr(row.cidr);
        self.blocks.insert((row.parent, range.first()), (range.last(), id));
        self.prefix_owners.insert((row.parent, row.owner.clone()), id);
        self.prefix_until.extend(row.until_ms.map(|until_ms| (until_ms, id)));
    }

    pub(super) fn remove_prefix(&mut self, id: u64, row: &Prefix) {
        self.blocks.remove(&(row.parent, AddressRange::of_cidr(row.cidr).first()));
        self.prefix_owners.remove(&(row.parent, row.owner.clone()));
        if let Some(until_ms) = row.until_ms {
            self.prefix_until.remove(&(until_ms, id));
        }
    }
}

impl State {
    /// Takes a block out of what it is cut from.
    pub(in crate::machine) fn cut(&mut self, row: &Prefix) {
        let range = AddressRange::of_cidr(row.cidr);
        if row.parent == row.pool {
            if let Some(space) = self.space_mut(row.pool) {
                space.delegate(range.first(), range.last());
            }
            return;
        }
        let Some(parent) = self.prefixes.get(row.parent) else { return };
        let whole = || Division::none_of(parent.cidr, parent.keep_edges).into();
        let division = self.index.divided.entry(row.parent).or_insert_with(whole);
        let division = Arc::make_mut(division);
        division.free.take(range.first(), range.last());
        division.children += 1;
    }

    /// A prefix and all above it, the lowest first; nothing for a pool.
    #[must_use]
    pub fn prefix_chain(&self, id: u64) -> Vec<u64> {
        let row = |id: u64| self.prefixes.get(id).map(|row| row.parent);
        std::iter::successors(row(id).map(|_| id), |id| row(*id).filter(|parent| row(*parent).is_some()))
            .collect()
    }

    /// Whether a prefix, or one above it, is only being cleared away.
    pub(super) fn has_ended(&self, id: u64) -> bool {
        let now = self.ended_until_ms();
        let ended =
            |id: &u64| self.prefixes.get(*id).and_then(|row| row.until_ms).is_some_and(|until| until <= now);
        self.prefix_chain(id).iter().any(ended)
    }

    /// An owner's prefix, among those that are cut from a pool or a prefix.
    #[must_use]
    pub fn prefix_of(&self, parent: u64, owner: &PrefixOwner) -> Option<(u64, &Prefix)> {
        let id = *self.index.prefix_owners.get(&(parent, owner.clone()))?;
        self.prefixes.get(id).map(|row| (id, row))
    }

    /// What is cut from a pool or a prefix, by address.
    pub fn prefixes_below(&self, parent: u64) -> impl Iterator<Item = u64> {
        self.index.blocks.range((parent, 0)..=(parent, u128::MAX)).map(|(_, (_, id))| *id)
    }

    /// The smallest prefix that an address is in.
    #[must_use]
    pub fn prefix_at(&self, network: u64, address: IpAddr) -> Option<(u64, &Prefix)> {
        let number = number(address);
        let inside = |parent: u64| {
            let mut blocks = blocks_within(&self.index.blocks, parent, number, number);
            blocks.next().map(|(_, (_, id))| id)
        };
        let pool = self.pool_at(network, address)?;
        let id = std::iter::successors(inside(pool), |id| inside(*id)).last()?;
        self.prefixes.get(id).map(|row| (id, row))
    }

    /// Gives a block back to what it was cut from.
    pub(super) fn give_back(&mut self, row: &Prefix) {
        let range = AddressRange::of_cidr(row.cidr);
        if row.parent == row.pool {
            if let Some(space) = self.space_mut(row.pool) {
                space.take_back(range.first(), range.last());
            }
            return;
        }
        let Some(division) = self.index.divided.get_mut(&row.parent) else { return };
        let division = Arc::make_mut(division);
        division.free.give(range.first(), range.last());
        division.children -= 1;
        if division.children == 0 {
            self.index.divided.remove(&row.parent);
        }
    }

    /// Takes all blocks out of what they are cut from, once all rows are there.
    pub(in crate::machine) fn index_blocks(&mut self) -> Result<(), Damaged> {
        let all = self.prefixes.len();
        if self.index.blocks.len() != all || self.index.prefix_owners.len() != all {
            return Err(Damaged("two prefixes have one owner or one block".to_owned()));
        }
        let rows: Vec<(u64, Prefix)> = self.prefixes.iter().map(|(id, row)| (id, row.clone())).collect();
        for (id, row) in rows {
            if !self.is_sound(id, &row) {
                return Err(Damaged(format!("prefix {id} has addresses that aren't its own")));
            }
            self.cut(&row);
        }
        Ok(())
    }

    /// Whether a prefix lies in what it is cut from, and beside all else that is taken from there.
    fn is_sound(&self, id: u64, row: &Prefix) -> bool {
        let range = AddressRange::of_cidr(row.cidr);
        let (first, last) = (range.first(), range.last());
        let alone = blocks_within(&self.index.blocks, row.parent, first, last).count() == 1;
        let fits = if row.parent == row.pool {
            self.space(row.pool).is_some_and(|space| {
                space.family == range.family() && space.giveable.within(first, last).eq([(first, last)])
            }) && self.occupied(row.network, range).next().is_none()
        } else {
            self.prefixes.get(row.parent).is_some_and(|parent| {
                let whole = AddressRange::of_cidr(parent.cidr);
                let edge = u128::from(parent.keep_edges);
                parent.pool == row.pool
                    && row.parent < id
                    && row.cidr.prefix_len() > parent.cidr.prefix_len()
                    && whole.family() == range.family()
                    && whole.first() + edge <= first
                    && last <= whole.last() - edge
            })
        };
        row.cidr == row.cidr.trunc() && alone && fits
    }
}

/// Blocks that are cut from one thing and have something between two addresses.
pub(in crate::machine) fn blocks_within(
    blocks: &OrdMap<(u64, u128), (u128, u64)>,
    parent: u64,
    first: u128,
    last: u128,
) -> impl Iterator<Item = (u128, (u128, u64))> {
    let before = blocks.range((parent, 0)..(parent, first)).next_back();
    let before = before.filter(move |(_, (end, _))| *end >= first);
    let others = blocks.range((parent, first)..=(parent, last));
    before.into_iter().chain(others).map(|((_, start), block)| (*start, *block))
}
