//! Ordered map with shared nodes, for tables and indexes of up to millions of entries.
//!
//! A clone shares all nodes, and a change copies the nodes on the path to its entry. Keys of large tables
//! mostly ascend; an ascending key splits a full node at its end, so that the node before stays full.
//! Existing crates split nodes in halves, and compile to three times the code for each of the hundred types
//! of entries here.

use std::borrow::Borrow;
use std::fmt::{self, Debug};
use std::ops::{Bound, RangeBounds};
use std::slice;
use std::sync::Arc;

/// Entries of a leaf and children of a branch.
const NODE_MAX: usize = 16;
/// A smaller node is merged with one beside it, if both fit into one.
const NODE_MIN: usize = NODE_MAX / 3;

/// Items for which a node without room grows.
const GROWTH: usize = 4;

/// Ordered map that shares nodes with its clones.
#[derive(Clone)]
pub(crate) struct Tree<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

#[derive(Clone)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    /// Children, each with a lower bound of its keys. Never empty.
    Branch(Vec<Child<K, V>>),
}

/// Node with a lower bound of its keys.
type Child<K, V> = (K, Arc<Node<K, V>>);

/// Node that a full one has split off.
type Split<K, V> = Option<Child<K, V>>;

impl<K, V> Default for Tree<K, V> {
    fn default() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())), len: 0 }
    }
}

impl<K: Ord + Clone, V> Tree<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let place = entries.binary_search_by(|(own, _)| own.borrow().cmp(key)).ok()?;
                    return entries.get(place).map(|(_, value)| value);
                }
                Node::Branch(children) => node = &children.get(place_of(children, key))?.1,
            }
        }
    }

    /// All entries in order.
    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        self.iter_from(Bound::Unbounded)
    }

    /// Entries from a key on, in order.
    fn iter_from(&self, from: Bound<&K>) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter() };
        iter.descend(&self.root, from);
        iter
    }

    /// All keys in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Values in the order of their keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Entries with keys in a range, in order.
    pub(crate) fn range(&self, range: impl RangeBounds<K>) -> Range<'_, K, V> {
        Range { entries: self.iter_from(range.start_bound()), end: range.end_bound().cloned() }
    }

    /// The entry with the highest key in a range.
    pub(crate) fn last_in(&self, range: impl RangeBounds<K>) -> Option<(&K, &V)> {
        let found = self.root.last_before(range.end_bound())?;
        range.contains(found.0).then_some(found)
    }

    /// Intervals that share a number with `first..=last`, in order.
    ///
    /// Keys are the starts of disjoint intervals, and `lowest` is the least start: so at most one interval
    /// begins before `first` and may overlap. `reaches` returns true if that interval doesn't end before
    /// `first`.
    pub(crate) fn overlapping(
        &self,
        lowest: K,
        first: K,
        last: K,
        reaches: impl FnOnce(&V) -> bool,
    ) -> impl Iterator<Item = (&K, &V)> {
        let before = self.last_in(lowest..first.clone()).filter(|(_, interval)| reaches(interval));
        before.into_iter().chain(self.range(first..=last))
    }

    /// The entry with the lowest key.
    pub(crate) fn first(&self) -> Option<(&K, &V)> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => return entries.first().map(|(key, value)| (key, value)),
                Node::Branch(children) => node = &children.first()?.1,
            }
        }
    }

    /// The entry with the highest key.
    pub(crate) fn last(&self) -> Option<(&K, &V)> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => return entries.last().map(|(key, value)| (key, value)),
                Node::Branch(children) => node = &children.last()?.1,
            }
        }
    }
}

impl<K: Ord + Clone, V: Clone> Tree<K, V> {
    /// Adds an entry; returns the value that it replaces.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (old, split) = Node::insert(&mut self.root, key, value);
        if let Some((bound, right)) = split {
            let left = Arc::clone(&self.root);
            // No key is below the first one of the left node: `key` may only be above, or it was its first.
            let first = left.first_key().unwrap_or_else(|| bound.clone());
            self.root = Arc::new(Node::Branch(vec![(first, left), (bound, right)]));
        }
        self.len += usize::from(old.is_none());
        old
    }

    /// Returns the value of a key for changes.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        // Nothing is copied for a missing key.
        self.get(key)?;
        let mut node = &mut self.root;
        loop {
            match Arc::make_mut(node) {
                Node::Leaf(entries) => {
                    let place = entries.binary_search_by(|(own, _)| own.cmp(key)).ok()?;
                    return entries.get_mut(place).map(|(_, value)| value);
                }
                Node::Branch(children) => {
                    let place = place_of(children, key);
                    node = &mut children.get_mut(place)?.1;
                }
            }
        }
    }

    /// Changes the value of a key, which is the default one at first.
    pub(crate) fn change<R>(&mut self, key: K, change: impl FnOnce(&mut V) -> R) -> R
    where
        V: Default,
    {
        match self.get_mut(&key) {
            Some(value) => change(value),
            None => {
                let mut value = V::default();
                let result = change(&mut value);
                self.insert(key, value);
                result
            }
        }
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        // Nothing is copied for a missing key.
        self.get(key)?;
        let old = Node::remove(&mut self.root, key)?;
        self.len -= 1;
        while let Node::Branch(children) = &*self.root
            && let [(_, only)] = children.as_slice()
        {
            self.root = Arc::clone(only);
        }
        Some(old)
    }

    /// Adds the entries of another tree. The cost is proportional to the smaller one.
    pub(crate) fn take_in(&mut self, mut other: Self) {
        if self.len < other.len {
            std::mem::swap(self, &mut other);
        }
        for (key, value) in other.iter() {
            self.insert(key.clone(), value.clone());
        }
    }
}

/// Returns true if a key is before the end of a range.
fn is_before_end<K: Ord>(key: &K, end: Bound<&K>) -> bool {
    match end {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    }
}

/// Place of the child that has a key, or would have it.
fn place_of<Q: Ord + ?Sized, K: Borrow<Q>, V>(children: &[Child<K, V>], key: &Q) -> usize {
    children.partition_point(|(bound, _)| bound.borrow() <= key).saturating_sub(1)
}

/// Place of the child that takes a new key: behind a full leaf it is the next leaf, if that has room.
/// Descending keys would get a leaf each otherwise.
fn place_to_fill<K: Ord, V>(children: &[Child<K, V>], key: &K) -> usize {
    let place = place_of(children, key);
    let leaf = |place: usize| match children.get(place).map(|(_, node)| &**node) {
        Some(Node::Leaf(entries)) => Some(entries),
        _ => None,
    };
    let is_behind =
        |full: &Vec<(K, V)>| full.len() == NODE_MAX && full.last().is_some_and(|(last, _)| last < key);
    let next_has_room = || leaf(place + 1).is_some_and(|next| next.len() < NODE_MAX);
    place + usize::from(leaf(place).is_some_and(is_behind) && next_has_room())
}

/// Like [`place_to_fill`], after a full leaf has moved entries to a neighbor with room. So most leaves are
/// more than half full.
fn place_with_room<K: Ord + Clone, V: Clone>(children: &mut [Child<K, V>], key: &K) -> usize {
    let place = place_to_fill(children, key);
    let entries = |place: usize| match children.get(place).map(|(_, node)| &**node) {
        Some(Node::Leaf(entries)) => Some(entries),
        _ => None,
    };
    let is_between =
        |full: &Vec<(K, V)>| full.len() == NODE_MAX && full.last().is_some_and(|(last, _)| key < last);
    if !entries(place).is_some_and(is_between) {
        return place;
    }
    let has_room = |place: usize| entries(place).is_some_and(|beside| beside.len() + 1 < NODE_MAX);
    let left =
        if has_room(place + 1) { Some(place) } else { place.checked_sub(1).filter(|left| has_room(*left)) };
    match left {
        Some(left) => balance(children, left),
        None => return place,
    }
    place_of(children, key)
}

/// Moves entries between two leaves, so that both have equally many.
fn balance<K: Ord + Clone, V: Clone>(children: &mut [Child<K, V>], left: usize) {
    let Some([(_, one), (bound, other)]) = children.get_mut(left..left + 2) else { return };
    let (Node::Leaf(one), Node::Leaf(other)) = (Arc::make_mut(one), Arc::make_mut(other)) else { return };
    let middle = (one.len() + other.len()) / 2;
    match middle.checked_sub(one.len()) {
        Some(missing) => {
            let rest = other.split_off(missing);
            append(one, std::mem::replace(other, rest));
        }
        None => {
            let mut right = one.split_off(middle);
            append(&mut right, std::mem::take(other));
            *other = right;
        }
    }
    if let Some((first, _)) = other.first() {
        *bound = first.clone();
    }
}

/// Makes room for more items, at most for as many as a node has. A copied node has no room, and would double
/// its capacity beyond the items that it may ever have.
fn make_room<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        let growth = GROWTH.min(NODE_MAX.saturating_sub(items.len()));
        items.reserve_exact(more.max(growth));
    }
}

/// Moves items to the end of a node that has room for them.
fn append<T>(items: &mut Vec<T>, mut behind: Vec<T>) {
    make_room(items, behind.len());
    items.append(&mut behind);
}

/// Inserts an item into a node. A full node is split: at its end if the item belongs there, else in the
/// middle.
fn insert_at<T>(items: &mut Vec<T>, place: usize, item: T) -> Option<Vec<T>> {
    if items.len() < NODE_MAX {
        make_room(items, 1);
        items.insert(place, item);
        return None;
    }
    if place == items.len() {
        return Some(vec![item]);
    }
    let middle = NODE_MAX / 2;
    let mut right = items.split_off(middle);
    match place.checked_sub(middle) {
        Some(place) => right.insert(place, item),
        None => items.insert(place, item),
    }
    Some(right)
}

impl<K: Ord + Clone, V> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(children) => children.len(),
        }
    }

    fn first_key(&self) -> Option<K> {
        match self {
            Node::Leaf(entries) => entries.first().map(|(key, _)| key.clone()),
            Node::Branch(children) => children.first().map(|(bound, _)| bound.clone()),
        }
    }

    /// The entry with the highest key before the end of a range.
    fn last_before(&self, end: Bound<&K>) -> Option<(&K, &V)> {
        match self {
            Node::Leaf(entries) => {
                let behind = entries.partition_point(|(own, _)| is_before_end(own, end));
                entries.get(..behind)?.last().map(|(own, value)| (own, value))
            }
            Node::Branch(children) => {
                let behind = children.partition_point(|(bound, _)| is_before_end(bound, end));
                // All keys of the last child may be behind the end, since its bound may be below its first
                // key. Then the child before has only keys before the end.
                children.get(..behind)?.iter().rev().find_map(|(_, child)| child.last_before(end))
            }
        }
    }

    /// The node with a lower bound of its keys.
    fn bounded(self) -> Split<K, V> {
        self.first_key().map(|bound| (bound, Arc::new(self)))
    }
}

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    fn insert(node: &mut Arc<Self>, key: K, value: V) -> (Option<V>, Split<K, V>) {
        match Arc::make_mut(node) {
            Node::Leaf(entries) => match entries.binary_search_by(|(own, _)| own.cmp(&key)) {
                Ok(place) => {
                    let own = entries.get_mut(place);
                    (own.map(|(_, own)| std::mem::replace(own, value)), None)
                }
                Err(place) => {
                    let right = insert_at(entries, place, (key, value));
                    (None, right.and_then(|right| Node::Leaf(right).bounded()))
                }
            },
            Node::Branch(children) => {
                let place = place_with_room(children, &key);
                let Some((bound, child)) = children.get_mut(place) else { return (None, None) };
                if key < *bound {
                    *bound = key.clone();
                }
                let (old, split) = Node::insert(child, key, value);
                let right = split.and_then(|split| insert_at(children, place + 1, split));
                (old, right.and_then(|right| Node::Branch(right).bounded()))
            }
        }
    }

    fn remove(node: &mut Arc<Self>, key: &K) -> Option<V> {
        match Arc::make_mut(node) {
            Node::Leaf(entries) => {
                let place = entries.binary_search_by(|(own, _)| own.cmp(key)).ok()?;
                Some(entries.remove(place).1)
            }
            Node::Branch(children) => {
                let place = place_of(children, key);
                let (_, child) = children.get_mut(place)?;
                let old = Node::remove(child, key)?;
                match child.len() {
                    0 => drop(children.remove(place)),
                    small if small < NODE_MIN => merge(children, place),
                    _ => {}
                }
                Some(old)
            }
        }
    }

    /// Takes the items of the node behind this one, which is of the same level.
    fn append(&mut self, behind: Self) {
        match (self, behind) {
            (Node::Leaf(entries), Node::Leaf(behind)) => append(entries, behind),
            (Node::Branch(children), Node::Branch(behind)) => append(children, behind),
            _ => {}
        }
    }
}

/// Merges a child with one beside it, if both fit into one.
fn merge<K: Ord + Clone, V: Clone>(children: &mut Vec<Child<K, V>>, place: usize) {
    let len = |place: usize| children.get(place).map(|(_, node)| node.len());
    let fits = |left: usize| Some(len(left)? + len(left + 1)?).filter(|sum| *sum <= NODE_MAX).map(|_| left);
    let left = place.checked_sub(1).and_then(fits).or_else(|| fits(place));
    if let Some(left) = left {
        let (_, behind) = children.remove(left + 1);
        if let Some((_, node)) = children.get_mut(left) {
            Arc::make_mut(node).append(Arc::unwrap_or_clone(behind));
        }
    }
}

/// Entries in order.
pub(crate) struct Iter<'a, K, V> {
    /// Children that follow, the lowest level last.
    above: Vec<slice::Iter<'a, Child<K, V>>>,
    leaf: slice::Iter<'a, (K, V)>,
}

impl<'a, K: Ord, V> Iter<'a, K, V> {
    fn descend(&mut self, mut node: &'a Node<K, V>, from: Bound<&K>) {
        let is_before = |key: &K| match from {
            Bound::Included(from) => key < from,
            Bound::Excluded(from) => key <= from,
            Bound::Unbounded => false,
        };
        loop {
            match node {
                Node::Leaf(entries) => {
                    let place = entries.partition_point(|(key, _)| is_before(key));
                    self.leaf = entries.get(place..).unwrap_or_default().iter();
                    return;
                }
                Node::Branch(children) => {
                    let place = children.partition_point(|(bound, _)| is_before(bound)).saturating_sub(1);
                    let mut following = children.get(place..).unwrap_or_default().iter();
                    let Some((_, child)) = following.next() else { return };
                    self.above.push(following);
                    node = child;
                }
            }
        }
    }
}

impl<'a, K: Ord, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            match self.above.last_mut()?.next() {
                Some((_, child)) => self.descend(child, Bound::Unbounded),
                None => drop(self.above.pop()),
            }
        }
    }
}

/// Entries with keys in a range, in order.
pub(crate) struct Range<'a, K, V> {
    entries: Iter<'a, K, V>,
    end: Bound<K>,
}

impl<'a, K: Ord, V> Iterator for Range<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().filter(|(key, _)| is_before_end(*key, self.end.as_ref()))
    }
}

impl<K: Ord + Clone, V: PartialEq> PartialEq for Tree<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Ord + Clone, V: Eq> Eq for Tree<K, V> {}

impl<K: Ord + Clone + Debug, V: Debug> Debug for Tree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
