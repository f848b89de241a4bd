//! Values that a handler records for the headers of its response.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
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
    timing: OnceLock<ProposalTiming>,
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

    pub(super) fn note_timing(&self, timing: ProposalTiming) {
        // A retried merge proposes more than once; only the first timing is kept.
        let _ = self.0.timing.set(timing);
    }

    /// Value of the header `Server-Timing`.
    pub(super) fn timing(&self, total: Duration) -> String {
        let part = |name: &str, took: Duration| format!("{name};dur={:.3}, ", took.as_secs_f64() * 1000.0);
        let parts = match self.0.timing.get() {
            None => String::new(),
            Some(ProposalTiming::Forwarded(forward)) => part("forward", *forward),
            Some(ProposalTiming::Here { queue, log, apply }) => {
                [part("queue", *queue), part("log", *log), part("apply", *apply)].concat()
            }
        };
        format!("{parts}total;dur={:.3}", total.as_secs_f64() * 1000.0)
    }
}

impl<S: Sync> FromRequestParts<S> for Notes {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(parts))
    }
}
