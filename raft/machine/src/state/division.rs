//! Divisions: blocks cut from a pool or a prefix, and the free rest.

use crate::tree::Tree;
use ipam_api::address::AddressRange;
use ipnet::IpNet;

use crate::space::free_set::FreeSet;
use crate::value::id::{ParentId, PrefixId};

/// Remains of a prefix that others are, or were lately, cut from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Division {
    pub(crate) free: FreeSet,
    pub(crate) children: u64,
    /// Number of cooling addresses. They aren't free.
    pub(crate) cooling: u64,
}

impl Division {
    /// Undivided prefix.
    pub(crate) fn none_of(cidr: IpNet, keep_edges: bool) -> Self {
        let range = AddressRange::of_cidr(cidr);
        let mut free = FreeSet::nothing_free(range.first(), order_of(cidr));
        let edge = u128::from(keep_edges);
        // Saturated, since both ends of the address space are addresses.
        free.give(range.first().saturating_add(edge), range.last().saturating_sub(edge));
        Self { free, children: 0, cooling: 0 }
    }

    /// Returns true if nothing was cut out that isn't back.
    pub(crate) fn is_none(&self) -> bool {
        self.children == 0 && self.cooling == 0
    }
}

/// log2 of a block's size.
pub(crate) fn order_of(cidr: IpNet) -> u8 {
    cidr.max_prefix_len().saturating_sub(cidr.prefix_len())
}

/// Blocks that are cut from one thing and have something between two addresses.
pub(crate) fn blocks_within(
    blocks: &Tree<(ParentId, u128), (u128, PrefixId)>,
    parent: ParentId,
    first: u128,
    last: u128,
) -> impl Iterator<Item = (u128, (u128, PrefixId))> {
    let before = blocks.last_in((parent, 0)..(parent, first));
    let before = before.filter(move |(_, (end, _))| *end >= first);
    let others = blocks.range((parent, first)..=(parent, last));
    before.into_iter().chain(others).map(|((_, start), block)| (*start, *block))
}
