//! Interfaces that are named with another one: allocated in the entry of the first ADD, all or none, and *preallocated*
//! until their own ADD.
//!
//! An attachment is of one interface. The list of all of them is repeated in each ADD of an endpoint, and asks nothing
//! of those that it has already. What nobody claims goes with the last attachment.

use crate::allocate::choosing::Choosing;
use crate::command::{Allocate, InterfaceRequest, Text};
use crate::state::State;
use crate::state::id::{AllocationId, AttachmentId, EndpointId};
use crate::state::row::Allocation;
use ipam_api::name::InterfaceName;
use ipam_api::resource::Lifecycle;

/// What an interface of a request needs.
#[derive(Debug)]
pub(crate) enum Needs {
    /// Nothing: another ADD has seen to it.
    Nothing,
    /// What waits for it, all of it as it is.
    Claims(Vec<AllocationId>),
    /// An address of each family: one of these, which its endpoint has, or another one.
    Addresses(Vec<AllocationId>),
}

impl Allocate {
    /// Whether an interface is the attachment's own. Without an attachment all of them are alike.
    pub(crate) fn is_own(&self, interface: &InterfaceName) -> bool {
        self.attachment.as_ref().is_none_or(|key| key.interface == *interface)
    }

    /// The MAC address of an interface.
    pub(super) fn mac_of(&self, interface: &InterfaceName) -> Option<Text> {
        self.interfaces.iter().find(|one| one.name == *interface)?.mac.clone()
    }
}

impl<'a> Choosing<'a> {
    /// Needs of an interface, besides what its endpoint has.
    pub(crate) fn needs(self, interface: &InterfaceRequest) -> Needs {
        let addresses = || Needs::Addresses(self.portable(interface));
        let (Some(row), true) = (self.row, self.request.attachment.is_some()) else { return addresses() };
        let rows = row.allocations.iter().map(|id| (*id, self.state.allocations.named(*id)));
        let mut here = rows
            .filter(|(_, row)| row.interface == interface.name && row.lifecycle == Lifecycle::Attached)
            .peekable();
        if !self.request.is_own(&interface.name) {
            // What a sticky endpoint keeps may have to move, as with its own ADD.
            let seen_to = match self.is_sticky() {
                true => here.any(|(_, row)| row.attachment.is_some()),
                false => here.peek().is_some(),
            };
            return if seen_to { Needs::Nothing } else { addresses() };
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

    /// Allocations that waited for the attachment's interface and aren't what it asks for.
    pub(super) fn preallocated_and_unwanted(self, reused: &[AllocationId]) -> Vec<AllocationId> {
        let (Some(row), Some(key)) = (self.row, &self.request.attachment) else { return Vec::new() };
        let is_own = |held: &Allocation| held.interface == key.interface && is_claimable(held, self.request);
        let mut unwanted = self.state.those_that(&row.allocations, is_own);
        unwanted.retain(|id| !reused.contains(id));
        unwanted
    }
}

impl State {
    /// Allocations of an endpoint on the interfaces of a request: on the attachment's own, what is attached to it.
    pub(super) fn asked_for(
        &self,
        request: &Allocate,
        endpoint: EndpointId,
        attachment: AttachmentId,
    ) -> Vec<AllocationId> {
        let Some(row) = self.endpoints.get(endpoint) else { return Vec::new() };
        let is_named = |name: &InterfaceName| request.interfaces.iter().any(|one| one.name == *name);
        // A sticky endpoint takes along what was claimed for it by hand, too.
        let is_sticky = row.sticky.is_some();
        self.those_that(&row.allocations, |row| match request.is_own(&row.interface) {
            true => row.attachment == Some(attachment) || row.also_attached.contains(&attachment),
            false if row.lifecycle == Lifecycle::Held => is_sticky && is_named(&row.interface),
            false => row.lifecycle == Lifecycle::Attached && is_named(&row.interface),
        })
    }
}

/// Whether an allocation waits for an ADD on the node of this one.
fn is_claimable(row: &Allocation, request: &Allocate) -> bool {
    row.awaits_attachment() && row.node.as_ref() == request.place()
}
