use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The same in a few lines: the numbers of the free addresses.
struct Naive {
    order: u8,
    free: BTreeSet<u128>,
}

impl Naive {
    fn lowest_block(&self, order: u8) -> Option<u128> {
        let size = 1u128 << order;
        (0..(1u128 << self.order) / size.min(1 << self.order))
            .map(|i| i * size)
            .find(|start| (*start..start + size).all(|n| self.free.contains(&n)))
            .filter(|_| order <= self.order)
    }
}

fn check_equal(set: &FreeSet, naive: &Naive, base: u128) {
    let size = 1u128 << naive.order;
    for n in 0..size {
        assert_eq!(set.is_free(base + n), naive.free.contains(&n), "is_free {n}");
        let lowest = naive.free.range(n..).next().map(|n| base + n);
        assert_eq!(set.lowest_from(base + n), lowest, "lowest_from {n}");
    }
    for order in 0..=naive.order {
        assert_eq!(set.lowest_block(order), naive.lowest_block(order).map(|n| base + n), "order {order}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn equals_a_set_of_numbers(
        order in 0u8..10,
        v6 in any::<bool>(),
        steps in proptest::collection::vec((any::<bool>(), any::<u16>(), any::<u16>()), 0..40),
    ) {
        let base = if v6 { 0x2001_0db8_u128 << 96 } else { 10 << 24 };
        let size = 1u128 << order;
        let mut set = FreeSet::nothing_free(base, order);
        let mut naive = Naive { order, free: BTreeSet::new() };
        for (give, a, b) in steps {
            let (a, b) = (u128::from(a) % size, u128::from(b) % size);
            let (first, last) = (a.min(b), a.max(b));
            if give {
                set.give(base + first, base + last);
                naive.free.extend(first..=last);
            } else {
                set.take(base + first, base + last);
                naive.free.retain(|n| !(first..=last).contains(n));
            }
        }
        check_equal(&set, &naive, base);
    }
}

#[test]
fn memory_is_in_proportion_to_what_is_taken() {
    let base = 0x2001_0db8_u128 << 96;
    let mut set = FreeSet::nothing_free(base, 96);
    set.give(base, base + low_bits(96));
    assert_eq!(set.nodes(), 0);
    let scattered =
        |i: u128| base + (i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) & low_bits(96));
    for i in 0..1000 {
        set.take(scattered(i), scattered(i));
    }
    assert!(set.nodes() < 2000, "{} nodes for 1000 scattered addresses", set.nodes());
    for i in 0..1000 {
        set.give(scattered(i), scattered(i));
    }
    assert_eq!(set.nodes(), 0);
    for i in 0..64_000 {
        set.take(base + i, base + i);
    }
    assert!(set.nodes() < 20, "{} nodes for 64000 addresses in a row", set.nodes());
    assert_eq!(set.lowest_from(0), Some(base + 64_000));
    assert_eq!(set.lowest_block(16), Some(base + 65_536));
}

#[test]
fn a_clone_is_not_touched_by_later_changes() {
    let mut set = FreeSet::nothing_free(0, 8);
    set.give(0, 255);
    let before = set.clone();
    set.take(0, 99);
    assert_eq!(before.lowest_from(0), Some(0));
    assert_eq!(set.lowest_from(0), Some(100));
}
