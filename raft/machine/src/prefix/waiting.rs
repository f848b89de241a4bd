//! Waiting prefix requests: queued while no block is free, and served in the order of all claims.
//!
//! A claim waits for the block of the first level that doesn't exist, in the parent of that level. ADR 14 has
//! the reasons.

use crate::apply::step::Step;
use crate::broken::broken;
use crate::command::validate::within;
use crate::command::{Action, Answer, Cause, Delegate, PendingPrefix, Refusal, Text};
use crate::event::EventKind;
use crate::invariant::ROW_OF_ID;
use crate::state::State;
use crate::state::id::{ParentId, PoolId, PrefixClaimId};
use crate::state::prefix_claims::Next;
use crate::state::row::{MissingBlock, PrefixClaim, PrefixOwner, WaitTarget};
use crate::value::cause::Counted;
use crate::value::condition::WaitReason;
use ipam_api::limits::WAITING_MAX;

impl Step<'_> {
    pub(crate) fn delegate_or_wait(&mut self, request: &Delegate) -> Result<Answer, Refusal> {
        match self.delegate(request) {
            Err(refusal) if !self.work.is_exceeded() => self.wait_for_prefix(request, refusal),
            done => done,
        }
    }

    /// Delegates or queues a listed prefix. The listed request replaces a waiting one of the same owner.
    pub(crate) fn delegate_listed(&mut self, listed: Delegate, source: ParentId) -> Result<(), Refusal> {
        let waiting = self.state.prefix_claim_for(&listed, source);
        let Some((id, claim)) = waiting.map(|(id, claim)| (id, claim.clone())) else {
            return self.delegate_or_wait(&listed).map(drop);
        };
        let request = listed.over(&claim.request);
        match self.delegate(&request) {
            Err(refusal) if request != claim.request && !self.work.is_exceeded() => {
                self.restate_prefix_claim(id, claim, request, refusal)
            }
            Err(refusal) if !self.work.is_exceeded() => self.wait_for_prefix(&request, refusal).map(drop),
            Err(refusal) => Err(refusal),
            Ok(_) => {
                // The owner holds the listed prefix; its waiting request had other terms and is no longer
                // listed.
                if self.state.prefix_claims.get(id).is_some() {
                    self.withdraw_prefix_claim(id);
                }
                Ok(())
            }
        }
    }

    /// Replaces the request of a claim, which keeps its place in the queue.
    fn restate_prefix_claim(
        &mut self,
        id: PrefixClaimId,
        claim: PrefixClaim,
        request: Delegate,
        refusal: Refusal,
    ) -> Result<(), Refusal> {
        let missing = self.state.missing_block(&request, (claim.source(), claim.pool), &refusal);
        let Some(missing) = missing else { return Err(refusal) };
        let why = why(Some(&missing));
        self.state.tick();
        if why != claim.why {
            self.emit(EventKind::PrefixWaits { of: self.state.awaited_prefix(id, &claim), why });
        }
        // The claim is served with the permissions of the caller that stated it last.
        let restated = PrefixClaim {
            request,
            credential: self.credential.clone(),
            principal: Text::clone(&self.origin.principal),
            request_id: Text::clone(&self.origin.request_id),
            why,
            cause: refusal.cause,
            missing: Some(missing),
            ..claim
        };
        self.put_prefix_claim(id, restated);
        Ok(())
    }

    /// Queues a refused request, or returns the refusal if waiting wouldn't help.
    fn wait_for_prefix(&mut self, request: &Delegate, refusal: Refusal) -> Result<Answer, Refusal> {
        let Some((source, pool)) = self.state.source_of(&request.from) else { return Err(refusal) };
        let missing = self.state.missing_block(request, (source, pool), &refusal);
        let why = why(missing.as_ref());
        let Some(last) = request.levels.last() else { return Err(refusal) };
        let owner = PrefixOwner { realm: request.realm.clone(), name: last.owner.clone() };
        if let Some((id, claim)) = self.state.prefix_claim_for(request, source) {
            if claim.request != *request {
                return Err(Cause::PrefixWaitsAlready { owner: owner.name, claim: id.get() }.into());
            }
            self.note_prefix_claim(id, missing, why, refusal.cause);
            return Ok(self.pending_prefix(id, true));
        }
        if missing.is_none() {
            return Err(refusal);
        }
        within(Counted::WaitingClaims, self.state.waiting_count() + 1, WAITING_MAX)?;
        let id = self.state.new_id();
        let claim = PrefixClaim {
            pool,
            owner,
            request: request.clone(),
            credential: self.credential.clone(),
            principal: Text::clone(&self.origin.principal),
            request_id: Text::clone(&self.origin.request_id),
            since_wall_ms: self.at.wall_ms,
            why,
            cause: refusal.cause,
            missing,
        };
        self.emit(EventKind::PrefixWaits { of: self.state.awaited_prefix(id, &claim), why });
        self.put_prefix_claim(id, claim);
        Ok(self.pending_prefix(id, false))
    }

    fn pending_prefix(&self, id: PrefixClaimId, repeated: bool) -> Answer {
        let pending = self.state.pending_prefix(id);
        let pending = pending.unwrap_or_else(|| broken(ROW_OF_ID, format!("prefix claim {id}")));
        Answer::PrefixPending { repeated, pending: Box::new(pending) }
    }

    /// Serves a claim whose block may be free now, or records the block that it lacks.
    pub(crate) fn serve_prefix_claim(&mut self, id: PrefixClaimId) {
        let claim = self.state.prefix_claims.named(id).clone();
        let spent = self.serving.work.spent();
        let served = self.for_waiter(&claim.credential, &claim.principal, &claim.request_id, |step| {
            step.try_prefix_claim(id, &claim.request)
        });
        let Err(refusal) = served else { return };
        if self.serving.work.is_exceeded() && spent > 0 {
            // Earlier claims used up the work budget; the next command begins with this claim.
            return;
        }
        let missing = self.state.missing_block(&claim.request, (claim.source(), claim.pool), &refusal);
        let why = why(missing.as_ref());
        self.note_prefix_claim(id, missing, why, refusal.cause);
    }

    fn try_prefix_claim(&mut self, id: PrefixClaimId, request: &Delegate) -> Result<(), Refusal> {
        self.permitted(&Action::Delegate(request.clone()))?;
        let plan = self.state.plan_prefixes(request, self.search()?)?;
        self.erase_prefix_claim(id);
        self.write_prefixes(request, &plan);
        Ok(())
    }
}

impl Delegate {
    /// Replaces a waiting request by the listed one. Without a length, the waiting request's terms stay.
    fn over(mut self, waiting: &Self) -> Self {
        for (level, old) in self.levels.iter_mut().zip(&waiting.levels) {
            if level.length.is_none() {
                (level.length, level.keep_edges) = (old.length, old.keep_edges);
                level.ttl_ms = level.ttl_ms.or(old.ttl_ms);
            }
        }
        self
    }
}

impl State {
    /// Block that a refused request lacks; none if no free block alone helps.
    fn missing_block(
        &self,
        request: &Delegate,
        (source, pool): (ParentId, PoolId),
        refusal: &Refusal,
    ) -> Option<MissingBlock> {
        let next = match self.next_missing(request, (source, pool)) {
            Next::Block(missing) => missing,
            Next::Unspecified(_) | Next::Complete => return None,
        };
        match refusal.cause.as_ref() {
            Cause::PoolDelegatesNot { why, .. } => {
                let closed = self.closed_reason(pool, &self.pools.named(pool).spec)?;
                let of = WaitTarget::Open(pool);
                (*why == closed.into()).then_some(MissingBlock { of, need: 1, ..next })
            }
            Cause::NoBlock { .. } | Cause::NoBlockInPrefix { .. } | Cause::PrefixEnded { .. } => {
                // A request that is refused despite a free block is refused for good.
                let is_missing = next.need > self.room(&next.of);
                is_missing.then_some(next)
            }
            _ => None,
        }
    }

    /// Returns a waiting prefix request in the form that its caller sees.
    #[must_use]
    pub fn pending_prefix(&self, id: PrefixClaimId) -> Option<PendingPrefix> {
        let claim = self.prefix_claims.get(id)?;
        let pool = &self.pools.named(claim.pool).spec;
        let (why, cause) = self.why_prefix_waits(claim);
        let source = claim.source();
        let above = self.prefix_chain(source.prefix()).into_iter().map(|id| self.prefixes.named(id));
        let mut path: Vec<_> = above.map(|row| row.owner.name.clone()).collect();
        path.reverse();
        path.extend(claim.request.levels.iter().map(|level| level.owner.clone()));
        let last = claim.request.levels.last();
        Some(PendingPrefix {
            claim: id,
            network: self.name_of_network(self.subnets.named(self.pools.named(claim.pool).subnet).network),
            subnet: pool.subnet.clone(),
            pool: pool.name.clone(),
            parent: (source != claim.pool.into()).then_some(source.prefix()),
            path,
            realm: claim.request.realm.clone(),
            length: last.and_then(|level| level.length),
            keep_edges: last.is_some_and(|level| level.keep_edges),
            ttl_ms: last.and_then(|level| level.ttl_ms),
            why,
            cause: Box::new(cause),
            since_wall_ms: claim.since_wall_ms,
            created_by: Text::clone(&claim.principal),
        })
    }
}

fn why(missing: Option<&MissingBlock>) -> WaitReason {
    match missing.map(|missing| &missing.of) {
        Some(WaitTarget::Open(_)) => WaitReason::PoolNotReady,
        Some(_) => WaitReason::PoolExhausted,
        None => WaitReason::AllocationFailed,
    }
}
