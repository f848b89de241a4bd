//! Deserialization of a bounded number of items from lists of any length.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// First `N` items of a list; the others are skipped. `null` is an empty list, as in Go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First<T, const N: usize>(pub Vec<T>);

impl<T, const N: usize> Default for First<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct Items<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Items<T, N> {
    type Value = First<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(First::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < N {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(First(items)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(items))
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for First<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Items(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_list_is_skipped() {
        let read = |text| serde_json::from_str::<First<u8, 2>>(text).map(|First(items)| items).ok();
        assert_eq!(read("null"), Some(vec![]));
        assert_eq!(read("[]"), Some(vec![]));
        assert_eq!(read("[1]"), Some(vec![1]));
        assert_eq!(read("[1,2,\"three\",{\"four\":[]}]"), Some(vec![1, 2]));
        assert_eq!(read("7"), None);
    }
}
