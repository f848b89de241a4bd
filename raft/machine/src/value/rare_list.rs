//! Lists in rows. Most lists are empty.

use std::ops::Deref;
use std::slice;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// List that is usually empty, and then takes only one word. The encoding is that of a `Vec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RareList<T>(Option<Box<Items<T>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Items<T> {
    items: Vec<T>,
}

impl<T> RareList<T> {
    /// Changes the items.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let mut items = self.0.take().map_or_else(Vec::new, |own| own.items);
        let result = change(&mut items);
        *self = items.into();
        result
    }
}

impl<T> From<Vec<T>> for RareList<T> {
    fn from(items: Vec<T>) -> Self {
        Self((!items.is_empty()).then(|| Box::new(Items { items })))
    }
}

impl<T> FromIterator<T> for RareList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<T> Deref for RareList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], |own| &own.items)
    }
}

impl<'a, T> IntoIterator for &'a RareList<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Default for RareList<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Serialize> Serialize for RareList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for RareList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_any_length_are_encoded_as_vectors() {
        for length in [0, 1, 2, 300] {
            let items: Vec<u32> = (1..=length).collect();
            let (own, plain) = (RareList::from(items.clone()), postcard::to_stdvec(&items).unwrap());
            assert_eq!(postcard::to_stdvec(&own).unwrap(), plain);
            assert_eq!(postcard::from_bytes::<RareList<u32>>(&plain).unwrap(), own);
            assert_eq!(*own, *items);
        }
    }

    #[test]
    fn a_list_without_items_takes_no_memory_of_its_own() {
        let mut list = RareList::from(vec![1]);
        assert_eq!(list.change(|items| items.pop()), Some(1));
        assert_eq!(list, RareList::default());
        assert!(list.0.is_none());
        assert_eq!(size_of::<RareList<u32>>(), size_of::<usize>());
    }
}
