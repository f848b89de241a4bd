//! Registry of all checkers.

use super::Checker;
use super::conservation::Conservation;
use super::digests::Digests;
use super::exits::Exits;
use super::read_order::ReadOrder;

/// Returns all checkers, `I1` first.
#[must_use]
pub fn all() -> Vec<Box<dyn Checker>> {
    vec![Box::new(ReadOrder), Box::new(Digests), Box::new(Conservation), Box::new(Exits)]
}
