//! Registry of all checkers.

use super::Checker;
use super::availability::Availability;
use super::cni_idempotence::CniIdempotence;
use super::conservation::Conservation;
use super::coverage::Coverage;
use super::digests::Digests;
use super::event_streams::EventStreams;
use super::exits::Exits;
use super::read_order::ReadOrder;

/// Returns all checkers, `I1` first.
#[must_use]
pub fn all() -> Vec<Box<dyn Checker>> {
    vec![
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
