//! Lookups of endpoints, and of their attachments, addresses and claims.

use crate::command::{Allocate, ReleaseAttachmentOf, ScaleController};
use crate::state::id::{AllocationId, AttachmentId, BootHistoryId, EndpointId, Id, NetworkId, TombstoneId};
use crate::state::key::ControllerKey;
use crate::state::row::{Allocation, Attachment, BootHistory, Endpoint, Source, Sticky, Tombstone, Waiting};
use crate::state::{Occupant, State};
use crate::value::cause::HeldBy;
use ipam_api::Family;
use ipam_api::access::NodeKey;
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, Lifecycle, ScaleDown};

impl State {
    /// The attachments that hold an allocation, the newest first.
    pub(crate) fn attachments_of<'a>(
        &'a self,
        row: &'a Allocation,
    ) -> impl Iterator<Item = (AttachmentId, &'a Attachment)> {
        let ids = row.attachment.into_iter().chain(row.also_attached.iter().rev().copied());
        ids.filter_map(|id| self.attachments.get(id).map(|attachment| (id, attachment)))
    }

    /// Returns true if the endpoint has received a newer address that replaces this allocation.
    fn is_replaced(&self, endpoint: &Endpoint, id: AllocationId, row: &Allocation) -> bool {
        let newer = endpoint.allocations.iter().filter(|other| **other > id);
        newer.map(|other| self.allocations.named(*other)).any(|other| {
            other.lifecycle != Lifecycle::Leased
                && other.interface == row.interface
                && Family::of(other.address) == Family::of(row.address)
        })
    }

    /// Returns true if an allocation's endpoint keeps it without any attachment.
    pub(crate) fn is_kept(&self, id: AllocationId) -> bool {
        let row = self.allocations.named(id);
        let endpoint = self.endpoints.named(row.endpoint);
        let Some(sticky) = endpoint.sticky.as_ref() else { return false };
        let wanted = sticky.wanted
            || row.lifecycle == Lifecycle::Held
            || self.scale_down(sticky, row) == ScaleDown::Keep;
        wanted && !self.is_replaced(endpoint, id, row)
    }

    /// Oldest incarnation with exactly this uid.
    #[must_use]
    pub fn incarnation_with(&self, key: &EndpointKey, uid: &str) -> Option<EndpointId> {
        let is_meant =
            |id: &EndpointId| self.endpoints.named(*id).uid.as_ref().is_some_and(|own| own.as_str() == uid);
        self.incarnations(key).find(is_meant)
    }

    /// Returns true if an allocation of an endpoint is attached.
    pub(crate) fn is_attached(&self, endpoint: EndpointId) -> bool {
        let rows = self.endpoints.get(endpoint).into_iter().flat_map(|row| &row.allocations);
        rows.map(|id| self.allocations.named(*id)).any(|row| row.attachment.is_some())
    }

    /// Claim of an endpoint that waits.
    #[must_use]
    pub fn waiting(&self, endpoint: EndpointId) -> Option<&Waiting> {
        self.endpoints.get(endpoint)?.waiting.as_deref()
    }

    /// Number of claims that wait.
    #[must_use]
    pub fn waiting_count(&self) -> usize {
        self.index.waiting.len()
    }

    /// Remembered releases of an attachment.
    pub(crate) fn tombstone(&self, key: &AttachmentKey) -> Option<(TombstoneId, &Tombstone)> {
        let id = self.index.tombstones.find(key, |id| self.tombstones.get(id).map(|row| &row.key))?;
        Some((id, self.tombstones.named(id)))
    }

    /// Remembered boots of a node.
    #[must_use]
    pub fn boots_of(&self, realm: &Name, node: &ObjectName) -> Option<(BootHistoryId, &BootHistory)> {
        let id = *self.index.boots.get(&(realm.clone(), node.clone()))?;
        Some((id, self.boots.named(id)))
    }

    /// Policy for an address of a sticky endpoint that its controller no longer needs.
    pub(crate) fn scale_down(&self, sticky: &Sticky, row: &Allocation) -> ScaleDown {
        let of_pool = || self.pools.named(row.pool).spec.scale_down;
        sticky.scale_down.unwrap_or_else(of_pool)
    }

    /// Selects the allocations that satisfy a predicate.
    pub(crate) fn filter_allocations(
        &self,
        ids: &[AllocationId],
        fit: impl Fn(&Allocation) -> bool,
    ) -> Vec<AllocationId> {
        ids.iter().copied().filter(|id| fit(self.allocations.named(*id))).collect()
    }

    /// Allocations that end with a DEL although its attachment doesn't exist. They were adopted, on the node
    /// of the attachment, for exactly this incarnation; no attachment holds them, and no controller keeps
    /// them.
    pub(crate) fn adopted_for(&self, of: &ReleaseAttachmentOf) -> Vec<AllocationId> {
        let key = &of.release.key;
        if key.realm != of.endpoint.realm || self.attachment(key).is_some() {
            return Vec::new();
        }
        let incarnations = self.incarnations(&of.endpoint).map(|id| self.endpoints.named(id));
        let meant = incarnations.filter(|row| row.uid.as_ref() == Some(&of.uid));
        let adopted = |row: &Allocation| {
            row.source == Source::Adopted && row.attachment.is_none() && row.node.as_ref() == Some(&key.node)
        };
        let mut ids: Vec<AllocationId> =
            meant.flat_map(|row| self.filter_allocations(&row.allocations, adopted)).collect();
        ids.retain(|id| !self.is_kept(*id));
        ids
    }

    /// Sticky endpoints of a controller.
    pub(crate) fn endpoints_scaled_by<'a>(
        &'a self,
        scale: &ScaleController,
    ) -> impl Iterator<Item = EndpointId> + use<'a> {
        let key = ControllerKey::new(&scale.realm, &scale.namespace, &scale.controller);
        let all = self.index.controllers.range((key.clone(), Id::MIN)..=(key, Id::MAX));
        all.map(|(_, id)| *id)
    }

    /// Allocations of a controller's endpoints, which its scaling touches.
    pub(crate) fn touched_by(&self, scale: &ScaleController) -> impl Iterator<Item = AllocationId> {
        let rows = self.endpoints_scaled_by(scale).map(|id| self.endpoints.named(id));
        rows.flat_map(|row| row.allocations.iter().copied())
    }

    /// The allocation that holds an address.
    #[must_use]
    pub fn allocation_at(
        &self,
        network: NetworkId,
        address: std::net::IpAddr,
    ) -> Option<(AllocationId, &Allocation)> {
        match self.occupant(network, address)? {
            Occupant::Allocation(id) => Some((id, self.allocations.named(id))),
            Occupant::Cooling(_) | Occupant::Quarantine(_) => None,
        }
    }

    /// Name of an endpoint in messages.
    pub(crate) fn holder(&self, endpoint: EndpointId) -> HeldBy {
        HeldBy(self.endpoints.get(endpoint).map(|row| row.key.clone()))
    }
}

impl Allocation {
    /// Returns true if the allocation has the lifecycle `attached` but no attachment: it awaits an ADD.
    pub(crate) fn awaits_attachment(&self) -> bool {
        self.attachment.is_none() && self.lifecycle == Lifecycle::Attached
    }
}

impl Allocate {
    /// Node on which the addresses will be used.
    pub(crate) fn place(&self) -> Option<&ObjectName> {
        self.node.as_ref().or(self.attachment.as_ref().map(|key| &key.node))
    }
}

impl Waiting {
    /// The node that the claim is for.
    pub(crate) fn place(&self) -> Option<NodeKey> {
        let name = self.request.place()?.clone();
        Some(NodeKey { realm: self.request.endpoint.realm.clone(), name })
    }
}
