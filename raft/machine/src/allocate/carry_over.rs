//! Reuse of a returning endpoint's allocations, and the allocations that outlive an attachment.
//!
//! An allocation of a live attachment stays until the attachment is deleted, even if its removal is
//! requested.

use crate::allocate::choosing::Choosing;
use crate::apply::step::Step;
use crate::command::{Allocate, Cause, InterfaceRequest, Refusal, RouteConfig};
use crate::event::Reason;
use crate::state::id::{AllocationId, AttachmentId};
use crate::state::row::{Endpoint, Sticky};
use ipam_api::limits::{ATTACHMENTS_PER_ALLOCATION_AND_NODE_MAX, ATTACHMENTS_PER_ALLOCATION_MAX};
use ipam_api::name::InterfaceName;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Lifecycle;
use std::sync::Arc;

impl Allocate {
    /// Returns true if an endpoint keeps the requested allocations. Leases always end by log time.
    pub(super) fn is_sticky_for(&self, row: Option<&Endpoint>) -> bool {
        self.lifecycle != Lifecycle::Leased
            && (self.stickiness.is_sticky() || row.is_some_and(|row| row.sticky.is_some()))
    }

    /// The row of an endpoint after a request.
    pub(super) fn updated_endpoint(&self, old: &Endpoint) -> Endpoint {
        let mut row = old.clone();
        let said = &self.stickiness;
        row.controller = said.controller.clone().map(Box::new).or(row.controller);
        if old.sticky.is_none() && !said.is_sticky() {
            return row;
        }
        let before = row.sticky.take().unwrap_or_default();
        row.uid = self.uid.clone().or(row.uid);
        row.sticky =
            Some(Box::new(Sticky { scale_down: said.scale_down.or(before.scale_down), wanted: true }));
        row
    }
}

impl<'a> Choosing<'a> {
    /// Allocations of the endpoint on an interface that it may reuse, newest first.
    ///
    /// A sticky endpoint reuses all but those that the same container holds under another configuration.
    /// Other endpoints reuse only those of an earlier sandbox on the same node, in the same incarnation.
    pub(super) fn portable(self, interface: &InterfaceRequest) -> Vec<AllocationId> {
        let Some(row) = self.row else { return Vec::new() };
        let (sticky, request) = (self.is_sticky(), self.request);
        let same_uid = request.uid.is_some() && request.uid == row.uid;
        let may = |id: &AllocationId| {
            let held = self.state.allocations.named(*id);
            if held.interface != interface.name || held.lifecycle == Lifecycle::Leased {
                return false;
            }
            let Some(key) = &request.attachment else { return sticky };
            let mut holders = self.state.attachments_of(held).map(|(_, attachment)| &attachment.key);
            if sticky {
                return !holders.any(|other| same_container(other, key));
            }
            let replaced = holders.any(|other| !same_container(other, key) && same_place(other, key));
            same_uid && replaced && held.lifecycle == Lifecycle::Attached
        };
        row.allocations.iter().rev().copied().filter(may).collect()
    }

    /// Refuses reuse if too many nodes have an allocation attached, or if the caller may not change it.
    pub(super) fn check_portable(
        self,
        reused: &[AllocationId],
        left: &[AllocationId],
    ) -> Result<(), Refusal> {
        let request = self.request;
        self.state.permit_labels_of(self.grant, reused)?;
        self.state.permit_labels_of(self.grant, left)?;
        let Some(key) = &request.attachment else { return Ok(()) };
        let rows = reused.iter().map(|id| self.state.allocations.named(*id));
        // A node that has an attachment releases its oldest for the new one.
        let mut full = rows.filter(|row| {
            row.also_attached.len() + 1 >= ATTACHMENTS_PER_ALLOCATION_MAX
                && !self.state.attachments_of(row).any(|(_, other)| same_node(&other.key, key))
        });
        match full.next() {
            None => Ok(()),
            Some(row) => {
                let (address, endpoint) = (row.address, request.endpoint.clone());
                Err(Cause::TooManyAttachments { address, endpoint }.into())
            }
        }
    }

    /// Unattached allocations of a sticky endpoint on these interfaces that it doesn't reuse.
    pub(super) fn left_behind(
        self,
        reused: &[AllocationId],
        interfaces: &[&InterfaceName],
    ) -> Vec<AllocationId> {
        let Some(row) = self.row else { return Vec::new() };
        let mut left = self.state.filter_allocations(&row.allocations, |held| {
            held.attachment.is_none()
                && held.lifecycle != Lifecycle::Leased
                && interfaces.contains(&&held.interface)
        });
        left.retain(|id| !reused.contains(id));
        left
    }
}

/// Returns true if both attachments belong to one container.
fn same_container(one: &AttachmentKey, other: &AttachmentKey) -> bool {
    (&one.realm, &one.node, &one.container_id) == (&other.realm, &other.node, &other.container_id)
}

/// Returns true if two attachments are on one node.
fn same_node(one: &AttachmentKey, other: &AttachmentKey) -> bool {
    (&one.realm, &one.node) == (&other.realm, &other.node)
}

/// Returns true if both attachments are of one interface on one node, in any container.
fn same_place(one: &AttachmentKey, other: &AttachmentKey) -> bool {
    (&one.realm, &one.node, &one.config, &one.interface)
        == (&other.realm, &other.node, &other.config, &other.interface)
}

impl Step<'_> {
    /// Adds an attachment to an existing allocation.
    pub(super) fn attach(
        &mut self,
        id: AllocationId,
        request: &Allocate,
        attachment: AttachmentId,
        route_config: Option<Arc<RouteConfig>>,
    ) {
        let mut row = self.state.allocations.named(id).clone();
        // An endpoint that only this request makes sticky counts, too.
        let is_sticky = request.is_sticky_for(self.state.endpoints.get(row.endpoint));
        let is_away = |key: &AttachmentKey| {
            self.state.attachments_of(&row).any(|(_, other)| !same_node(&other.key, key))
        };
        let reason = match row.attachment {
            Some(_) if request.attachment.as_ref().is_some_and(is_away) => Reason::Migrated,
            Some(_) => Reason::Shared,
            None if is_sticky => Reason::Reattached,
            None => Reason::Claimed,
        };
        // Another host may have started to use the address while it was kept.
        row.checked &= reason != Reason::Reattached;
        row.also_attached.change(|others| others.extend(row.attachment.replace(attachment)));
        row.node = request.place().cloned();
        row.mac = request.mac_of(&row.interface).or(row.mac);
        // The routing of the first ADD holds until a later request changes it.
        if reason != Reason::Claimed || !request.routing.is_empty() {
            row.route_config = route_config;
        }
        self.events.extend(self.state.tied(true, id, &row, reason));
        self.state.rewrite_allocation(id, row);
    }

    /// Detaches a node's oldest attachments of an allocation above its bound, or above that of all nodes.
    pub(super) fn detach_surplus(&mut self, id: AllocationId, request: &Allocate) {
        let Some(key) = &request.attachment else { return };
        // The new attachment has no row yet.
        while let Some(row) = self.state.allocations.get(id) {
            let own: Vec<AttachmentId> = self
                .state
                .attachments_of(row)
                .filter(|(_, other)| same_node(&other.key, key))
                .map(|(other, _)| other)
                .collect();
            let is_full = row.also_attached.len() + 1 > ATTACHMENTS_PER_ALLOCATION_MAX;
            match own.last() {
                Some(oldest) if is_full || own.len() >= ATTACHMENTS_PER_ALLOCATION_AND_NODE_MAX => {
                    self.detach(id, *oldest, Reason::Superseded);
                }
                _ => return,
            }
        }
    }
}
