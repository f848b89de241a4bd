use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Checks the bounds of a node's keys, sizes, capacities, and equal depths; returns the depth.
fn check(node: &Node<u16, u32>, bound: Option<u16>, is_root: bool) -> usize {
    assert!(node.len() <= NODE_MAX && (is_root || node.len() > 0));
    assert!(bound.is_none_or(|bound| node.first_key().is_none_or(|first| first >= bound)));
    match node {
        Node::Leaf(entries) => {
            assert!(entries.is_sorted_by(|(one, _), (next, _)| one < next));
            assert!(entries.capacity() <= NODE_MAX, "{} for {}", entries.capacity(), entries.len());
            0
        }
        Node::Branch(children) => {
            assert!(children.is_sorted_by(|(one, _), (next, _)| one < next));
            assert!(children.capacity() <= NODE_MAX, "{} for {}", children.capacity(), children.len());
            let depths: Vec<usize> =
                children.iter().map(|(bound, child)| check(child, Some(*bound), false)).collect();
            assert!(depths.windows(2).all(|pair| pair[0] == pair[1]), "{depths:?}");
            depths[0] + 1
        }
    }
}

fn same(tree: &Tree<u16, u32>, map: &BTreeMap<u16, u32>) {
    check(&tree.root, None, true);
    assert_eq!((tree.len(), tree.is_empty()), (map.len(), map.is_empty()));
    assert!(tree.iter().eq(map.iter()));
    assert_eq!((tree.first(), tree.last()), (map.first_key_value(), map.last_key_value()));
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u16),
    Remove(u16),
    /// Removes all keys in a range.
    Clear(u16, u16),
    Append(u16),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = 0..600_u16;
    let op = prop_oneof![
        4 => key.clone().prop_map(Op::Insert),
        3 => key.clone().prop_map(Op::Remove),
        1 => (key.clone(), 0..100_u16).prop_map(|(from, count)| Op::Clear(from, from + count)),
        2 => (0..60_u16).prop_map(Op::Append),
    ];
    prop::collection::vec(op, 0..120)
}

proptest! {
    #[test]
    fn a_tree_agrees_with_a_plain_map_and_its_clones_stay_as_they_are(ops in ops(), from in 0..700_u16) {
        let (mut tree, mut map) = (Tree::default(), BTreeMap::new());
        let mut kept = Vec::new();
        for (number, op) in (0..).zip(ops) {
            kept.push((tree.clone(), map.clone()));
            match op {
                Op::Insert(key) => assert_eq!(tree.insert(key, number), map.insert(key, number)),
                Op::Remove(key) => assert_eq!(tree.remove(&key), map.remove(&key)),
                Op::Clear(from, to) => {
                    (from..to).for_each(|key| assert_eq!(tree.remove(&key), map.remove(&key)));
                }
                Op::Append(count) => {
                    let last = map.last_key_value().map_or(0, |(key, _)| *key);
                    for key in last.saturating_add(1)..=last.saturating_add(count) {
                        assert_eq!(tree.insert(key, number), map.insert(key, number));
                    }
                }
            }
            same(&tree, &map);
        }
        for key in 0..700 {
            assert_eq!(tree.get(&key), map.get(&key));
            assert_eq!(tree.last_in(..=key), map.range(..=key).next_back());
            assert_eq!(tree.last_in(..key), map.range(..key).next_back());
            let last = (from <= key).then(|| map.range(from..=key).next_back()).flatten();
            assert_eq!(tree.last_in(from..=key), last);
        }
        for bound in [Bound::Included(&from), Bound::Excluded(&from)] {
            assert!(tree.range((bound, Bound::Unbounded)).eq(map.range::<u16, _>((bound, Bound::Unbounded))));
            assert!(tree.range((Bound::Unbounded, bound)).eq(map.range::<u16, _>((Bound::Unbounded, bound))));
        }
        kept.iter().for_each(|(tree, map)| same(tree, map));
    }

    #[test]
    fn trees_are_merged_in_either_order(one in prop::collection::btree_set(0..900_u16, 0..300)) {
        let of = |is_even: bool| {
            let mut tree = Tree::default();
            for key in one.iter().filter(|key| (*key % 2 == 0) == is_even) {
                tree.insert(*key, 1);
            }
            tree
        };
        let map: BTreeMap<u16, u32> = one.iter().map(|key| (*key, 1)).collect();
        for is_even in [true, false] {
            let mut merged = of(is_even);
            merged.take_in(of(!is_even));
            same(&merged, &map);
        }
    }
}

#[test]
fn ascending_and_descending_keys_fill_all_leaves() {
    fn leaves(node: &Node<u16, u32>) -> usize {
        match node {
            Node::Leaf(_) => 1,
            Node::Branch(children) => children.iter().map(|(_, child)| leaves(child)).sum(),
        }
    }
    let of = |keys: &mut dyn Iterator<Item = u16>| {
        let mut tree = Tree::default();
        for key in keys {
            tree.insert(key, 0);
        }
        check(&tree.root, None, true);
        leaves(&tree.root)
    };
    assert_eq!(of(&mut (0..4096)), 4096 / NODE_MAX);
    // Behind a leaf that is full, since one before all others is split in its middle.
    let gap = of(&mut (0..16).chain((16..4096).rev()));
    assert!(gap <= 4096 / NODE_MAX + 1, "{gap}");
    // Scattered keys fill three quarters: halves alone would be 370 leaves.
    let scattered = of(&mut (0..4096_u16).map(|key| key.wrapping_mul(40503) % 4096));
    assert!(scattered <= 4096 / NODE_MAX * 4 / 3, "{scattered}");
}

#[test]
fn intervals_overlap_a_range_from_its_first_to_its_last_number() {
    let mut tree = Tree::default();
    for (first, last) in [(10, 19), (20, 29), (40, 40), (50, 59)] {
        tree.insert(first, last);
    }
    let overlapping = |first: u16, last: u16| -> Vec<u16> {
        let found = tree.overlapping(0, first, last, |end: &u32| *end >= u32::from(first));
        found.map(|(start, _)| *start).collect()
    };
    assert!(overlapping(0, 9).is_empty());
    assert_eq!(overlapping(5, 10), [10]);
    assert_eq!(overlapping(19, 20), [10, 20]);
    assert_eq!(overlapping(29, 49), [20, 40]);
    assert!(overlapping(30, 39).is_empty());
    assert_eq!(overlapping(55, 56), [50]);
    assert!(overlapping(60, u16::MAX).is_empty());
}
