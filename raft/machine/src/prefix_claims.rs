//! Rows of prefix claims: writing, redirecting to another block, and ending.

use crate::apply::step::Step;
use crate::command::Cause;
use crate::event::{AwaitedPrefix, EventKind};
use crate::state::State;
use crate::state::id::{ParentId, PrefixClaimId};
use crate::state::prefix_claims::Next;
use crate::state::row::{MissingBlock, PrefixClaim, PrefixOwner};
use crate::value::condition::WaitReason;
use std::sync::Arc;

impl State {
    /// Returns a claim in the form that events show.
    pub(crate) fn awaited_prefix(&self, id: PrefixClaimId, claim: &PrefixClaim) -> AwaitedPrefix {
        let pool = self.pools.named(claim.pool).spec.name.clone();
        AwaitedPrefix { claim: id, pool, owner: claim.owner.clone() }
    }
}

impl Step<'_> {
    /// Writes a claim.
    pub(crate) fn put_prefix_claim(&mut self, id: PrefixClaimId, claim: PrefixClaim) {
        let old = self.state.prefix_claims.get(id).and_then(|old| old.missing.clone());
        let new = claim.missing.clone();
        self.state.write(id, claim);
        for MissingBlock { of, .. } in old.iter().chain(&new) {
            self.state.refresh_waiter(of);
        }
    }

    /// Removes a claim that was served or withdrawn.
    pub(crate) fn erase_prefix_claim(&mut self, id: PrefixClaimId) -> Arc<PrefixClaim> {
        let claim = self.state.erase_named::<PrefixClaim>(id);
        if let Some(missing) = &claim.missing {
            self.state.refresh_waiter(&missing.of);
        }
        claim
    }

    /// Records the block that a claim waits for, and reports a changed reason.
    pub(crate) fn note_prefix_claim(
        &mut self,
        id: PrefixClaimId,
        missing: Option<MissingBlock>,
        why: WaitReason,
        cause: Box<Cause>,
    ) {
        let old = self.state.prefix_claims.named(id).clone();
        // A change of the cause's counts alone isn't worth a write.
        if (&missing, why) == (&old.missing, old.why) {
            return;
        }
        self.state.tick();
        if why != old.why {
            self.emit(EventKind::PrefixWaits { of: self.state.awaited_prefix(id, &old), why });
        }
        self.put_prefix_claim(id, PrefixClaim { missing, why, cause, ..old });
    }

    /// Ends a claim without a prefix.
    pub(crate) fn withdraw_prefix_claim(&mut self, id: PrefixClaimId) {
        self.state.tick();
        let claim = self.erase_prefix_claim(id);
        self.emit(EventKind::PrefixWithdrawn { of: self.state.awaited_prefix(id, &claim) });
    }

    /// Withdraws the claims on a deleted prefix.
    pub(crate) fn withdraw_prefix_claims_from(&mut self, source: ParentId) {
        let claims: Vec<PrefixClaimId> = self.state.prefix_claims_from(source).collect();
        for id in claims {
            self.withdraw_prefix_claim(id);
        }
    }

    /// Redirects claims to the block that they need next, after a prefix on their path was deleted.
    pub(crate) fn turn_claims_for_block_of(&mut self, parent: ParentId) {
        for id in self.state.prefix_claims_for_block_of(parent) {
            self.turn_prefix_claim(id);
        }
    }

    /// Redirects claims to the block that they need next, after another request created this prefix.
    pub(crate) fn turn_claims_awaiting(&mut self, parent: ParentId, owner: &PrefixOwner) {
        for id in self.state.prefix_claims_awaiting(parent, owner) {
            self.turn_prefix_claim(id);
        }
    }

    fn turn_prefix_claim(&mut self, id: PrefixClaimId) {
        let claim = self.state.prefix_claims.named(id).clone();
        match self.state.next_missing(&claim.request, (claim.source(), claim.pool)) {
            Next::Block(missing) => {
                self.note_prefix_claim(id, Some(missing), WaitReason::PoolExhausted, claim.cause);
            }
            Next::Unspecified(owner) => {
                let cause = Box::new(Cause::NoPrefixOf { owner: owner.name });
                self.note_prefix_claim(id, None, WaitReason::AllocationFailed, cause);
            }
            // A repetition of the request returns the prefix.
            Next::Complete => drop(self.erase_prefix_claim(id)),
        }
    }
}
