//! Quarantine: addresses that a foreign host uses are not allocated.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, EndQuarantine, Refusal};
use crate::event::EventKind;
use crate::state::id::{NetworkId, PoolId, QuarantineId};
use crate::state::row::Quarantine;
use ipam_api::access::NodeKey;
use ipam_api::address::number;
use ipam_api::limits::QUARANTINES_PER_NODE_MAX;
use ipam_api::mac::MacAddress;
use std::net::IpAddr;
use std::sync::Arc;

impl Step<'_> {
    /// Returns true if a node may report one more conflict that no other node has confirmed.
    pub(crate) fn may_quarantine(&self, node: &NodeKey) -> bool {
        self.state.usage_of(node).quarantines < QUARANTINES_PER_NODE_MAX as u64
    }

    /// Quarantines a free address of a pool.
    pub(crate) fn quarantine(
        &mut self,
        (network, pool): (NetworkId, PoolId),
        address: IpAddr,
        mac: MacAddress,
        by: &NodeKey,
    ) {
        // The foreign host refutes the check of the address.
        self.state.use_check(pool, address);
        let id = self.state.new_id();
        let row = Quarantine {
            address,
            network,
            pool,
            mac,
            reported_by: by.clone(),
            confirmed_by: None,
            since_wall_ms: self.at.wall_ms,
            heard_ms: self.state.log_time_ms(),
            heard_wall_ms: self.at.wall_ms,
        };
        self.state.write(id, row);
        let space = self.state.space_mut(pool);
        space.quarantined.insert(id);
        space.occupy(number(address));
        let (network, pool_name) = (self.state.name_of_network(network), self.state.name_of_pool(pool));
        self.emit(EventKind::Quarantined { network, address, pool: pool_name, mac, by: by.clone() });
        self.refresh_readiness(pool);
    }

    /// Ends a quarantine: for a clean probe of a node, or for an operator.
    pub(crate) fn end_quarantine(&mut self, id: QuarantineId, by: Option<&NodeKey>) {
        self.state.tick();
        let row = self.lift_quarantine(id, by);
        self.shed(row.pool, row.address, true);
        self.refresh_readiness(row.pool);
    }

    /// Ends a quarantine without a revision of its own, for an address that is allocated next.
    pub(crate) fn lift_quarantine(&mut self, id: QuarantineId, by: Option<&NodeKey>) -> Arc<Quarantine> {
        let row = self.state.end_quarantine(id);
        let (network, pool) = (self.state.name_of_network(row.network), self.state.name_of_pool(row.pool));
        self.emit(EventKind::QuarantineEnded { network, address: row.address, pool, by: by.cloned() });
        row
    }

    pub(crate) fn end_quarantine_of(&mut self, of: &EndQuarantine) -> Result<Answer, Refusal> {
        let Some((id, _)) = self.state.quarantine_at(&of.network, of.address) else {
            return Err(Cause::NotQuarantined { address: of.address, network: of.network.clone() }.into());
        };
        self.end_quarantine(id, None);
        Ok(Answer::Gone)
    }
}
