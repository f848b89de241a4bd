//! Lists of ids in rows. Most lists have one id.

use std::fmt::{self, Debug};
use std::ops::Deref;
use std::slice;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::id::Id;

/// List of ids, in which a single id takes no memory of its own. The encoding is that of a `Vec`.
pub struct IdList<T>(Ids<T>);

enum Ids<T> {
    One(Id<T>),
    /// None, or several.
    Others(Box<[Id<T>]>),
}

impl<T> IdList<T> {
    /// The ids.
    #[must_use]
    pub fn as_slice(&self) -> &[Id<T>] {
        match &self.0 {
            Ids::One(one) => slice::from_ref(one),
            Ids::Others(others) => others,
        }
    }

    /// Changes the ids.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut Vec<Id<T>>) -> R) -> R {
        let mut ids = self.to_vec();
        let result = change(&mut ids);
        *self = ids.into();
        result
    }
}

impl<T> From<Vec<Id<T>>> for IdList<T> {
    fn from(ids: Vec<Id<T>>) -> Self {
        Self(match ids.as_slice() {
            [one] => Ids::One(*one),
            _ => Ids::Others(ids.into_boxed_slice()),
        })
    }
}

impl<T> Serialize for IdList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for IdList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl<T> FromIterator<Id<T>> for IdList<T> {
    fn from_iter<I: IntoIterator<Item = Id<T>>>(ids: I) -> Self {
        Vec::from_iter(ids).into()
    }
}

impl<T> Deref for IdList<T> {
    type Target = [Id<T>];

    fn deref(&self) -> &[Id<T>] {
        self.as_slice()
    }
}

impl<'a, T> IntoIterator for &'a IdList<T> {
    type Item = &'a Id<T>;
    type IntoIter = slice::Iter<'a, Id<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Default for IdList<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> Clone for IdList<T> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Ids::One(one) => Ids::One(*one),
            Ids::Others(others) => Ids::Others(others.clone()),
        })
    }
}

impl<T> PartialEq for IdList<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T> Eq for IdList<T> {}

impl<T> Debug for IdList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::row::Allocation;

    fn list(numbers: impl IntoIterator<Item = u64>) -> IdList<Allocation> {
        numbers.into_iter().map(Id::new).collect()
    }

    #[test]
    fn lists_of_any_length_are_encoded_as_vectors() {
        for length in [0, 1, 2, 300] {
            let ids: Vec<Id<Allocation>> = (1..=length).map(Id::new).collect();
            let (own, plain) = (list(1..=length), postcard::to_stdvec(&ids).unwrap());
            assert_eq!(postcard::to_stdvec(&own).unwrap(), plain);
            assert_eq!(postcard::from_bytes::<IdList<Allocation>>(&plain).unwrap(), own);
            assert_eq!(*own, *ids);
        }
    }

    #[test]
    fn a_list_changes_its_form_with_its_length() {
        let mut ids = list([1]);
        ids.change(|ids| ids.push(Id::new(2)));
        assert_eq!(ids, list([1, 2]));
        assert_eq!(ids.change(|ids| ids.pop()), Some(Id::new(2)));
        assert!(matches!(ids.0, Ids::One(_)));
        ids.change(|ids| ids.clear());
        assert_eq!(ids, list([]));
    }

    #[test]
    fn a_list_takes_two_words() {
        assert_eq!(size_of::<IdList<Allocation>>(), 16);
    }
}
