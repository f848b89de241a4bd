//! Registry of all checkers.

use super::Checker;
use super::i01_exclusive_holds::ExclusiveHolds;
use super::i02_linearizable::Linearizable;
use super::i03_durable_answers::DurableAnswers;
use super::i04_no_resurrection::NoResurrection;
use super::i05_exactly_once::ExactlyOnce;

/// Returns all checkers, `I1` first.
#[must_use]
pub fn all() -> Vec<Box<dyn Checker>> {
    vec![
        Box::new(ExclusiveHolds),
        Box::new(Linearizable),
        Box::new(DurableAnswers),
        Box::new(NoResurrection),
        Box::new(ExactlyOnce),
    ]
}
