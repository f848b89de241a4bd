//! Registry of all checkers.

use super::Checker;
use super::availability::Availability;
use super::cni_idempotence::CniIdempotence;
use super::conservation::Conservation;
use super::coverage::Coverage;
use super::digests::Digests;
use super::durable_answers::DurableAnswers;
use super::event_streams::EventStreams;
use super::exactly_once::ExactlyOnce;
use super::exclusive_holds::ExclusiveHolds;
use super::exits::Exits;
use super::linearizable::Linearizable;
use super::no_leaks::NoLeaks;
use super::no_live_reclaim::NoLiveReclaim;
use super::no_resurrection::NoResurrection;
use super::own_ends::OwnEnds;
use super::read_order::ReadOrder;
use super::whole_effects::WholeEffects;

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
        Box::new(ReadOrder),
        Box::new(Digests),
        Box::new(Conservation),
        Box::new(Exits),
        Box::new(Availability),
        Box::new(CniIdempotence),
        Box::new(EventStreams),
        Box::new(Coverage),
    ]
}
