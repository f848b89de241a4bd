//! Space: addresses and prefixes of networks, with what is around and inside each.

use std::collections::BTreeMap;

use ipam_api::address::{AddressRange, Family};

use super::block::is_single;

/// Values by network and block. Each search costs a logarithm for each size of prefixes that is present.
#[derive(Debug, Clone)]
pub struct Space<'a, T> {
    values: BTreeMap<(&'a str, AddressRange), Vec<T>>,
    /// Sizes of prefixes, as numbers of host bits, with their counts.
    host_bits: BTreeMap<(Family, u32), usize>,
}

impl<T> Default for Space<'_, T> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), host_bits: BTreeMap::new() }
    }
}

impl<'a, T: Copy> Space<'a, T> {
    /// Adds a value at a block.
    pub fn add(&mut self, network: &'a str, block: AddressRange, value: T) {
        self.values.entry((network, block)).or_default().push(value);
        if !is_single(&block) {
            *self.host_bits.entry((block.family(), host_bits(&block))).or_default() += 1;
        }
    }

    /// Removes values of a block.
    pub fn remove(&mut self, network: &'a str, block: AddressRange, is_meant: impl Fn(&T) -> bool) {
        let Some(same) = self.values.get_mut(&(network, block)) else { return };
        let before = same.len();
        same.retain(|value| !is_meant(value));
        let removed = before - same.len();
        if same.is_empty() {
            self.values.remove(&(network, block));
        }
        let size = (block.family(), host_bits(&block));
        if let Some(count) = self.host_bits.get_mut(&size) {
            *count = count.saturating_sub(removed);
            if *count == 0 {
                self.host_bits.remove(&size);
            }
        }
    }

    /// Values at exactly this block.
    pub fn at(&self, network: &'a str, block: AddressRange) -> impl Iterator<Item = T> {
        self.values.get(&(network, block)).into_iter().flatten().copied()
    }

    /// Values at larger blocks that contain this one.
    pub fn around(&self, network: &'a str, block: AddressRange) -> impl Iterator<Item = T> {
        let sizes = self.host_bits.keys().filter(move |(family, _)| *family == block.family());
        let outer = sizes.filter_map(move |(_, bits)| around(&block, *bits));
        outer.flat_map(move |outer| self.at(network, outer))
    }

    /// Values at smaller blocks inside this one.
    pub fn inside(&self, network: &'a str, block: AddressRange) -> impl Iterator<Item = T> {
        let from = (network, AddressRange::single(block.first_address()));
        let behind = self.values.range(from..).take_while(move |((of, inner), _)| {
            *of == network && inner.family() == block.family() && inner.first() <= block.last()
        });
        let inner = behind.filter(move |((_, inner), _)| *inner != block && block.contains(inner));
        inner.flat_map(|(_, values)| values).copied()
    }
}

fn host_bits(block: &AddressRange) -> u32 {
    (block.last() - block.first()).count_ones()
}

/// The strictly larger block of a size that contains another.
fn around(block: &AddressRange, bits: u32) -> Option<AddressRange> {
    if bits <= host_bits(block) {
        return None;
    }
    let mask = 1_u128.checked_shl(bits).map_or(u128::MAX, |size| size - 1);
    let (first, last) = (block.first() & !mask, block.first() | mask);
    let family = block.family();
    AddressRange::new(family.address(first), family.address(last)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outer_and_inner_blocks_are_found_in_both_families() {
        let range = |text: &str| text.parse::<AddressRange>().unwrap();
        let mut space = Space::default();
        for (value, text) in [
            "10.0.0.0/24",
            "10.0.0.16/28",
            "10.0.0.17",
            "10.0.1.0",
            "fd00::/64",
            "fd00::1",
            "fd00:0:0:1::/64",
        ]
        .into_iter()
        .enumerate()
        {
            space.add("lab", range(text), value);
        }
        let around = |text: &str| space.around("lab", range(text)).collect::<Vec<_>>();
        let inside = |text: &str| space.inside("lab", range(text)).collect::<Vec<_>>();
        assert_eq!(around("10.0.0.17"), [1, 0]);
        assert!(around("10.0.1.0").is_empty());
        assert_eq!(around("fd00::1"), [4]);
        assert_eq!(inside("10.0.0.0/24"), [1, 2]);
        assert_eq!(inside("fd00::/48"), [4, 5, 6]);
        assert_eq!(space.around("other", range("10.0.0.17")).count(), 0);
        space.remove("lab", range("10.0.0.16/28"), |_| true);
        assert_eq!(space.around("lab", range("10.0.0.17")).collect::<Vec<_>>(), [0]);
    }
}
