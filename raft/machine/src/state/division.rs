//! Divisions: blocks cut from a pool or a prefix, and the free rest.

use crate::tree::Tree;
use ipam_api::address::AddressRange;
use ipnet::IpNet;

use crate::space::free_set::FreeSet;
use crate::value::id::{ParentId, PrefixId};

/// Free addresses and counts of a prefix from which others are, or recently were, cut.
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

    /// Returns true if the prefix has neither children nor cooling addresses.
    pub(crate) fn is_none(&self) -> bool {
        self.children == 0 && self.cooling == 0
    }
}

/// log2 of a block's size.
pub(crate) fn order_of(cidr: IpNet) -> u8 {
    cidr.max_prefix_len().saturating_sub(cidr.prefix_len())
}

/// Blocks of a parent that overlap the range between two addresses.
pub(crate) fn blocks_within(
    blocks: &Tree<(ParentId, u128), (u128, PrefixId)>,
    parent: ParentId,
    first: u128,
    last: u128,
) -> impl Iterator<Item = (u128, (u128, PrefixId))> {
    let reaches = move |(end, _): &(u128, PrefixId)| *end >= first;
    let overlapping = blocks.overlapping((parent, 0), (parent, first), (parent, last), reaches);
    overlapping.map(|((_, start), block)| (*start, *block))
}
