//! Limits of a token by realms and labels: they hold for all that a write affects, before and after it.
//!
//! [`Action::permission`] maps an action to a permission, and [`effect`] maps the permission to what the
//! limit means. This module looks up what the write affects:
//!
//! | action | affects, for labels |
//! |---|---|
//! | put a network | the network |
//! | put or delete a subnet | the subnet; its network, if it is created or deleted or its gateway or routes change; all of its pools, if what hosts are told changes |
//! | put a pool | the pool; its subnet, if the pool is new, reaches further or has another gateway; both pools of `drains_to` |
//! | split a pool | the pool and its subnet |
//! | delete a pool | the pool |
//! | put or delete a reservation | the reservation, and where its addresses change: the pools that own them, else the subnets that contain them, else the network |
//! | put or delete a host policy | the policy |
//! | put a node, a namespace | the row as it is: none is created or deleted; its labels and its quota decide for other resources and do not change; default pools are named without wildcards and have the labels |
//! | allocate, release, renew, delegate, scale, end | the pools of the addresses and prefixes, and of preallocated addresses that go along; the subnet of an automatic pool lends it its labels |
//! | report the state of a node | the node, unless it is the caller |
//! | create, rotate or delete a token | the rights of that token, which must lie within the caller's |
//! | members, level, epoch, journal | the whole cluster: refused |
//! | a transaction, a bulk | each of its steps, on what the steps before it made |
//!
//! For realms: a resource that realms share needs the explicit grant; nodes, namespaces, host policies,
//! endpoints, attachments and prefixes belong to a realm. An automatic pool follows from an allocation in a
//! subnet that allows it, and needs no grant.

use crate::access::{check_limits, fits, not_labelled, permit_realm};
use crate::apply::work::Work;
use crate::command::{
    Action, Cause, Delete, Grant, HostPolicySpec, Kind, Metadata, NamespaceSpec, NodeSpec, PoolSpec, Put,
    Refusal, ReservationSpec, SubnetSpec,
};
use crate::state::State;
use crate::state::id::{AllocationId, EndpointId, NetworkId};
use crate::state::row::{HostPolicy, Network, Pool, Reservation, Subnet};
use crate::value::field_name::FieldName;
use crate::value::shape::{owned, ranges};
use ipam_api::access::{Effect, Limit, NodeKey, Target, Verb, effect};
use ipam_api::address::AddressRange;
use ipam_api::name::{Name, NamePattern, ResourceName};
use ipam_api::{Family, RangeSet};
use std::ops::Bound;

impl State {
    /// Refuses a write that affects resources beyond the limits of the grant.
    pub(crate) fn permit_affected(&self, grant: &Grant, action: &Action, work: &Work) -> Result<(), Refusal> {
        if !grant.is_limited() {
            return Ok(());
        }
        let write = Write { state: self, grant, work };
        match action {
            Action::PutNetwork(put) => write.row(Kind::Network, &put.spec.name, Some(&put.spec.metadata)),
            Action::PutSubnet(put) => write.subnet(&put.spec),
            Action::PutPool(put) => write.pool(&put.spec),
            Action::PutReservation(put) => write.reservation(&put.spec),
            Action::PutNode(put) => write.node(put),
            Action::PutNamespace(put) => write.namespace(put),
            Action::PutHostPolicy(put) => write.host_policy(&put.spec),
            Action::Delete(delete) => write.delete(delete),
            // The new pool has the labels of the old one.
            Action::SplitPool(split) => {
                write.row(Kind::Pool, &split.name, None)?;
                write.subnet_of_pool(&split.name)
            }
            Action::CreateToken(request) => {
                self.permit_token(grant, &request.name, (&request.grant, request.purpose))
            }
            Action::RotateToken { name, .. } => self.permit_present_token(grant, name),
            Action::ReleaseAttachment(release) => {
                write.released(self.attachment(&release.key).map(|(_, row)| row.endpoint))
            }
            Action::ReleaseAttachmentOf(of) => {
                write.released(self.attachment(&of.release.key).map(|(_, row)| row.endpoint))
            }
            Action::ReleaseAllocation { id } => {
                write.released(self.allocations.get(*id).map(|row| row.endpoint))
            }
            Action::ReleaseOrphans(request) => {
                let keys = request.orphans.iter().map(|orphan| orphan.key(&request.node));
                let rows = keys.map(|key| self.attachment(&key).map(|(_, row)| row.endpoint));
                rows.map(|endpoint| write.released(endpoint)).find(Result::is_err).unwrap_or(Ok(()))
            }
            // Pools of all labels select by the reported pods.
            Action::ReportPods(_) if !grant.labels.is_empty() => {
                check_limits(grant, Verb::Write, Target::Cluster)
            }
            // Results concern pools and allocations of all realms. A node's own token has its own limits.
            Action::ReportProbes(_) if grant.node.is_none() => {
                check_limits(grant, Verb::Write, Target::Cluster)
            }
            Action::Heartbeat(heartbeat) if grant.node.is_none() && !heartbeat.links.is_empty() => {
                check_limits(grant, Verb::Write, Target::Cluster)
            }
            Action::Heartbeat(heartbeat) => write.heard(&heartbeat.node),
            Action::Reclaim(reclaim) => {
                let rows = reclaim.allocations.iter().filter_map(|id| self.allocations.get(*id));
                let mut rows = rows.map(|row| write.released(Some(row.endpoint)));
                rows.find(Result::is_err).unwrap_or(Ok(()))
            }
            // Each endpoint and each allocation is checked separately.
            Action::AllocateMany(_) | Action::ReleaseAllocations { .. } => Ok(()),
            // `permit` checks the endpoints, attachments, allocations and prefixes.
            Action::Allocate(_)
            | Action::AllocateOnLinks(_)
            | Action::Renew(_)
            | Action::ReleaseEndpoint { .. }
            | Action::EndIncarnation(_)
            | Action::ScaleController(_)
            | Action::EndController(_)
            | Action::Delegate(_)
            | Action::DelegateOrWait(_)
            | Action::SetPrefixes(_)
            | Action::ReportProbes(_)
            | Action::EndQuarantine(_)
            | Action::ReportPods(_)
            | Action::ReleasePrefix { .. } => Ok(()),
            // Each step is authorized separately; join tokens and renewals concern only the caller's token.
            Action::Transaction(_) | Action::Join { .. } | Action::JoinMember(_) | Action::RenewToken => {
                Ok(())
            }
            // The table of effects refuses them.
            Action::Expire
            | Action::TrimJournal { .. }
            | Action::SealJournal
            | Action::RaiseLevel { .. }
            | Action::ConfirmEpoch(_)
            | Action::ChangeMembers(_) => check_limits(grant, Verb::Write, Target::Cluster),
        }
    }
}

impl Grant {
    /// Returns true if realms or labels limit the rights.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        !self.realms.is_empty() || !self.labels.is_empty()
    }

    /// Effects of the limits that the rights have on a permission.
    pub(crate) fn effects(&self, verb: Verb, target: Target) -> impl Iterator<Item = Effect> {
        let realms = (!self.realms.is_empty()).then(|| effect(Limit::Realms, verb, target));
        let labels = (!self.labels.is_empty()).then(|| effect(Limit::Labels, verb, target));
        realms.into_iter().chain(labels)
    }
}

/// A write by limited rights.
#[derive(Clone, Copy)]
struct Write<'a> {
    state: &'a State,
    grant: &'a Grant,
    work: &'a Work,
}

impl<'a> Write<'a> {
    /// Refuses a row that lacks the labels before or after the write.
    fn row(
        self,
        kind: Kind,
        name: impl Into<ResourceName>,
        wanted: Option<&Metadata>,
    ) -> Result<(), Refusal> {
        let name = name.into();
        let present = self.state.metadata(kind, &name);
        match wanted.into_iter().chain(present).find(|metadata| !fits(self.grant, metadata)) {
            None => Ok(()),
            Some(_) => Err(not_labelled(self.grant, kind, name)),
        }
    }

    /// Refuses a release of another realm's endpoint, or of preallocated addresses in pools beyond the
    /// limits.
    fn released(self, endpoint: Option<EndpointId>) -> Result<(), Refusal> {
        let Some(row) = endpoint.map(|id| self.state.endpoints.named(id)) else { return Ok(()) };
        permit_realm(self.grant, &row.key.realm)?;
        if row.sticky.is_some() {
            return Ok(());
        }
        let ids = row.allocations.iter().copied();
        let awaits = |id: &AllocationId| self.state.allocations.named(*id).awaits_attachment();
        let ids: Vec<AllocationId> = ids.filter(awaits).collect();
        self.state.permit_labels_of(self.grant, &ids)
    }

    fn subnet(self, wanted: &SubnetSpec) -> Result<(), Refusal> {
        self.row(Kind::Subnet, &wanted.name, Some(&wanted.metadata))?;
        let Some((id, Subnet { spec: present, .. })) = self.state.find_row::<Subnet>(&wanted.name) else {
            return self.row(Kind::Network, &wanted.network, None);
        };
        let is_rerouted = present.gateway != wanted.gateway || present.routes != wanted.routes;
        if is_rerouted {
            self.row(Kind::Network, &present.network, None)?;
        }
        if is_rerouted
            || present.vlan != wanted.vlan
            || present.mtu != wanted.mtu
            || present.dns != wanted.dns
        {
            let mut pools = self.state.pools_of(id).take_while(|_| self.work.take(1));
            pools.try_for_each(|pool| self.state.permit_pool(self.grant, pool))?;
        }
        self.work.check()
    }

    fn pool(self, wanted: &PoolSpec) -> Result<(), Refusal> {
        self.row(Kind::Pool, &wanted.name, Some(&wanted.metadata))?;
        let present = self.state.find_row::<Pool>(&wanted.name).map(|(_, row)| &row.spec);
        let subnet = self.state.find_row::<Subnet>(&present.unwrap_or(wanted).subnet);
        let Some((_, subnet)) = subnet else { return Ok(()) };
        let cidr = subnet.spec.cidr;
        let stays_within = present.is_some_and(|present| {
            present.gateway == wanted.gateway
                && ranges(wanted, cidr).minus(&ranges(present, cidr)).is_empty()
                && owned(wanted, cidr).minus(&owned(present, cidr)).is_empty()
        });
        if !stays_within {
            self.row(Kind::Subnet, &subnet.spec.name, None)?;
        }
        let drained = present.and_then(|present| present.drains_to.as_ref());
        if drained == wanted.drains_to.as_ref() {
            return Ok(());
        }
        let mut both = drained.into_iter().chain(&wanted.drains_to);
        both.try_for_each(|to| self.row(Kind::Pool, to, None))
    }

    fn subnet_of_pool(self, name: &Name) -> Result<(), Refusal> {
        let pool = self.state.find_row::<Pool>(name);
        pool.map_or(Ok(()), |(_, pool)| self.row(Kind::Subnet, &pool.spec.subnet, None))
    }

    fn reservation(self, wanted: &ReservationSpec) -> Result<(), Refusal> {
        self.row(Kind::Reservation, &wanted.name, Some(&wanted.metadata))?;
        let present = self.state.find_row::<Reservation>(&wanted.name).map(|(_, row)| &row.spec);
        let network = present.map_or(&wanted.network, |present| &present.network);
        self.reserved(network, present.map_or(&[], |present| &present.addresses), &wanted.addresses)
    }

    /// Refuses a policy of another realm. Its renderings are allocations, with limits of their own.
    fn host_policy(self, wanted: &HostPolicySpec) -> Result<(), Refusal> {
        permit_realm(self.grant, &wanted.realm)?;
        self.realm_of_host_policy(&(&wanted.name).into())?;
        self.row(Kind::HostPolicy, &wanted.name, Some(&wanted.metadata))
    }

    fn realm_of_host_policy(self, name: &ResourceName) -> Result<(), Refusal> {
        let present = self.state.find_row::<HostPolicy>(name);
        present.map_or(Ok(()), |(_, row)| permit_realm(self.grant, &row.spec.realm))
    }

    /// Refuses a change of reserved addresses where the labels allow none.
    fn reserved(self, network: &Name, old: &[AddressRange], new: &[AddressRange]) -> Result<(), Refusal> {
        let Some(id) = self.state.find::<Network>(network) else { return Ok(()) };
        for family in Family::BOTH {
            let (old, new) = (RangeSet::new(family, old), RangeSet::new(family, new));
            for range in old.minus(&new).union(&new.minus(&old)).ranges() {
                self.addresses((id, network), range)?;
            }
        }
        self.work.check()
    }

    /// Refuses addresses of pools without the labels, and of no pool in subnets or a network without them.
    fn addresses(self, (id, network): (NetworkId, &Name), range: AddressRange) -> Result<(), Refusal> {
        let family = range.family();
        let mut next = Some(range.first());
        while let Some(at) = next.filter(|at| *at <= range.last()) {
            if !self.work.take(1) {
                return self.work.check();
            }
            let (pool, to) = self.state.owner_from(id, family, at);
            let to = match pool {
                Some(pool) => {
                    self.state.permit_pool(self.grant, pool)?;
                    to
                }
                None => match self.state.subnet_stretch(id, family, at) {
                    (Some(subnet), end) => {
                        self.row(Kind::Subnet, &subnet.spec.name, None)?;
                        to.min(end)
                    }
                    (None, end) => {
                        self.row(Kind::Network, network, None)?;
                        to.min(end)
                    }
                },
            };
            next = to.checked_add(1);
        }
        Ok(())
    }

    /// Refuses a heartbeat of a node without the labels: it renews leases of any pool.
    fn heard(self, node: &NodeKey) -> Result<(), Refusal> {
        if self.grant.labels.is_empty() || self.grant.node.as_ref() == Some(node) {
            return Ok(());
        }
        let name = ResourceName::in_realm(&node.realm, &node.name);
        match self.state.node(&node.realm, &node.name) {
            Some(row) if fits(self.grant, &row.spec.metadata) => Ok(()),
            _ => Err(not_labelled(self.grant, Kind::Node, name)),
        }
    }

    fn node(self, put: &Put<NodeSpec>) -> Result<(), Refusal> {
        let wanted = &put.spec;
        permit_realm(self.grant, &wanted.realm)?;
        self.described(Kind::Node, wanted.resource_name(), &wanted.metadata)
    }

    fn namespace(self, put: &Put<NamespaceSpec>) -> Result<(), Refusal> {
        let wanted = &put.spec;
        permit_realm(self.grant, &wanted.realm)?;
        let name = wanted.resource_name();
        self.described(Kind::Namespace, name.clone(), &wanted.metadata)?;
        let present = self.state.namespace(&wanted.realm, &wanted.name).map(|row| &row.spec);
        let Some(present) = present.filter(|_| !self.grant.labels.is_empty()) else { return Ok(()) };
        if present.quota != wanted.quota {
            return Err(beyond(Kind::Namespace, name, Some(FieldName::Quota)));
        }
        for family in Family::BOTH {
            let old = present.default_pools.of(family);
            let mut fresh = wanted.default_pools.of(family).iter().filter(|pattern| !old.contains(pattern));
            fresh.try_for_each(|pattern| self.default_pool(&name, family, pattern))?;
        }
        Ok(())
    }

    /// Refuses a default pool without the labels, and a pattern, which could match pools created later.
    fn default_pool(self, name: &ResourceName, family: Family, pattern: &NamePattern) -> Result<(), Refusal> {
        let pool = pattern.name().filter(|pool| self.state.find::<Pool>(pool).is_some());
        match pool {
            Some(pool) => self.row(Kind::Pool, &pool, None),
            None => {
                let field = match family {
                    Family::V4 => FieldName::DefaultIpv4Pools,
                    Family::V6 => FieldName::DefaultIpv6Pools,
                };
                Err(beyond(Kind::Namespace, name.clone(), Some(field)))
            }
        }
    }

    /// Refuses a node or a namespace that is new or has other labels: pools select by them.
    fn described(self, kind: Kind, name: ResourceName, wanted: &Metadata) -> Result<(), Refusal> {
        if self.grant.labels.is_empty() {
            return Ok(());
        }
        self.row(kind, &name, Some(wanted))?;
        match self.state.metadata(kind, &name) {
            None => Err(beyond(kind, name, None)),
            Some(present) if present.labels != wanted.labels => {
                Err(beyond(kind, name, Some(FieldName::Labels)))
            }
            Some(_) => Ok(()),
        }
    }

    fn delete(self, delete: &Delete) -> Result<(), Refusal> {
        let Delete { kind, name, .. } = delete;
        self.row(*kind, name, None)?;
        match kind {
            Kind::Network | Kind::Pool => Ok(()),
            Kind::HostPolicy => self.realm_of_host_policy(name),
            Kind::Subnet => match self.state.find_row::<Subnet>(name) {
                Some((_, row)) => self.row(Kind::Network, &row.spec.network, None),
                None => Ok(()),
            },
            Kind::Reservation => {
                let row = self.state.find_row::<Reservation>(name).map(|(_, row)| &row.spec);
                row.map_or(Ok(()), |row| self.reserved(&row.network, &row.addresses, &[]))
            }
            Kind::Token => self.state.permit_present_token(self.grant, name),
            Kind::Node | Kind::Namespace => {
                if let Some((realm, _)) = name.parts() {
                    permit_realm(self.grant, &realm)?;
                }
                match self.grant.labels.is_empty() {
                    true => Ok(()),
                    false => Err(beyond(*kind, name.clone(), None)),
                }
            }
        }
    }
}

fn beyond(kind: Kind, name: ResourceName, field: Option<FieldName>) -> Refusal {
    Cause::BeyondLabels { kind, name, field }.into()
}

impl State {
    /// Subnet at an address, if any, and the last address with the same result.
    fn subnet_stretch(&self, network: NetworkId, family: Family, at: u128) -> (Option<&Subnet>, u128) {
        let starts = &self.index.subnet_starts;
        let before = starts.last_in((network, family, 0)..=(network, family, at));
        let before = before.and_then(|(_, id)| self.subnets.get(*id));
        if let Some(row) = before {
            let last = AddressRange::of_cidr(row.spec.cidr).last();
            if last >= at {
                return (Some(row), last);
            }
        }
        let behind = (Bound::Excluded((network, family, at)), Bound::Included((network, family, u128::MAX)));
        let next = starts.range(behind).next();
        (None, next.map_or(u128::MAX, |((_, _, first), _)| first - 1))
    }
}
