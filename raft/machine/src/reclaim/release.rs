//! Release of addresses, each from exactly the named allocation.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Refusal, ReleaseAttachment};
use crate::event::{EventKind, Holding, Reason};
use crate::state::id::{AllocationId, AttachmentId, CoolingId, EndpointId, Id, NetworkId, PoolId};
use crate::state::indexed::less;
use crate::state::row::{Allocation, Cooling};
use ipam_api::address::number;
use ipam_api::resource::EndpointKey;
use std::cmp::Ordering;
use std::net::IpAddr;

impl Step<'_> {
    /// CNI DEL. Releasing what isn't there succeeds, and is remembered all the same: the ADD may still be
    /// on its way.
    pub(crate) fn release_attachment(&mut self, release: &ReleaseAttachment) -> Answer {
        let (key, started) = (&release.key, &release.started);
        let live = self.state.attachment(key).map(|(id, row)| (id, row.clone()));
        if let Some((_, row)) = &live
            && self.state.order(key, started, &row.started) == Some(Ordering::Less)
        {
            // A late DEL of an earlier container with the same id: the living one keeps its addresses.
            return Answer::Released { addresses: Vec::new(), more: 0, late: true };
        }
        self.write_tombstone(key, started);
        let addresses = match live {
            Some((id, row)) => {
                let mut addresses = self.detach_all(id, &row.allocations);
                addresses.extend(self.release_preallocated(row.endpoint));
                addresses
            }
            None => Vec::new(),
        };
        Answer::released(addresses)
    }

    pub(crate) fn release_allocation(&mut self, id: AllocationId) -> Result<Answer, Refusal> {
        let Some(endpoint) = self.state.allocations.get(id).map(|row| row.endpoint) else {
            return Err(Cause::AllocationGone { allocation: id.get() }.into());
        };
        let mut addresses = self.release_all(&[id], Reason::AllocationReleased);
        addresses.extend(self.release_preallocated(endpoint));
        Ok(Answer::released(addresses))
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

    /// Removes an attachment with the allocations that no other attachment holds and that aren't kept.
    fn detach_all(&mut self, attachment: AttachmentId, allocations: &[AllocationId]) -> Vec<IpAddr> {
        let mut addresses = Vec::new();
        for id in allocations {
            let pinned = || (!self.may_free(*id)).then_some(Reason::Kept);
            match self.state.outlives(*id).or_else(pinned) {
                Some(reason) => self.detach(*id, attachment, reason),
                None => addresses.extend(self.release_one(*id, Reason::AttachmentReleased)),
            }
        }
        addresses
    }

    pub(crate) fn release_all(&mut self, ids: &[AllocationId], reason: Reason) -> Vec<IpAddr> {
        ids.iter().filter_map(|id| self.release_one(*id, reason)).collect()
    }

    fn release_one(&mut self, id: AllocationId, reason: Reason) -> Option<IpAddr> {
        let row = self.state.allocations.get(id)?.clone();
        let pool = &self.state.pools.named(row.pool).spec;
        let (pool_name, cooling_ms) = (pool.name.clone(), pool.cooling_ms);
        let holder = self.state.endpoints.named(row.endpoint);
        let (endpoint, scopes) = (holder.key.clone(), self.state.scopes(holder, row.pool));
        let revision = self.state.tick();
        self.with_its_needs(row.endpoint, |step| {
            step.state.erase::<Allocation>(id);
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
        let cools = cooling_ms > 0 && !drained;
        let of = Holding {
            network: self.state.name_of_network(row.network),
            address,
            pool: pool_name,
            endpoint,
            interface: row.interface.clone(),
            node: row.node.clone(),
            allocation: id,
            reason,
        };
        self.emit(EventKind::Released { of, cools });
        if !self.remove_if_drained(row.pool) {
            if cools {
                self.cool(Id::new(revision), row.network, row.pool, address, cooling_ms);
            }
            self.shed(row.pool, address, false);
            self.refresh_readiness(row.pool);
        }
        Some(address)
    }

    fn cool(&mut self, id: CoolingId, network: NetworkId, pool: PoolId, address: IpAddr, cooling_ms: u64) {
        let until_ms = self.state.log_time_ms().saturating_add(cooling_ms);
        self.state.write(id, Cooling { address, network, pool, until_ms });
        let space = self.state.space_mut(pool);
        space.cooling.insert(id);
        space.occupy(number(address));
    }

    /// Releases the preallocated allocations of an endpoint after its last attachment. A sticky one keeps
    /// them.
    fn release_preallocated(&mut self, endpoint: EndpointId) -> Vec<IpAddr> {
        let Some(row) = self.state.endpoints.get(endpoint) else { return Vec::new() };
        if row.sticky.is_some() || self.state.is_attached(endpoint) {
            return Vec::new();
        }
        let mut ids = self.state.those_that(&row.allocations, Allocation::awaits_attachment);
        ids.retain(|id| self.may_free(*id));
        self.release_all(&ids, Reason::Preallocated)
    }
}
