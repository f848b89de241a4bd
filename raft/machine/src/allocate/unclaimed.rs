//! Interfaces that are named with another one: allocated in the entry of the first ADD, all or none, and *unclaimed*
//! until their own ADD.
//!
//! An attachment is of one interface. The list of all of them is repeated in each ADD of an endpoint, and asks nothing
//! of those that it has already. What nobody claims goes with the last attachment.

use std::net::IpAddr;

use ipam_api::name::{InterfaceName, ObjectName};
use ipam_api::resource::Lifecycle;

use crate::allocate::carry_over::Comer;
use crate::apply::step::Step;
use crate::apply::work::Work;
use crate::command::{Allocate, InterfaceWish};
use crate::event::Reason;
use crate::state::State;
use crate::state::id::{AllocationId, AttachmentId, EndpointId};
use crate::state::row::Allocation;

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

    /// The node where the addresses will be.
    pub(crate) fn place(&self) -> Option<&ObjectName> {
        self.node.as_ref().or(self.attachment.as_ref().map(|key| &key.node))
    }
}

impl Allocation {
    /// Whether it is attached nowhere and would be: it waits for an ADD.
    pub(crate) fn awaits_attachment(&self) -> bool {
        self.attachment.is_none() && self.lifecycle == Lifecycle::Attached
    }
}

impl State {
    /// What an interface needs, besides what its endpoint has.
    pub(crate) fn needs(&self, comer: &Comer<'_>, interface: &InterfaceWish, work: &Work) -> Needs {
        let addresses = || Needs::Addresses(self.portable(comer, interface));
        let (Some(row), true) = (comer.row, comer.wish.attachment.is_some()) else { return addresses() };
        let rows = row.allocations.iter().filter_map(|id| self.allocations.get(*id).map(|row| (*id, row)));
        let mut here = rows
            .filter(|(_, row)| row.interface == interface.name && row.lifecycle == Lifecycle::Attached)
            .peekable();
        if !comer.wish.is_own(&interface.name) {
            // What a sticky endpoint keeps may have to move, as with its own ADD.
            let seen_to = match comer.is_sticky() {
                true => here.any(|(_, row)| row.attachment.is_some()),
                false => here.peek().is_some(),
            };
            return if seen_to { Needs::Nothing } else { addresses() };
        }
        if comer.is_sticky() {
            return addresses();
        }
        let waiting: Vec<AllocationId> =
            here.filter(|(_, row)| is_claimable(row, comer.wish)).map(|(id, _)| id).collect();
        match !waiting.is_empty() && self.satisfies(&waiting, interface, work) {
            true => Needs::Claims(waiting),
            false => addresses(),
        }
    }

    /// What waited for the attachment's interface and isn't what it asks for.
    pub(crate) fn unclaimed_and_unwanted(
        &self,
        comer: &Comer<'_>,
        along: &[AllocationId],
    ) -> Vec<AllocationId> {
        let (Some(row), Some(key)) = (comer.row, &comer.wish.attachment) else { return Vec::new() };
        let is_unwanted = |id: &AllocationId| {
            !along.contains(id)
                && self
                    .allocations
                    .get(*id)
                    .is_some_and(|row| row.interface == key.interface && is_claimable(row, comer.wish))
        };
        row.allocations.iter().copied().filter(is_unwanted).collect()
    }

    /// Whether something of an endpoint is attached somewhere.
    pub(crate) fn is_attached(&self, endpoint: EndpointId) -> bool {
        let rows = self.endpoints.get(endpoint).into_iter().flat_map(|row| &row.allocations);
        rows.filter_map(|id| self.allocations.get(*id)).any(|row| row.attachment.is_some())
    }

    /// What an endpoint has on the interfaces of a request: on the attachment's own, what is attached to it.
    pub(crate) fn asked_for(
        &self,
        wish: &Allocate,
        endpoint: EndpointId,
        attachment: AttachmentId,
    ) -> Vec<AllocationId> {
        let Some(row) = self.endpoints.get(endpoint) else { return Vec::new() };
        let is_named = |name: &InterfaceName| wish.interfaces.iter().any(|one| one.name == *name);
        // A sticky endpoint takes along what was claimed for it by hand, too.
        let is_sticky = row.sticky.is_some();
        let is_asked_for = |id: &AllocationId| {
            self.allocations.get(*id).is_some_and(|row| match wish.is_own(&row.interface) {
                true => row.attachment == Some(attachment) || row.also_attached.contains(&attachment),
                false if row.lifecycle == Lifecycle::Held => is_sticky && is_named(&row.interface),
                false => row.lifecycle == Lifecycle::Attached && is_named(&row.interface),
            })
        };
        row.allocations.iter().copied().filter(is_asked_for).collect()
    }
}

/// Whether an allocation waits for an ADD on the node of this one.
fn is_claimable(row: &Allocation, wish: &Allocate) -> bool {
    row.awaits_attachment() && row.node.as_ref() == wish.place()
}

impl Step<'_> {
    /// Takes back what an endpoint hasn't claimed, once nothing of it is attached any more. A sticky one keeps it.
    pub(crate) fn release_unclaimed(&mut self, endpoint: EndpointId) -> Vec<IpAddr> {
        let Some(row) = self.state.endpoints.get(endpoint) else { return Vec::new() };
        if row.sticky.is_some() || self.state.is_attached(endpoint) {
            return Vec::new();
        }
        let unclaimed =
            |id: &AllocationId| self.state.allocations.get(*id).is_some_and(Allocation::awaits_attachment);
        let ids: Vec<AllocationId> =
            row.allocations.iter().copied().filter(|id| unclaimed(id) && self.may_free(*id)).collect();
        self.release_all(&ids, Reason::Unclaimed)
    }
}
