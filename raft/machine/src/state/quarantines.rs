//! Quarantined addresses, and allocated ones for which two stations answer.

use crate::state::id::{AllocationId, NetworkId, PoolId, QuarantineId};
use crate::state::row::{Network, Quarantine};
use crate::state::{Occupant, State};
use ipam_api::access::NodeKey;
use ipam_api::address::number;
use ipam_api::limits::{PROBER_SILENCE_MS_MAX, QUARANTINE_RECHECK_MS};
use ipam_api::name::Name;
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

impl Quarantine {
    /// Nodes whose agents heard the foreign host.
    fn witnesses(&self) -> impl Iterator<Item = &NodeKey> {
        [&self.reported_by].into_iter().chain(&self.confirmed_by)
    }

    /// Returns true if the agent of a node heard the foreign host.
    pub(crate) fn is_heard_by(&self, node: &NodeKey) -> bool {
        self.witnesses().any(|witness| witness == node)
    }
}

impl State {
    /// Returns true if a quarantined address is to be probed again.
    pub(crate) fn is_recheck_due(&self, row: &Quarantine) -> bool {
        row.heard_ms.saturating_add(QUARANTINE_RECHECK_MS) <= self.log_time_ms()
    }

    /// Returns true if the quarantine ends when the node reports that nothing answers. The node must be a
    /// witness of the foreign host, unless no witness is alive.
    pub(crate) fn may_judge(&self, node: &NodeKey, row: &Quarantine) -> bool {
        let is_alive = |witness: &NodeKey| {
            self.report_of(witness).is_some() && !self.is_silent(witness, PROBER_SILENCE_MS_MAX)
        };
        row.is_heard_by(node) || !row.witnesses().any(is_alive)
    }

    /// Quarantine of an address.
    #[must_use]
    pub fn quarantine_at(&self, network: &Name, address: IpAddr) -> Option<(QuarantineId, &Quarantine)> {
        match self.occupant(self.find::<Network>(network)?, address)? {
            Occupant::Quarantine(id) => Some((id, self.quarantines.named(id))),
            Occupant::Allocation(_) | Occupant::Cooling(_) => None,
        }
    }

    /// Quarantined addresses of a subnet, in order.
    pub(crate) fn quarantines_in(
        &self,
        network: NetworkId,
        cidr: IpNet,
    ) -> impl Iterator<Item = &Quarantine> {
        let range = (network, cidr.network())..=(network, cidr.broadcast());
        self.index.quarantined.range(range).filter_map(|(network, address)| {
            match self.occupant(*network, *address) {
                Some(Occupant::Quarantine(id)) => Some(self.quarantines.named(id)),
                _ => None,
            }
        })
    }

    /// Allocations of a pool for which two stations answer.
    pub fn collisions_of(&self, pool: PoolId) -> impl Iterator<Item = AllocationId> {
        let all = (pool, AllocationId::MIN)..=(pool, AllocationId::MAX);
        self.index.collisions.range(all).map(|(_, id)| *id)
    }

    /// Number of allocated addresses for which two stations answer.
    #[must_use]
    pub fn collisions(&self) -> usize {
        self.index.collisions.len()
    }

    /// Ends the quarantine of an address, which becomes free or gets the state that its pool now specifies.
    pub(crate) fn end_quarantine(&mut self, id: QuarantineId) -> Arc<Quarantine> {
        let row = self.erase_named::<Quarantine>(id);
        let space = self.space_mut(row.pool);
        space.quarantined.remove(&id);
        space.vacate(number(row.address));
        row
    }
}
