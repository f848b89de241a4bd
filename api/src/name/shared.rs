//! Memory of names: one pointer each, and shared between equal names.

use std::fmt;

use arcstr::ArcStr;
use serde::de::{Error, Visitor};

use crate::problem::{Code, Problem};

/// Text that clones share. Equal values can share it, too.
pub trait SharedText {
    /// The characters with their memory.
    fn text(&self) -> &ArcStr;

    /// Takes the memory of a text in place of its own, if both have the same characters.
    fn share(&mut self, text: &ArcStr);
}

/// Reader of a name, with the function that checks it. It makes no string in between.
pub(super) struct NameVisitor<T>(pub(super) fn(&str) -> Result<T, Problem>);

impl<T> Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(|problem| match problem.code {
            Code::InvalidField => E::custom(problem.detail),
            // With its code, which `strict` finds again.
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
