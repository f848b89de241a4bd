//! Registry of all checkers.

use super::Checker;
use super::i01_exclusive_holds::ExclusiveHolds;
use super::i02_linearizable::Linearizable;
use super::i03_durable_answers::DurableAnswers;
use super::i04_no_resurrection::NoResurrection;
use super::i05_exactly_once::ExactlyOnce;
use super::i06_whole_effects::WholeEffects;
use super::i07_no_live_reclaim::NoLiveReclaim;
use super::i08_no_leaks::NoLeaks;
use super::i09_own_ends::OwnEnds;

/// Returns all checkers, `I1` first.
#[must_use]
pub fn all() -> Vec<Box<dyn Checker>> {
    vec![
        Box::new(ExclusiveHolds),
        Box::new(Linearizable),
        Box::new(DurableAnswers),
        Box::new(NoResurrection),
        Box::new(ExactlyOnce),
        Box::new(WholeEffects),
        Box::new(NoLiveReclaim),
        Box::new(NoLeaks),
        Box::new(OwnEnds),
    ]
}
