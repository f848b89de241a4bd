//! What an endpoint that comes back takes along of what it has, and what stays when an attachment goes.
//!
//! Whatever a living attachment holds stays until that attachment is gone, whoever wants it away.

use crate::apply::step::Step;
use crate::command::{Allocate, Cause, Grant, InterfaceWish, Refusal, Setting};
use crate::event::{Holding, Reason, What};
use crate::state::State;
use crate::state::id::{AllocationId, AttachmentId, EndpointId};
use crate::state::row::{Allocation, Attachment, Endpoint, Sticky};
use ipam_api::Family;
use ipam_api::limits::{ATTACHMENTS_PER_ALLOCATION_AND_NODE_MAX, ATTACHMENTS_PER_ALLOCATION_MAX};
use ipam_api::name::InterfaceName;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{Lifecycle, ScaleDown};
use std::sync::Arc;

/// An endpoint that takes something along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comer<'a> {
    pub(crate) wish: &'a Allocate,
    /// Who it was before, if it was.
    pub(crate) row: Option<&'a Endpoint>,
}

impl Comer<'_> {
    /// Whether it keeps what it is given. A lease ends by time, whoever has it.
    pub(crate) fn is_sticky(&self) -> bool {
        self.wish.lifecycle != Lifecycle::Leased
            && (self.wish.stickiness.is_sticky() || self.row.is_some_and(|row| row.sticky.is_some()))
    }
}

impl State {
    /// The attachments that hold an allocation, the newest first.
    pub(crate) fn attachments_of<'a>(
        &'a self,
        row: &'a Allocation,
    ) -> impl Iterator<Item = (AttachmentId, &'a Attachment)> {
        let ids = row.attachment.into_iter().chain(row.also_attached.iter().rev().copied());
        ids.filter_map(|id| self.attachments.get(id).map(|attachment| (id, attachment)))
    }

    /// What an endpoint has on an interface and may take along, the newest first.
    ///
    /// A sticky one takes whatever the same container doesn't hold already, under another configuration. Others only
    /// take what a sandbox before this one still holds, on the same node and in the same incarnation.
    pub(crate) fn portable(&self, comer: &Comer<'_>, interface: &InterfaceWish) -> Vec<AllocationId> {
        let Some(row) = comer.row else { return Vec::new() };
        let (sticky, wish) = (comer.is_sticky(), comer.wish);
        let same_uid = wish.uid.is_some() && wish.uid == row.uid;
        let may = |id: &AllocationId| {
            let Some(held) = self.allocations.get(*id) else { return false };
            if held.interface != interface.name || held.lifecycle == Lifecycle::Leased {
                return false;
            }
            let Some(key) = &wish.attachment else { return sticky };
            let mut holders = self.attachments_of(held).map(|(_, attachment)| &attachment.key);
            if sticky {
                return !holders.any(|other| same_container(other, key));
            }
            let replaced = holders.any(|other| !same_container(other, key) && same_place(other, key));
            same_uid && replaced && held.lifecycle == Lifecycle::Attached
        };
        row.allocations.iter().rev().copied().filter(may).collect()
    }

    /// Refuses to attach once more what too many nodes have attached, and to touch what the asker may not touch.
    pub(crate) fn check_portable(
        &self,
        wish: &Allocate,
        along: &[AllocationId],
        left: &[AllocationId],
        grant: &Grant,
    ) -> Result<(), Refusal> {
        self.permit_labels_of(grant, along)?;
        self.permit_labels_of(grant, left)?;
        let Some(key) = &wish.attachment else { return Ok(()) };
        let rows = along.iter().filter_map(|id| self.allocations.get(*id));
        // A node that has an attachment gives its oldest for the new one.
        let mut full = rows.filter(|row| {
            row.also_attached.len() + 1 >= ATTACHMENTS_PER_ALLOCATION_MAX
                && !self.attachments_of(row).any(|(_, other)| same_node(&other.key, key))
        });
        match full.next() {
            None => Ok(()),
            Some(row) => {
                let (address, endpoint) = (row.address, wish.endpoint.clone());
                Err(Cause::TooManyAttachments { address, endpoint }.into())
            }
        }
    }

    /// What a sticky endpoint has on these interfaces, doesn't take along, and nothing lives on.
    pub(crate) fn left_behind(
        &self,
        comer: &Comer<'_>,
        along: &[AllocationId],
        interfaces: &[&InterfaceName],
    ) -> Vec<AllocationId> {
        let Some(row) = comer.row else { return Vec::new() };
        let is_left = |id: &AllocationId| {
            !along.contains(id)
                && self.allocations.get(*id).is_some_and(|held| {
                    held.attachment.is_none()
                        && held.lifecycle != Lifecycle::Leased
                        && interfaces.contains(&&held.interface)
                })
        };
        row.allocations.iter().copied().filter(is_left).collect()
    }

    /// Whether the endpoint has got another address since, in the place of this one.
    fn is_replaced(&self, endpoint: &Endpoint, id: AllocationId, row: &Allocation) -> bool {
        let newer = endpoint.allocations.iter().filter(|other| **other > id);
        newer.filter_map(|other| self.allocations.get(*other)).any(|other| {
            other.lifecycle != Lifecycle::Leased
                && other.interface == row.interface
                && Family::of(other.address) == Family::of(row.address)
        })
    }

    /// Why an allocation outlives one of its attachments, if it does.
    pub(crate) fn outlives(&self, id: AllocationId) -> Option<Reason> {
        let row = self.allocations.get(id)?;
        if !row.also_attached.is_empty() {
            return Some(Reason::Shared);
        }
        self.is_kept(id).then_some(Reason::Kept)
    }

    /// Returns true if an allocation's endpoint keeps it without any attachment.
    pub(crate) fn is_kept(&self, id: AllocationId) -> bool {
        let Some(row) = self.allocations.get(id) else { return false };
        let Some(endpoint) = self.endpoints.get(row.endpoint) else { return false };
        let Some(sticky) = endpoint.sticky.as_ref() else { return false };
        let wanted = sticky.wanted
            || row.lifecycle == Lifecycle::Held
            || self.scale_down(sticky, row) == ScaleDown::Keep;
        wanted && !self.is_replaced(endpoint, id, row)
    }

    /// The row of an endpoint after a request.
    pub(crate) fn arrived(&self, old: &Endpoint, wish: &Allocate) -> Endpoint {
        let mut row = old.clone();
        let said = &wish.stickiness;
        row.controller = said.controller.clone().map(Box::new).or(row.controller);
        if old.sticky.is_none() && !said.is_sticky() {
            return row;
        }
        let before = row.sticky.take().unwrap_or_default();
        row.uid = wish.uid.clone().or(row.uid);
        row.sticky =
            Some(Box::new(Sticky { scale_down: said.scale_down.or(before.scale_down), wanted: true }));
        row
    }
}

/// Whether two attachments are of one container.
fn same_container(one: &AttachmentKey, other: &AttachmentKey) -> bool {
    (&one.realm, &one.node, &one.container_id) == (&other.realm, &other.node, &other.container_id)
}

/// Returns true if two attachments are on one node.
fn same_node(one: &AttachmentKey, other: &AttachmentKey) -> bool {
    (&one.realm, &one.node) == (&other.realm, &other.node)
}

/// Whether two attachments are of one interface, in whatever container of a node.
fn same_place(one: &AttachmentKey, other: &AttachmentKey) -> bool {
    (&one.realm, &one.node, &one.config, &one.interface)
        == (&other.realm, &other.node, &other.config, &other.interface)
}

impl Step<'_> {
    /// Writes what an endpoint is now. Its revision moves with what somebody says about it.
    pub(crate) fn put_endpoint(&mut self, id: EndpointId, row: Endpoint) {
        self.with_its_needs(id, |step| step.write_endpoint(id, row));
    }

    fn write_endpoint(&mut self, id: EndpointId, mut row: Endpoint) {
        if let Some(old) = self.state.endpoints.get(id) {
            let said = |row: &Endpoint| {
                let sticky = row.sticky.as_ref().map(|sticky| sticky.scale_down);
                (row.uid.clone(), row.controller.clone(), sticky)
            };
            if said(old) != said(&row) {
                let old = old.clone();
                self.state.count_for_another(&old, &row);
                let now = self.state.tick();
                let fresh = self.new_meta(now);
                row.meta.revision = now;
                row.meta.updated_wall_ms = fresh.updated_wall_ms;
                row.meta.updated_by = fresh.updated_by;
            }
        }
        self.state.write(id, row);
    }

    /// Gives an allocation that exists one more attachment.
    pub(crate) fn attach(
        &mut self,
        id: AllocationId,
        wish: &Allocate,
        attachment: AttachmentId,
        setting: Option<Arc<Setting>>,
    ) {
        let Some(mut row) = self.state.allocations.get(id).cloned() else { return };
        // Also where only this request makes it one.
        let is_sticky = Comer { wish, row: self.state.endpoints.get(row.endpoint) }.is_sticky();
        let is_away = |key: &AttachmentKey| {
            self.state.attachments_of(&row).any(|(_, other)| !same_node(&other.key, key))
        };
        let reason = match row.attachment {
            Some(_) if wish.attachment.as_ref().is_some_and(is_away) => Reason::Migrated,
            Some(_) => Reason::Shared,
            None if is_sticky => Reason::Reattached,
            None => Reason::Claimed,
        };
        row.also_attached.extend(row.attachment.replace(attachment));
        row.node = wish.place().cloned();
        let mac =
            wish.interfaces.iter().find(|one| one.name == row.interface).and_then(|one| one.mac.clone());
        row.mac = mac.or(row.mac);
        // What its first ADD said holds for what nobody has said anything of since.
        if reason != Reason::Claimed || !wish.routing.is_empty() {
            row.setting = setting;
        }
        self.events.extend(self.state.tied(true, id, &row, reason));
        self.state.write(id, row);
    }

    /// Detaches the oldest attachments that a node has of an allocation beyond its bound, or beyond that of all nodes.
    pub(crate) fn detach_surplus(&mut self, id: AllocationId, wish: &Allocate) {
        let Some(key) = &wish.attachment else { return };
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

    /// Takes one of its attachments from an allocation that outlives it.
    pub(crate) fn detach(&mut self, id: AllocationId, attachment: AttachmentId, reason: Reason) {
        let Some(mut row) = self.state.allocations.get(id).cloned() else { return };
        let Some(gone) = self.state.attachments.get(attachment).map(|row| row.key.node.clone()) else {
            return;
        };
        self.state.tick();
        row.also_attached.retain(|other| *other != attachment);
        if row.attachment == Some(attachment) {
            row.attachment = row.also_attached.pop();
        }
        let remaining = row.attachment.and_then(|id| self.state.attachments.get(id));
        row.node = remaining.map(|attachment| attachment.key.node.clone());
        self.forget_in_attachment(attachment, id);
        let left = Allocation { node: Some(gone), ..row.clone() };
        self.events.extend(self.state.tied(false, id, &left, reason));
        self.state.write(id, row);
    }
}

impl State {
    /// What is said when an attachment comes to an allocation that was there before, or goes from one that stays.
    fn tied(&self, comes: bool, allocation: AllocationId, row: &Allocation, reason: Reason) -> Option<What> {
        let network = self.name_of_network(row.network);
        let pool = self.pools.get(row.pool)?.intention.name.clone();
        let endpoint = self.endpoints.get(row.endpoint)?.key.clone();
        let Allocation { address, interface, node, .. } = row.clone();
        let of = Holding { network, address, pool, endpoint, interface, node, allocation, reason };
        Some(if comes { What::Attached(of) } else { What::Detached(of) })
    }
}
