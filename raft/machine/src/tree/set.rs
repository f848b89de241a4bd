//! Ordered set with shared nodes: the keys of a map.

use crate::tree::map::{Range, Tree};
use std::ops::RangeBounds;

/// Ordered set that shares nodes with its clones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeSet<T: Ord + Clone>(Tree<T, ()>);

impl<T: Ord + Clone> Default for TreeSet<T> {
    fn default() -> Self {
        Self(Tree::default())
    }
}

impl<T: Ord + Clone> TreeSet<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All items in order.
    pub(crate) fn iter(&self) -> Items<'_, T> {
        self.range(..)
    }

    /// Items in a range, in order.
    pub(crate) fn range(&self, range: impl RangeBounds<T>) -> Items<'_, T> {
        Items(self.0.range(range))
    }

    /// The highest item in a range.
    pub(crate) fn last_in(&self, range: impl RangeBounds<T>) -> Option<&T> {
        self.0.last_in(range).map(|(item, ())| item)
    }

    pub(crate) fn first(&self) -> Option<&T> {
        self.0.first().map(|(item, ())| item)
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.0.last().map(|(item, ())| item)
    }

    /// Adds an item; returns false if it was there.
    pub(crate) fn insert(&mut self, item: T) -> bool {
        self.0.insert(item, ()).is_none()
    }

    /// Removes an item; returns false if it wasn't there.
    pub(crate) fn remove(&mut self, item: &T) -> bool {
        self.0.remove(item).is_some()
    }

    /// Adds the items of another set. The cost is proportional to the smaller one.
    pub(crate) fn take_in(&mut self, other: Self) {
        self.0.take_in(other.0);
    }
}

/// Items of a set in order.
pub(crate) struct Items<'a, T>(Range<'a, T, ()>);

impl<'a, T: Ord> Iterator for Items<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(item, ())| item)
    }
}
