//! Registry of all checkers.

use super::Checker;

/// Returns all checkers, `I1` first.
#[must_use]
pub fn all() -> Vec<Box<dyn Checker>> {
    vec![
        Box::new(super::i01_exclusive_holds::ExclusiveHolds),
        Box::new(super::i02_linearizable::Linearizable),
    ]
}
