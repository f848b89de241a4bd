//! Release of addresses, each from exactly the named allocation.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Refusal, ReleaseAttachment, ReleaseAttachmentOf};
use crate::event::{EventKind, Reason};
use crate::seeded::SeededBug;
use crate::state::id::{AllocationId, AttachmentId, EndpointId, Id};
use crate::state::indexed::less;
use crate::state::row::{Allocation, Attachment};
use ipam_api::address::number;
use ipam_api::resource::EndpointKey;
use std::cmp::Ordering;
use std::net::IpAddr;

impl Step<'_> {
    /// Carries out a CNI DEL. Releasing a missing attachment succeeds, and leaves a tombstone all the same:
    /// the ADD may still arrive.
    ///
    /// An adopted endpoint has addresses without an attachment of its runtime. Its DEL releases them, too.
    pub(crate) fn release_attachment(
        &mut self,
        release: &ReleaseAttachment,
        of: Option<&ReleaseAttachmentOf>,
    ) -> Answer {
        let (key, started) = (&release.key, &release.started);
        let live = self.state.attachment(key).map(|(id, row)| (id, row.clone()));
        if let Some((_, row)) = &live
            && self.state.order(key, started, &row.started) == Some(Ordering::Less)
            && !SeededBug::LateRelease.is_on()
        {
            // A late DEL of an earlier container with the same id doesn't release the live container's
            // addresses.
            return Answer::Released { addresses: Vec::new(), more: 0, late: true };
        }
        self.write_tombstone(key, started);
        let addresses = match live {
            Some((id, row)) => self.detach_attachment(id, &row, Reason::AttachmentReleased),
            None => {
                let mut adopted = of.map(|of| self.state.adopted_for(of)).unwrap_or_default();
                adopted.retain(|id| self.may_free(*id));
                self.release_all(&adopted, Reason::AttachmentReleased)
            }
        };
        Answer::released(addresses)
    }

    /// Releases an allocation, with the preallocated ones of its endpoint.
    pub(crate) fn release_allocation(&mut self, id: AllocationId) -> Result<Answer, Refusal> {
        let Some(endpoint) = self.state.allocations.get(id).map(|row| row.endpoint) else {
            return Err(Cause::AllocationGone { allocation: id.get() }.into());
        };
        let mut addresses = self.release_all(&[id], Reason::AllocationReleased);
        addresses.extend(self.release_preallocated(endpoint));
        Ok(Answer::released(addresses))
    }

    /// Releases one of several allocations, after which the preallocated ones of their endpoints follow.
    pub(crate) fn release_listed(&mut self, id: AllocationId) -> Option<IpAddr> {
        self.release_one(id, Reason::AllocationReleased)
    }

    pub(crate) fn release_endpoint(&mut self, key: &EndpointKey) -> Result<Answer, Refusal> {
        let incarnations: Vec<EndpointId> = self.state.incarnations(key).collect();
        if incarnations.is_empty() {
            return Err(Cause::EndpointGone { endpoint: key.clone() }.into());
        }
        self.withdraw(key);
        let held: Vec<AllocationId> = incarnations
            .iter()
            .filter_map(|id| self.state.endpoints.get(*id))
            .flat_map(|row| row.allocations.iter().copied())
            .collect();
        Ok(Answer::released(self.release_all(&held, Reason::EndpointReleased)))
    }

    /// Removes an attachment with the allocations that no other attachment holds and that aren't kept, and
    /// with the last one of its endpoint the preallocated ones.
    pub(crate) fn detach_attachment(
        &mut self,
        attachment: AttachmentId,
        row: &Attachment,
        reason: Reason,
    ) -> Vec<IpAddr> {
        let mut addresses = Vec::new();
        for id in &row.allocations {
            let pinned = || (!self.may_free(*id)).then_some(Reason::Kept);
            match self.state.outlives(*id).or_else(pinned) {
                Some(outlives) => self.detach(*id, attachment, outlives),
                None => addresses.extend(self.release_one(*id, reason)),
            }
        }
        addresses.extend(self.release_preallocated(row.endpoint));
        addresses
    }

    pub(crate) fn release_all(&mut self, ids: &[AllocationId], reason: Reason) -> Vec<IpAddr> {
        ids.iter().filter_map(|id| self.release_one(*id, reason)).collect()
    }

    fn release_one(&mut self, id: AllocationId, reason: Reason) -> Option<IpAddr> {
        self.release_to(id, reason, true)
    }

    /// Releases an allocation whose address a foreign host uses. The address neither cools nor leaves its
    /// pool: the caller quarantines it.
    pub(crate) fn release_in_conflict(&mut self, id: AllocationId) {
        self.release_to(id, Reason::Conflict, false);
    }

    /// Releases an allocation. `is_reusable` is false if its address is quarantined next.
    fn release_to(&mut self, id: AllocationId, reason: Reason, is_reusable: bool) -> Option<IpAddr> {
        let row = self.state.allocations.get(id)?.clone();
        let of = self.state.holding(id, &row, reason);
        let cooling_ms = self.state.pools.named(row.pool).spec.cooling_ms;
        let scopes = self.state.scopes(self.state.endpoints.named(row.endpoint), row.pool);
        let revision = self.state.tick();
        self.with_its_needs(row.endpoint, |step| {
            step.state.erase_allocation(id);
            step.forget_in_endpoint(row.endpoint, id);
        });
        for attachment in row.attachment.iter().chain(&row.also_attached) {
            self.forget_in_attachment(*attachment, id);
        }
        let space = self.state.space_mut(row.pool);
        less(&mut space.allocated, 1);
        space.vacate(number(row.address));
        let address = row.address;
        self.state.count_address(scopes, address, false);
        let terminating = self.state.pools.get(row.pool).is_some_and(|pool| pool.spec.terminating);
        let drained = terminating && self.state.space(row.pool).is_some_and(|space| space.held() == 0);
        let cools = cooling_ms > 0 && !drained && is_reusable;
        if reason != Reason::LeaseEnded || !SeededBug::MissingEvent.is_on() {
            self.emit(EventKind::Released { of, cools });
        }
        if !self.remove_if_drained(row.pool) && is_reusable {
            if cools {
                self.cool(Id::new(revision), row.network, row.pool, address, cooling_ms);
            }
            self.shed(row.pool, address, false);
            self.refresh_readiness(row.pool);
        }
        Some(address)
    }

    /// Releases the preallocated allocations of an endpoint after its last attachment. A sticky one keeps
    /// them.
    pub(crate) fn release_preallocated(&mut self, endpoint: EndpointId) -> Vec<IpAddr> {
        let Some(row) = self.state.endpoints.get(endpoint) else { return Vec::new() };
        if row.sticky.is_some() || self.state.is_attached(endpoint) {
            return Vec::new();
        }
        let mut ids = self.state.filter_allocations(&row.allocations, Allocation::awaits_attachment);
        ids.retain(|id| self.may_free(*id));
        self.release_all(&ids, Reason::Preallocated)
    }
}
