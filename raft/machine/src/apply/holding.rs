//! The holding that an event shows: an allocation by the names of its resources.

use crate::event::{Holding, Reason};
use crate::state::State;
use crate::state::id::AllocationId;
use crate::state::row::Allocation;

impl State {
    /// The holding of an allocation, which may differ from its present row.
    pub(crate) fn holding(&self, id: AllocationId, row: &Allocation, reason: Reason) -> Holding {
        Holding {
            network: self.name_of_network(row.network),
            address: row.address,
            pool: self.name_of_pool(row.pool),
            endpoint: self.endpoints.named(row.endpoint).key.clone(),
            interface: row.interface.clone(),
            node: row.node.clone(),
            allocation: id,
            reason,
        }
    }
}
