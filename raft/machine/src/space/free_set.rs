//! Free addresses of a block, for any fill level and any size.
//!
//! A path-compressed binary trie of what is *taken*, with bitmaps of 64 addresses at its leaves; all other
//! addresses are free. It answers "the lowest free address from x" and "the lowest free aligned block of 2^n
//! addresses" in steps that grow with the length of an address, not with how many are taken. Nodes are shared
//! between clones and copied on the way to a change.

use std::sync::Arc;

/// log2 of the addresses under one leaf's bitmap.
const LEAF_ORDER: u8 = 6;

/// A set of free addresses inside one aligned block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeSet {
    start: u128,
    order: u8,
    /// Taken addresses; none if all are free.
    root: Option<Arc<Node>>,
}

/// Aligned block of 2^order addresses with at least one taken.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    start: u128,
    order: u8,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// All addresses are taken.
    Taken,
    /// Some of 64 addresses are taken: a bit for each, never all of them.
    Leaf(u64),
    /// Both halves have taken addresses. `widest` is the order of the largest free aligned block inside.
    Branch { low: Arc<Node>, high: Arc<Node>, widest: u8 },
}

/// An aligned block: its first address, and log2 of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    start: u128,
    order: u8,
}

impl Block {
    fn last(self) -> u128 {
        self.start | low_bits(self.order)
    }

    fn contains(self, other: Block) -> bool {
        self.order >= other.order && (self.start ^ other.start) >> self.order == 0
    }

    fn low_half(self) -> Block {
        Block { start: self.start, order: self.order - 1 }
    }

    fn high_half(self) -> Block {
        Block { start: self.start | (1 << (self.order - 1)), order: self.order - 1 }
    }

    /// Returns the smallest aligned block that contains both.
    fn join(self, other: Block) -> Block {
        let differing = 128 - (self.start ^ other.start).leading_zeros();
        let order = u8::try_from(differing).unwrap_or(u8::MAX).max(self.order).max(other.order);
        Block { start: self.start & !low_bits(order), order }
    }

    /// The bits of a leaf that stand for this block.
    fn leaf_mask(self) -> u64 {
        let count = 1u32 << self.order;
        let bits = if count >= 64 { u64::MAX } else { (1u64 << count) - 1 };
        bits << (self.start & low_bits(LEAF_ORDER))
    }
}

/// The lowest `order` bits set. Orders stay below 128 (a subnet has at least 16 bits of prefix).
fn low_bits(order: u8) -> u128 {
    (1u128 << order) - 1
}

impl FreeSet {
    /// Block of 2^`order` addresses from `start`, all taken. `order` is below 128; a block smaller than a
    /// leaf is widened to one, and the addresses around it stay taken.
    #[must_use]
    pub fn nothing_free(start: u128, order: u8) -> Self {
        let order = order.max(LEAF_ORDER);
        let start = start & !low_bits(order);
        let root = Node { start, order, kind: Kind::Taken };
        Self { start, order, root: Some(Arc::new(root)) }
    }

    fn block(&self) -> Block {
        Block { start: self.start, order: self.order }
    }

    /// Makes the addresses from `first` to `last` free.
    pub fn give(&mut self, first: u128, last: u128) {
        for block in aligned_blocks(first, last) {
            if let Some(root) = &mut self.root
                && Node::give(root, block)
            {
                self.root = None;
            }
        }
    }

    /// Makes the addresses from `first` to `last` taken.
    pub fn take(&mut self, first: u128, last: u128) {
        for block in aligned_blocks(first, last) {
            match &mut self.root {
                Some(root) => Node::take(root, block),
                None => self.root = Some(Arc::new(Node::of(block))),
            }
        }
    }

    /// True if an address is free.
    #[must_use]
    pub fn is_free(&self, address: u128) -> bool {
        self.lowest_from(address) == Some(address)
    }

    /// The lowest free address that is not below `from`.
    #[must_use]
    pub fn lowest_from(&self, from: u128) -> Option<u128> {
        let slot = self.block();
        match &self.root {
            Some(root) => root.lowest_in(slot, from),
            None => Some(from.max(slot.start)).filter(|address| *address <= slot.last()),
        }
    }

    /// The first address of the lowest free aligned block of 2^`order` addresses.
    #[must_use]
    pub fn lowest_block(&self, order: u8) -> Option<u128> {
        let slot = self.block();
        match &self.root {
            Some(root) => root.block_in(slot, order),
            None => (order <= slot.order).then_some(slot.start),
        }
    }

    /// Order of the largest free aligned block.
    #[must_use]
    pub fn widest(&self) -> Option<u8> {
        self.root.as_ref().map_or(Some(self.order), |root| root.widest_in(self.order))
    }

    /// Nodes in memory, for tests of the memory promise.
    #[cfg(test)]
    fn nodes(&self) -> usize {
        fn count(node: &Node) -> usize {
            match &node.kind {
                Kind::Branch { low, high, .. } => 1 + count(low) + count(high),
                _ => 1,
            }
        }
        self.root.as_deref().map_or(0, count)
    }
}

impl Node {
    /// A node in which just this block is taken.
    fn of(block: Block) -> Node {
        if block.order >= LEAF_ORDER {
            return Node { start: block.start, order: block.order, kind: Kind::Taken };
        }
        let start = block.start & !low_bits(LEAF_ORDER);
        Node { start, order: LEAF_ORDER, kind: Kind::Leaf(block.leaf_mask()) }
    }

    fn block(&self) -> Block {
        Block { start: self.start, order: self.order }
    }

    fn take(node: &mut Arc<Node>, block: Block) {
        let own = node.block();
        if !own.contains(block) {
            if block.contains(own) {
                *node = Arc::new(Node::of(block));
            } else {
                let other = Arc::new(Node::of(block));
                let (low, high) =
                    if own.start < block.start { (node.clone(), other) } else { (other, node.clone()) };
                *node = Arc::new(Node::branch(own.join(block), low, high));
            }
            return;
        }
        if matches!(node.kind, Kind::Taken) {
            return;
        }
        let node = Arc::make_mut(node);
        match &mut node.kind {
            Kind::Taken => {}
            Kind::Leaf(taken) => {
                *taken |= block.leaf_mask();
                if block.order >= LEAF_ORDER || *taken == u64::MAX {
                    node.kind = Kind::Taken;
                }
            }
            Kind::Branch { low, high, .. } => {
                if block == own {
                    node.kind = Kind::Taken;
                    return;
                }
                let half = if own.low_half().contains(block) { low } else { high };
                Node::take(half, block);
                node.settle();
            }
        }
    }

    /// Frees a block; returns true if the node has no taken address left.
    fn give(node: &mut Arc<Node>, block: Block) -> bool {
        let own = node.block();
        if block.contains(own) {
            return true;
        }
        if !own.contains(block) {
            return false;
        }
        let this = Arc::make_mut(node);
        if matches!(this.kind, Kind::Taken) {
            this.kind = this.taken_in_parts();
        }
        match &mut this.kind {
            Kind::Taken => false,
            Kind::Leaf(taken) => {
                *taken &= !block.leaf_mask();
                *taken == 0
            }
            Kind::Branch { low, high, .. } => {
                let in_low = own.low_half().contains(block);
                let (half, other) = if in_low { (low, high) } else { (high, low) };
                if Node::give(half, block) {
                    *node = other.clone();
                } else {
                    this.settle();
                }
                false
            }
        }
    }

    /// Returns the taken block as two taken halves, so that a part of the block can be freed.
    fn taken_in_parts(&self) -> Kind {
        if self.order <= LEAF_ORDER {
            return Kind::Leaf(u64::MAX);
        }
        let half =
            |block: Block| Arc::new(Node { start: block.start, order: block.order, kind: Kind::Taken });
        let own = self.block();
        Kind::Branch { low: half(own.low_half()), high: half(own.high_half()), widest: 0 }
    }

    fn branch(block: Block, low: Arc<Node>, high: Arc<Node>) -> Node {
        let mut node =
            Node { start: block.start, order: block.order, kind: Kind::Branch { low, high, widest: 0 } };
        node.settle();
        node
    }

    /// Restores the invariants of a branch after one of its halves changed.
    fn settle(&mut self) {
        let half_order = self.order - 1;
        if let Kind::Branch { low, high, widest } = &mut self.kind {
            let whole = |half: &Node| half.order == half_order && matches!(half.kind, Kind::Taken);
            if whole(low) && whole(high) {
                self.kind = Kind::Taken;
                return;
            }
            *widest = low.widest_in(half_order).max(high.widest_in(half_order)).unwrap_or(0);
        }
    }

    /// Order of the largest free aligned block in a slot of `slot_order` that contains only this node.
    fn widest_in(&self, slot_order: u8) -> Option<u8> {
        if self.order < slot_order {
            return Some(slot_order - 1);
        }
        match &self.kind {
            Kind::Taken => None,
            Kind::Leaf(taken) => (0..=LEAF_ORDER).rev().find(|order| free_run(*taken, *order).is_some()),
            Kind::Branch { widest, .. } => Some(*widest),
        }
    }

    fn lowest_in(&self, slot: Block, from: u128) -> Option<u128> {
        let own = self.block();
        if from.max(slot.start) < own.start {
            return Some(from.max(slot.start));
        }
        if from <= own.last()
            && let Some(found) = self.lowest_inside(from)
        {
            return Some(found);
        }
        let behind = from.max(own.last().checked_add(1)?);
        (behind <= slot.last()).then_some(behind)
    }

    fn lowest_inside(&self, from: u128) -> Option<u128> {
        match &self.kind {
            Kind::Taken => None,
            Kind::Leaf(taken) => {
                let skipped = from.saturating_sub(self.start);
                let free = !taken & (u64::MAX << skipped);
                (free != 0).then(|| self.start + u128::from(free.trailing_zeros()))
            }
            Kind::Branch { low, high, .. } => {
                let (low_slot, high_slot) = (self.block().low_half(), self.block().high_half());
                if from < high_slot.start
                    && let Some(found) = low.lowest_in(low_slot, from)
                {
                    return Some(found);
                }
                high.lowest_in(high_slot, from)
            }
        }
    }

    fn block_in(&self, slot: Block, order: u8) -> Option<u128> {
        if order > slot.order {
            return None;
        }
        // The slot is free beside this node: blocks below it shrink towards it, blocks above it grow.
        let levels = self.order..slot.order;
        let below = levels.clone().rev().find(|level| (self.start >> level) & 1 == 1);
        if let Some(level) = below.filter(|level| *level >= order) {
            return Some(self.start & !low_bits(level + 1));
        }
        self.block_inside(order).or_else(|| {
            let level = levels.into_iter().find(|level| *level >= order && (self.start >> level) & 1 == 0)?;
            Some((self.start & !low_bits(level)) | (1 << level))
        })
    }

    fn block_inside(&self, order: u8) -> Option<u128> {
        match &self.kind {
            Kind::Taken => None,
            Kind::Leaf(taken) => free_run(*taken, order).map(|offset| self.start + u128::from(offset)),
            Kind::Branch { widest, .. } if *widest < order => None,
            Kind::Branch { low, high, .. } => low
                .block_in(self.block().low_half(), order)
                .or_else(|| high.block_in(self.block().high_half(), order)),
        }
    }
}

/// Offset of the lowest free aligned run of 2^`order` in a bitmap of taken addresses.
fn free_run(taken: u64, order: u8) -> Option<u32> {
    if order > LEAF_ORDER {
        return None;
    }
    let mut free = !taken;
    // Bit i of `aligned` is set where a run of this order may begin.
    let mut aligned = u64::MAX;
    for step in 0..order {
        free &= free >> (1u32 << step);
        aligned &= ALIGNED.get(usize::from(step)).copied().unwrap_or(0);
    }
    let runs = free & aligned;
    (runs != 0).then(|| runs.trailing_zeros())
}

/// Masks of the bits whose number has bit `step` clear.
const ALIGNED: [u64; 6] = [
    0x5555_5555_5555_5555,
    0x3333_3333_3333_3333,
    0x0f0f_0f0f_0f0f_0f0f,
    0x00ff_00ff_00ff_00ff,
    0x0000_ffff_0000_ffff,
    0x0000_0000_ffff_ffff,
];

/// A range as aligned blocks, lowest first; at most two for each bit of an address.
fn aligned_blocks(first: u128, last: u128) -> impl Iterator<Item = Block> {
    let mut next = (first <= last).then_some(first);
    std::iter::from_fn(move || {
        let start = next?;
        let left = last - start;
        let by_alignment = start.trailing_zeros().min(127);
        let by_size = 127 - left.saturating_add(1).leading_zeros().min(127);
        let order = u8::try_from(by_alignment.min(by_size)).unwrap_or(0);
        let block = Block { start, order };
        next = block.last().checked_add(1).filter(|following| *following <= last);
        Some(block)
    })
}

#[cfg(test)]
#[path = "free_set_tests.rs"]
mod tests;
