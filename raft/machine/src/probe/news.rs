//! Probe results that could change the state: only these are worth a log entry.

use crate::command::ProbeResult;
use crate::state::id::{AllocationId, NetworkId};
use crate::state::row::Network;
use crate::state::{Occupant, State};
use ipam_api::access::NodeKey;
use ipam_api::address::number;

impl State {
    /// Returns true if results of a node could change the state. Most results confirm the state.
    #[must_use]
    pub fn is_news(&self, node: &NodeKey, results: &[ProbeResult]) -> bool {
        results.iter().any(|result| result.allocation.is_some() || self.is_news_of_job(node, result))
    }

    fn is_news_of_job(&self, node: &NodeKey, result: &ProbeResult) -> bool {
        let Some(network) = self.find::<Network>(&result.network) else { return false };
        let address = result.address;
        if !self.is_on_link(node, &result.network, address) {
            return false;
        }
        match self.occupant(network, address) {
            Some(Occupant::Allocation(id)) => self.is_news_of_allocated(node, id, result),
            Some(Occupant::Cooling(_)) => false,
            Some(Occupant::Quarantine(id)) => {
                let row = self.quarantines.named(id);
                let may_confirm = row.confirmed_by.is_none() && row.reported_by != *node;
                let counts = || row.is_heard_by(node) || self.is_prober_at(node, network, address);
                (may_confirm || self.is_recheck_due(row)) && counts()
            }
            None => self.is_worth_checking(node, network, result),
        }
    }

    fn is_news_of_allocated(&self, node: &NodeKey, id: AllocationId, result: &ProbeResult) -> bool {
        let row = self.allocations.named(id);
        let old = self.neighbors.get(id);
        match result.macs.first() {
            Some(mac) => {
                let stations = (*mac, result.macs.get(1).copied());
                old.is_none_or(|old| self.neighbor_after(Some(old), row, stations, node) != *old)
            }
            None => self.is_suspect(row) && old.is_some_and(|old| old.heard_by.contains(node)),
        }
    }

    /// Returns true if a result of an address without an occupant may become a check or a quarantine.
    fn is_worth_checking(&self, node: &NodeKey, network: NetworkId, result: &ProbeResult) -> bool {
        let Some(pool) = self.pool_at(network, result.address) else { return false };
        let (space, number) = (self.space_of(pool), number(result.address));
        space.free.is_free(number)
            && self.probing(pool).conflicts()
            && (!result.macs.is_empty() || self.is_check_due(pool, number))
            && self.is_prober_at(node, network, result.address)
    }
}
