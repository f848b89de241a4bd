//! Waiting claims: a request with `wait` is queued while pools are exhausted. The command that frees the
//! missing addresses also serves the claim, in the same `apply`.
//!
//! A claim waits for the exhausted pools of the first family, or for quota, and stores the number of
//! addresses that it needs of each. So a freed address finds the first claim that it serves without examining
//! others; a claim that was tried in vain moves to another target and isn't found again before that changes.
//! ADR 14 has the reasons.

use crate::allocate::choosing::Choosing;
use crate::apply::step::Step;
use crate::apply::work::Search;
use crate::broken::broken;
use crate::command::validate::within;
use crate::command::{Action, Allocate, Cause, Pending, Refusal, Text};
use crate::event::EventKind;
use crate::invariant::CLAIM_OF_WAITER;
use crate::seeded::SeededBug;
use crate::state::State;
use crate::state::id::EndpointId;
use crate::state::key::Waiter;
use crate::state::row::{WaitTarget, Waiting};
use crate::value::cause::{Closed, Counted};
use crate::value::condition::WaitReason;
use ipam_api::Code;
use ipam_api::limits::WAITING_MAX;
use ipam_api::name::Name;

impl State {
    /// Present reason for waiting: pools may have been opened or closed since the last attempt.
    #[must_use]
    pub fn why_waiting(&self, waiting: &Waiting) -> (WaitReason, Cause) {
        let as_it_was = || (waiting.why, Cause::clone(&waiting.cause));
        let pools = waiting.missing.iter().filter_map(|(of, _)| match of {
            WaitTarget::Pool(pool) => {
                let spec = &self.pools.get(*pool)?.spec;
                Some((&spec.name, self.closed_reason(*pool, spec)))
            }
            WaitTarget::Quota(..) | WaitTarget::Block(_) | WaitTarget::Open(_) => None,
        });
        let pools: Vec<_> = pools.collect();
        let closed: Vec<(Name, Closed)> =
            pools.iter().filter_map(|(name, why)| Some((Name::clone(name), (*why)?))).collect();
        match waiting.why {
            _ if pools.is_empty() => as_it_was(),
            WaitReason::PoolExhausted | WaitReason::PoolNotReady if closed.len() == pools.len() => {
                (WaitReason::PoolNotReady, Cause::PoolsClosed { pools: closed })
            }
            WaitReason::PoolNotReady if closed.is_empty() => {
                let pools = pools.iter().map(|(name, _)| Name::clone(name)).collect();
                (WaitReason::PoolExhausted, Cause::NothingFree { pools })
            }
            _ => as_it_was(),
        }
    }
}

impl Step<'_> {
    /// Queues a refused request, or returns the refusal if waiting wouldn't help.
    pub(crate) fn wait(
        &mut self,
        request: &Allocate,
        endpoint: Option<EndpointId>,
        refusal: Refusal,
    ) -> Result<Pending, Refusal> {
        // The missing resources are searched among the rejected pools again, with a work budget of their own.
        let search = Search { work: &self.serving.missing, ..self.search()? };
        let choosing = Choosing::of(self.state, request, endpoint, search);
        if choosing.holds_some() {
            // Existing allocations stay, and are no reason to wait.
            return Err(refusal);
        }
        let missing = choosing.missing();
        search.work.check()?;
        if let Some((endpoint, waiting)) = endpoint.and_then(|id| Some((id, self.state.waiting(id)?))) {
            if waiting.request != *request {
                return Err(Cause::WaitsAlready { endpoint: request.endpoint.clone() }.into());
            }
            let why = why(&refusal, &missing);
            self.note_waiting(endpoint, missing, why, refusal.cause);
            return Ok(self.pending(endpoint, true));
        }
        if missing.is_empty() {
            return Err(refusal);
        }
        within(Counted::WaitingClaims, self.state.waiting_count() + 1, WAITING_MAX)?;
        self.state.check_waiting_of(search.grant)?;
        let endpoint = match endpoint {
            Some(id) => id,
            None => {
                let id = self.state.new_id();
                let row = self.new_endpoint(id, request);
                self.put_endpoint(id, row);
                id
            }
        };
        let order = self.state.tick();
        let waiting = Waiting {
            order,
            request: request.clone(),
            credential: self.credential.clone(),
            principal: Text::clone(&self.origin.principal),
            request_id: Text::clone(&self.origin.request_id),
            since_wall_ms: self.at.wall_ms,
            why: why(&refusal, &missing),
            cause: refusal.cause,
            missing,
        };
        self.emit(EventKind::Waits { endpoint: request.endpoint.clone(), why: waiting.why });
        self.put_waiting(endpoint, Some(waiting));
        Ok(self.pending(endpoint, false))
    }

    fn pending(&self, endpoint: EndpointId, repeated: bool) -> Pending {
        let waiting = self.state.waiting(endpoint);
        Pending {
            repeated,
            why: waiting.map_or(WaitReason::AllocationFailed, |waiting| waiting.why),
            cause: waiting.map_or_else(|| Box::new(Cause::AwaitedPoolsGone), |waiting| waiting.cause.clone()),
            since_wall_ms: waiting.map_or(0, |waiting| waiting.since_wall_ms),
        }
    }

    /// Serves the oldest claims that can be served now. A bounded number at once; later commands serve the
    /// rest.
    pub(crate) fn serve_waiting(&mut self) {
        if SeededBug::ForgottenClaim.is_on() {
            return;
        }
        while let Some((order, _)) = self.state.index.ready_waiters.first() {
            let Some(waiter) = self.state.index.waiting.get(order).copied() else {
                broken(CLAIM_OF_WAITER, format!("place {order}"))
            };
            if !self.serving.begin_try() {
                return;
            }
            match waiter {
                Waiter::Endpoint(endpoint) => self.serve(endpoint),
                Waiter::Prefix(claim) => self.serve_prefix_claim(claim),
            }
        }
    }

    fn serve(&mut self, endpoint: EndpointId) {
        let Some(waiting) = self.state.waiting(endpoint).cloned() else { return };
        let spent = self.serving.work.spent();
        let refused = self.for_waiter(&waiting.credential, &waiting.principal, &waiting.request_id, |step| {
            let refusal = step.try_waiting(endpoint, &waiting).err()?;
            let missing = step
                .search()
                .map(|search| Choosing::of(step.state, &waiting.request, Some(endpoint), search).missing());
            Some((refusal, missing.unwrap_or_default()))
        });
        let Some((refusal, missing)) = refused else { return };
        if self.serving.work.is_exceeded() && spent > 0 {
            // Earlier claims used up the work budget; the next command begins with this claim.
            return;
        }
        let why = why(&refusal, &missing);
        self.note_waiting(endpoint, missing, why, refusal.cause);
    }

    fn try_waiting(&mut self, endpoint: EndpointId, waiting: &Waiting) -> Result<(), Refusal> {
        let request = &waiting.request;
        self.permitted(&Action::Allocate(request.clone()))?;
        let plan = Choosing::of(self.state, request, Some(endpoint), self.search()?).plan()?;
        self.give(request, Some(endpoint), plan);
        Ok(())
    }
}

fn why(refusal: &Refusal, missing: &[(WaitTarget, u32)]) -> WaitReason {
    match refusal.code() {
        _ if missing.is_empty() => WaitReason::AllocationFailed,
        Code::PoolExhausted => WaitReason::PoolExhausted,
        Code::QuotaExceeded => WaitReason::QuotaExceeded,
        _ => WaitReason::PoolNotReady,
    }
}
