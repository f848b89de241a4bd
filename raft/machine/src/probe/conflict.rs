//! Conflicts at ADD: an address that a foreign host uses is quarantined, and another one replaces it.

use crate::apply::step::Step;
use crate::event::{EventKind, Reason};
use crate::probe::report::Effect;
use crate::state::State;
use crate::state::id::{AllocationId, NetworkId};
use crate::state::row::{Allocation, Attachment, Endpoint, PoolState};
use ipam_api::access::NodeKey;
use ipam_api::address::number;
use ipam_api::mac::MacAddress;
use ipam_api::resource::Lifecycle;
use std::net::IpAddr;

impl Step<'_> {
    /// Result of a probe for the node's own ADD.
    pub(super) fn take_result_of_add(
        &mut self,
        node: &NodeKey,
        id: AllocationId,
        place: (NetworkId, IpAddr),
        macs: &[MacAddress],
    ) -> Effect {
        let Some(row) = self.state.allocations.get(id).cloned() else { return Effect::Nothing };
        let is_own = (row.network, row.address) == place
            && row.lifecycle == Lifecycle::Attached
            && !row.checked
            && self.state.is_attached_on(&row, node);
        if !is_own || !self.state.probing(row.pool).conflicts() {
            return Effect::Nothing;
        }
        let foreign = macs.iter().find(|mac| !self.state.is_station_of(&row, **mac));
        match foreign {
            None => {
                self.state.rewrite_allocation(id, Allocation { checked: true, ..row });
                Effect::Recorded
            }
            // Another container of the endpoint uses the address already.
            Some(_) if !row.also_attached.is_empty() => Effect::Nothing,
            // An endpoint that keeps its address, or another owner, isn't moved by a claim of one node.
            Some(_) if self.state.is_kept(id) || !self.may_free(id) => Effect::Refused,
            Some(_) if !self.may_quarantine(node) => Effect::Refused,
            Some(mac) => {
                self.replace(id, &row, *mac, node);
                Effect::Recorded
            }
        }
    }

    /// Gives the holder of an address another one of the same pool, and quarantines the address. If the pool
    /// has no other, the whole attachment ends, and the repeated ADD chooses again.
    fn replace(&mut self, id: AllocationId, row: &Allocation, mac: MacAddress, by: &NodeKey) {
        let next = self.state.next_address(row.pool);
        if let Some(address) = next {
            self.move_to(row, address);
        }
        self.release_in_conflict(id);
        // A terminating pool was deleted together with its last address.
        if self.state.pools.get(row.pool).is_some() {
            self.quarantine((row.network, row.pool), row.address, mac, by);
        }
        if next.is_none()
            && let Some(attachment) = row.attachment
            && let Some(ended) = self.state.attachments.get(attachment).cloned()
        {
            self.detach_attachment(attachment, &ended, Reason::Conflict);
        }
        self.release_preallocated(row.endpoint);
    }

    /// Allocates another address in the place of an allocation, which is released next.
    fn move_to(&mut self, row: &Allocation, address: IpAddr) {
        let id = self.state.new_id();
        let checked = self.state.use_check(row.pool, address);
        let moved = Allocation { address, checked, created_wall_ms: self.at.wall_ms, ..row.clone() };
        let space = self.state.space_mut(row.pool);
        space.allocated += 1;
        space.occupy(number(address));
        let holder = self.state.endpoints.named(row.endpoint).clone();
        self.state.write_allocation(id, moved, &holder.key.realm);
        let scopes = self.state.scopes(&holder, row.pool);
        let state = self.state.pool_states.get(row.pool).cloned().unwrap_or_default();
        self.state.write(row.pool, PoolState { cursor: Some(address), ..state });
        // The newest id is the last of each list.
        let with_new = |ids: &[AllocationId]| ids.iter().copied().chain([id]).collect();
        let attachments: Vec<_> = self.state.attachments_of(row).map(|(id, row)| (id, row.clone())).collect();
        for (attachment, held) in attachments {
            let allocations = with_new(&held.allocations);
            self.state.write(attachment, Attachment { allocations, ..held });
        }
        let allocations = with_new(&holder.allocations);
        self.with_its_needs(row.endpoint, |step| {
            step.state.write(row.endpoint, Endpoint { allocations, ..holder.clone() });
        });
        let moved = self.state.allocations.named(id);
        self.emit(EventKind::Allocated(self.state.holding(id, moved, Reason::Conflict)));
        self.refresh_readiness(row.pool);
        self.state.count_address(scopes, address, true);
    }
}

impl State {
    /// Returns true if a station belongs to the endpoint of an allocation.
    fn is_station_of(&self, row: &Allocation, mac: MacAddress) -> bool {
        let endpoint = self.endpoints.named(row.endpoint);
        let held = endpoint.allocations.iter().map(|id| self.allocations.named(*id));
        let mut macs = held.filter_map(|row| row.mac.as_ref());
        macs.any(|own| own.parse() == Ok(mac))
    }
}
