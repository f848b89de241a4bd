//! Preallocation: the first ADD allocates all named interfaces; the others stay *preallocated*.
//!
//! An attachment is of one interface. Each ADD of an endpoint repeats the list of all interfaces and has no
//! effect on interfaces that are allocated already. A preallocated allocation waits for the ADD of its
//! interface, and ends with the last attachment.

use crate::allocate::choosing::Choosing;
use crate::command::{Allocate, InterfaceRequest, Text};
use crate::state::State;
use crate::state::id::{AllocationId, AttachmentId, EndpointId};
use crate::state::row::Allocation;
use ipam_api::name::InterfaceName;
use ipam_api::resource::Lifecycle;

/// Need of one interface of a request.
#[derive(Debug)]
pub(crate) enum Needs {
    /// Nothing: another ADD has already allocated its addresses.
    Nothing,
    /// The preallocated allocations of the interface, all unchanged.
    Claims(Vec<AllocationId>),
    /// An address of each family: one of these allocations of the endpoint, or a new one.
    Addresses(Vec<AllocationId>),
}

impl Allocate {
    /// Returns true if the interface is the attachment's own. Without an attachment all interfaces count.
    pub(crate) fn is_own(&self, interface: &InterfaceName) -> bool {
        self.attachment.as_ref().is_none_or(|key| key.interface == *interface)
    }

    /// The MAC address of an interface.
    pub(super) fn mac_of(&self, interface: &InterfaceName) -> Option<Text> {
        self.interfaces.iter().find(|one| one.name == *interface)?.mac.clone()
    }
}

impl<'a> Choosing<'a> {
    /// Returns what an interface needs beyond the endpoint's allocations.
    pub(crate) fn needs(self, interface: &InterfaceRequest) -> Needs {
        let addresses = || Needs::Addresses(self.portable(interface));
        let (Some(row), true) = (self.row, self.request.attachment.is_some()) else { return addresses() };
        let rows = row.allocations.iter().map(|id| (*id, self.state.allocations.named(*id)));
        let mut here = rows
            .filter(|(_, row)| row.interface == interface.name && row.lifecycle == Lifecycle::Attached)
            .peekable();
        if !self.request.is_own(&interface.name) {
            // Allocations that a sticky endpoint keeps may have to move, as with the interface's own ADD.
            let has_addresses = match self.is_sticky() {
                true => here.any(|(_, row)| row.attachment.is_some()),
                false => here.peek().is_some(),
            };
            return if has_addresses { Needs::Nothing } else { addresses() };
        }
        if self.is_sticky() {
            return addresses();
        }
        let waiting: Vec<AllocationId> =
            here.filter(|(_, row)| is_claimable(row, self.request)).map(|(id, _)| id).collect();
        match !waiting.is_empty() && self.satisfies(&waiting, interface) {
            true => Needs::Claims(waiting),
            false => addresses(),
        }
    }

    /// Preallocated allocations of the attachment's interface that the request doesn't reuse.
    pub(super) fn preallocated_and_unwanted(self, reused: &[AllocationId]) -> Vec<AllocationId> {
        let (Some(row), Some(key)) = (self.row, &self.request.attachment) else { return Vec::new() };
        let is_own = |held: &Allocation| held.interface == key.interface && is_claimable(held, self.request);
        let mut unwanted = self.state.filter_allocations(&row.allocations, is_own);
        unwanted.retain(|id| !reused.contains(id));
        unwanted
    }
}

impl State {
    /// Allocations of an endpoint on the interfaces of a request. On the attachment's own interface only
    /// those attached to it count.
    pub(super) fn asked_for(
        &self,
        request: &Allocate,
        endpoint: EndpointId,
        attachment: AttachmentId,
    ) -> Vec<AllocationId> {
        let Some(row) = self.endpoints.get(endpoint) else { return Vec::new() };
        let is_named = |name: &InterfaceName| request.interfaces.iter().any(|one| one.name == *name);
        // A sticky endpoint reuses addresses that were held for it manually, too.
        let is_sticky = row.sticky.is_some();
        self.filter_allocations(&row.allocations, |row| match request.is_own(&row.interface) {
            true => row.attachment == Some(attachment) || row.also_attached.contains(&attachment),
            false if row.lifecycle == Lifecycle::Held => is_sticky && is_named(&row.interface),
            false => row.lifecycle == Lifecycle::Attached && is_named(&row.interface),
        })
    }
}

/// Returns true if an allocation is preallocated and the ADD on this node may claim it.
fn is_claimable(row: &Allocation, request: &Allocate) -> bool {
    row.awaits_attachment() && row.node.as_ref() == request.place()
}
