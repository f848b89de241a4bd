//! Taking addresses back, each time from the allocation that was meant and no other.

use std::cmp::Ordering;
use std::net::IpAddr;

use ipam_api::address::number;
use ipam_api::resource::EndpointKey;

use super::command::Cause;
use super::command::{Answer, Refusal, ReleaseAttachment};
use super::event::{Reason, What};
use super::model::Cooling;
use super::state::Occupant;
use super::step::Step;
use super::sticky::ControllerKey;

impl Step<'_> {
    /// CNI DEL. Releasing what isn't there succeeds, and is remembered all the same: the ADD may still be
    /// on its way.
    pub(super) fn release_attachment(&mut self, release: &ReleaseAttachment) -> Answer {
        let (key, started) = (&release.key, &release.started);
        let live = self.state.attachment(key).map(|(id, row)| (id, row.clone()));
        if let Some((_, row)) = &live
            && self.state.order(key, started, &row.started) == Some(Ordering::Less)
        {
            // A late DEL of an earlier container with the same id: the living one keeps its addresses.
            return Answer::Released { addresses: Vec::new(), more: 0, late: true };
        }
        self.bury(key, started);
        let addresses = match live {
            Some((id, row)) => {
                let mut addresses = self.let_go(id, &row.allocations);
                addresses.extend(self.release_unclaimed(row.endpoint));
                addresses
            }
            None => Vec::new(),
        };
        Answer::released(addresses)
    }

    pub(super) fn release_allocation(&mut self, id: u64) -> Result<Answer, Refusal> {
        let Some(endpoint) = self.state.allocations.get(id).map(|row| row.endpoint) else {
            return Err(Cause::AllocationGone { allocation: id }.into());
        };
        let mut addresses = self.release_all(&[id], Reason::AllocationReleased);
        addresses.extend(self.release_unclaimed(endpoint));
        Ok(Answer::released(addresses))
    }

    pub(super) fn release_endpoint(&mut self, key: &EndpointKey) -> Result<Answer, Refusal> {
        let incarnations: Vec<u64> = self.state.incarnations(key).collect();
        if incarnations.is_empty() {
            return Err(Cause::EndpointGone { endpoint: key.clone() }.into());
        }
        self.withdraw(key);
        let held: Vec<u64> = incarnations
            .iter()
            .filter_map(|id| self.state.endpoints.get(*id))
            .flat_map(|row| row.allocations.iter().copied())
            .collect();
        Ok(Answer::released(self.release_all(&held, Reason::EndpointReleased)))
    }

    /// An attachment goes, and with it what nobody else holds and nobody keeps.
    fn let_go(&mut self, attachment: u64, allocations: &[u64]) -> Vec<IpAddr> {
        let mut addresses = Vec::new();
        for id in allocations {
            match self.state.outlives(*id) {
                Some(reason) => self.detach(*id, attachment, reason),
                None => addresses.extend(self.release_one(*id, Reason::AttachmentReleased)),
            }
        }
        addresses
    }

    pub(super) fn release_all(&mut self, ids: &[u64], reason: Reason) -> Vec<IpAddr> {
        ids.iter().filter_map(|id| self.release_one(*id, reason)).collect()
    }

    fn release_one(&mut self, id: u64, reason: Reason) -> Option<IpAddr> {
        let row = self.state.allocations.get(id)?.clone();
        let pool = &self.state.pools.get(row.pool)?.intention;
        let (pool_name, cooling_ms) = (pool.name.clone(), pool.cooling_ms);
        let holder = self.state.endpoints.get(row.endpoint)?;
        let (endpoint, accounts) = (holder.key.clone(), self.state.accounts(holder, row.pool));
        let revision = self.state.tick();
        self.with_its_needs(row.endpoint, |step| {
            step.state.allocations.remove(id, &mut step.state.ledger);
            step.forget_in_endpoint(row.endpoint, id);
        });
        for attachment in row.attachment.iter().chain(&row.also_attached) {
            self.forget_in_attachment(*attachment, id);
        }
        self.state.index.occupants.remove(&(row.network, row.address));
        if let Some(lease) = &row.lease {
            self.state.index.lease_ends.remove(&(lease.until_ms, id));
        }
        if let Some(space) = self.state.space_mut(row.pool) {
            space.allocated -= 1;
            space.vacate(number(row.address));
        }
        let address = row.address;
        self.state.count_address(accounts, address, false);
        let terminating = self.state.pools.get(row.pool).is_some_and(|pool| pool.intention.terminating);
        let drained = terminating && self.state.space(row.pool).is_some_and(|space| space.held() == 0);
        let rests = cooling_ms > 0 && !drained;
        self.emit(What::Released {
            network: self.state.name_of_network(row.network),
            address,
            pool: pool_name,
            endpoint,
            interface: row.interface.clone(),
            node: row.node.clone(),
            allocation: id,
            reason,
            rests,
        });
        if !self.remove_if_drained(row.pool) {
            if rests {
                self.cool(revision, row.network, row.pool, address, cooling_ms);
            }
            self.shed(row.pool, address, false);
            self.refresh_readiness(row.pool);
        }
        Some(address)
    }

    /// An endpoint that holds nothing any more is gone.
    fn forget_in_endpoint(&mut self, endpoint: u64, allocation: u64) {
        let Some(mut row) = self.state.endpoints.get(endpoint).cloned() else { return };
        row.allocations.retain(|id| *id != allocation);
        let is_left = !row.allocations.is_empty();
        self.state.endpoints.put(endpoint, row, &mut self.state.ledger);
        if !is_left {
            self.remove_if_empty(endpoint);
        }
    }

    /// An endpoint that neither holds nor waits for anything is gone.
    pub(super) fn remove_if_empty(&mut self, endpoint: u64) {
        let Some(row) = self.state.endpoints.get(endpoint) else { return };
        if row.allocations.is_empty() && row.waiting.is_none() {
            if let Some(key) = ControllerKey::of(row) {
                self.state.index.controllers.remove(&(key, endpoint));
            }
            self.state.index.endpoints.remove(&(row.key.clone(), endpoint));
            self.state.endpoints.remove(endpoint, &mut self.state.ledger);
        }
    }

    pub(super) fn forget_in_attachment(&mut self, attachment: u64, allocation: u64) {
        let Some(mut row) = self.state.attachments.get(attachment).cloned() else { return };
        row.allocations.retain(|id| *id != allocation);
        if row.allocations.is_empty() {
            self.state.index.attachments.remove(&row.key, attachment);
            self.state.attachments.remove(attachment, &mut self.state.ledger);
        } else {
            self.state.attachments.put(attachment, row, &mut self.state.ledger);
        }
    }

    fn cool(&mut self, id: u64, network: u64, pool: u64, address: IpAddr, cooling_ms: u64) {
        let until_ms = self.state.log_time_ms().saturating_add(cooling_ms);
        self.state.coolings.put(id, Cooling { address, network, pool, until_ms }, &mut self.state.ledger);
        self.state.index.occupants.insert((network, address), Occupant::Cooling(id));
        self.state.index.resting.insert((network, address));
        self.state.index.cooling_until.insert((until_ms, id));
        if let Some(space) = self.state.space_mut(pool) {
            space.cooling.insert(id);
            space.occupy(number(address));
        }
    }
}
