//! Values that a handler records for the headers of its response.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use ipam_raft::node::ProposalTiming;

/// Notes on one request, shared by its handler and the layers around it.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Notes(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// True for a dry run.
    dry_run: AtomicBool,
    /// True if the response repeats a stored outcome.
    replayed: AtomicBool,
    /// True if the caller is authenticated: the response may contain more than a refusal.
    known: AtomicBool,
    /// Phases of the proposals of the request, each with the sum of its durations.
    phases: Mutex<Vec<(&'static str, Duration)>>,
}

impl Notes {
    /// Notes of a request; new ones if no layer surrounds the handler.
    pub(in crate::http) fn of(parts: &Parts) -> Self {
        parts.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    pub(super) fn note_dry_run(&self) {
        self.0.dry_run.store(true, Relaxed);
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.0.dry_run.load(Relaxed)
    }

    pub(super) fn note_replayed(&self) {
        self.0.replayed.store(true, Relaxed);
    }

    pub(super) fn is_replayed(&self) -> bool {
        self.0.replayed.load(Relaxed)
    }

    pub(in crate::http) fn note_known(&self) {
        self.0.known.store(true, Relaxed);
    }

    pub(in crate::http) fn is_known(&self) -> bool {
        self.0.known.load(Relaxed)
    }

    /// Adds the timing of a proposal to those before it: a retried merge proposes more than once.
    pub(super) fn note_timing(&self, timing: ProposalTiming) {
        match timing {
            ProposalTiming::Forwarded(forward) => self.add_phase("forward", forward),
            ProposalTiming::Here { queue, log, apply } => {
                self.add_phase("queue", queue);
                self.add_phase("log", log);
                self.add_phase("apply", apply);
            }
        }
    }

    fn add_phase(&self, name: &'static str, took: Duration) {
        let mut phases = self.phases();
        match phases.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += took,
            None => phases.push((name, took)),
        }
    }

    /// Value of the header `Server-Timing`: the phases, and the total that includes them.
    pub(super) fn timing(&self, total: Duration) -> String {
        let part = |(name, took): (&str, Duration)| format!("{name};dur={:.3}", took.as_secs_f64() * 1000.0);
        let mut parts: Vec<String> = self.phases().iter().copied().map(part).collect();
        parts.push(part(("total", total)));
        parts.join(", ")
    }

    fn phases(&self) -> MutexGuard<'_, Vec<(&'static str, Duration)>> {
        self.0.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Sync> FromRequestParts<S> for Notes {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timings_of_all_proposals_of_a_request_are_added() {
        let ms = Duration::from_millis;
        let notes = Notes::default();
        assert_eq!(notes.timing(ms(1)), "total;dur=1.000");
        notes.note_timing(ProposalTiming::Here { queue: ms(1), log: ms(2), apply: ms(3) });
        notes.note_timing(ProposalTiming::Forwarded(ms(4)));
        notes.note_timing(ProposalTiming::Here { queue: ms(10), log: ms(20), apply: ms(30) });
        assert_eq!(
            notes.timing(ms(90)),
            "queue;dur=11.000, log;dur=22.000, apply;dur=33.000, forward;dur=4.000, total;dur=90.000"
        );
    }
}
