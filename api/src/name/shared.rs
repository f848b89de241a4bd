//! Memory of names: each name is one pointer, and equal names can share their text.

use std::fmt;

use arcstr::ArcStr;
use serde::de::{Error, Visitor};

use crate::problem::{Code, Problem};

/// Text that clones share. Equal values can share it, too.
pub trait SharedText {
    /// The characters with their memory.
    fn text(&self) -> &ArcStr;

    /// Replaces the memory of the value by that of `text`, if both have the same characters.
    fn share(&mut self, text: &ArcStr);
}

/// Serde visitor of a name with its check. It allocates no intermediate string.
pub(super) struct NameVisitor<T>(pub(super) fn(&str) -> Result<T, Problem>);

impl<T> Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(|problem| match problem.code {
            Code::InvalidField => E::custom(problem.detail),
            // The error text begins with the problem's code, which `strict` extracts.
            _ => E::custom(problem),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{Name, ObjectName};

    #[test]
    fn a_name_takes_the_memory_of_an_equal_text_only() {
        let (node, other): (ObjectName, Name) = ("n1".parse().unwrap(), "n2".parse().unwrap());
        let mut realm: Name = "n1".parse().unwrap();
        assert!(!ArcStr::ptr_eq(realm.text(), node.text()));
        realm.share(other.text());
        assert_eq!(realm.as_str(), "n1");
        realm.share(node.text());
        assert!(ArcStr::ptr_eq(realm.text(), node.text()));
    }

    #[test]
    fn a_name_takes_one_pointer() {
        assert_eq!(size_of::<Option<Name>>(), size_of::<usize>());
    }
}
