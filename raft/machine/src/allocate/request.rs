//! Allocation: all requested addresses, or none.
//!
//! The whole plan is made on the present state; after the first write nothing can be refused.

use crate::allocate::choosing::{Choosing, Plan};
use crate::allocate::pick::Pick;
use crate::allocate::routing::{Which, shared_routes};
use crate::apply::step::Step;
use crate::broken::broken;
use crate::command::{
    Allocate, Answer, Given, GivenInterface, GivenPool, Pending, Refusal, RouteConfig, Text,
};
use crate::event::{EventKind, Holding, Reason};
use crate::invariant::PROMISED_ADDRESS;
use crate::state::id::{AllocationId, AttachmentId, EndpointId, PoolId};
use crate::state::row::{Allocation, Attachment, Endpoint, PoolState, Source};
use crate::state::{Occupant, State};
use crate::value::{IdList, RareList};
use ipam_api::Family;
use ipam_api::address::number;
use ipam_api::resource::Lifecycle;
use ipnet::IpNet;
use std::sync::Arc;

/// Result of a request.
#[derive(Debug)]
pub(crate) enum Served {
    /// The endpoint holds these allocations.
    Held {
        /// True for the repetition of an earlier request.
        repeated: bool,
        ids: Vec<AllocationId>,
        /// Attachment for which the answer shows the allocations.
        to: Option<AttachmentId>,
    },
    /// The request waits for addresses.
    Waits(Pending),
}

impl Step<'_> {
    /// Answer to the request of one endpoint.
    pub(crate) fn answer_to_one(&self, served: Served) -> Answer {
        match served {
            Served::Held { repeated, ids, to } => {
                Answer::Allocated { repeated, interfaces: self.state.given(&ids, to) }
            }
            Served::Waits(pending) => Answer::Pending(pending),
        }
    }

    pub(crate) fn allocate(&mut self, request: &Allocate) -> Result<Served, Refusal> {
        // Lateness is checked first: an ADD from before a release doesn't share the allocations of a newer
        // ADD.
        if let (Some(key), Some(started)) = (&request.attachment, &request.started) {
            self.state.check_not_late(key, started)?;
        }
        self.state.check_machine(request, self.search()?)?;
        match self.state.renamed_by(request, self.work) {
            None => self.allocate_known(request),
            Some(id) => self.on_draft(|step| {
                step.take_over(id, request);
                match step.allocate_known(request)? {
                    // The uid changed, so this is no repetition.
                    Served::Held { ids, to, .. } => Ok(Served::Held { repeated: false, ids, to }),
                    waits @ Served::Waits(_) => Ok(waits),
                }
            }),
        }
    }

    fn allocate_known(&mut self, request: &Allocate) -> Result<Served, Refusal> {
        let search = self.search()?;
        let endpoint = self.state.incarnation_for(request, self.work);
        let before = Choosing::of(self.state, request, endpoint, search).given_before();
        self.work.check()?;
        if let Some((ids, to)) = before? {
            if let (Some(key), Some(started)) = (&request.attachment, &request.started) {
                self.note_repeat(key, started);
            }
            if let Some(ttl_ms) = request.options.ttl_ms {
                // Repeating a request for a lease renews it, which needs the right to do so.
                self.state.permit_labels_of(search.grant, &ids)?;
                ids.iter().try_for_each(|id| self.state.permit_lease(search.grant, *id, Some(ttl_ms)))?;
                self.renew_all(&ids, Some(ttl_ms));
            }
            self.resize_pools(request, &ids);
            return Ok(Served::Held { repeated: true, ids, to });
        }
        self.with_automatic_pools(request, |step| step.choose_and_give(request, endpoint))
    }

    fn choose_and_give(
        &mut self,
        request: &Allocate,
        endpoint: Option<EndpointId>,
    ) -> Result<Served, Refusal> {
        match Choosing::of(self.state, request, endpoint, self.search()?).plan() {
            Ok(plan) => Ok(self.give(request, endpoint, plan)),
            Err(refusal) if request.options.wait && !self.work.is_exceeded() => {
                self.wait(request, endpoint, refusal).map(Served::Waits)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Writes the plan of a request.
    pub(super) fn give(&mut self, request: &Allocate, endpoint: Option<EndpointId>, plan: Plan) -> Served {
        let Plan { updated_endpoint, picks, reused, left, route_configs } = plan;
        let unchanged = endpoint.and_then(|id| self.state.endpoints.get(id)) == updated_endpoint.as_ref();
        if request.attachment.is_none() && unchanged && picks.is_empty() && left.is_empty() {
            return Served::Held { repeated: true, ids: in_order(reused), to: None };
        }
        if let (Some(key), Some(started)) = (&request.attachment, &request.started) {
            self.hear(key, started, false);
        }
        let endpoint_id = endpoint.unwrap_or_else(|| self.state.new_id());
        let attachment_id = request.attachment.as_ref().map(|_| self.state.new_id());
        let mut row = updated_endpoint.unwrap_or_else(|| self.new_endpoint(endpoint_id, request));
        if let Some(attachment) = attachment_id {
            for id in &reused {
                self.attach(*id, request, attachment, route_configs.of(Which::Held(*id)));
                self.detach_surplus(*id, request);
            }
        }
        let mut ids = Vec::with_capacity(picks.len());
        for (place, pick) in picks.iter().enumerate() {
            let to = attachment_id.filter(|_| request.is_own(&pick.interface));
            let route_config = route_configs.of(Which::Pick(place));
            ids.push(self.write_allocation(request, (endpoint_id, &row), to, pick, route_config));
        }
        row.allocations.change(|own| own.extend_from_slice(&ids));
        if request.attachment.is_none() && ids.is_empty() {
            self.state.tick();
        }
        self.put_endpoint(endpoint_id, row);
        // Removed last: an endpoint without allocations is deleted.
        self.release_all(&left, Reason::Moved);
        let mut ids = in_order(reused.into_iter().chain(ids).collect());
        if let (Some(key), Some(id), Some(started)) = (&request.attachment, attachment_id, &request.started) {
            ids.retain(|id| {
                self.state.allocations.get(*id).is_some_and(|row| request.is_own(&row.interface))
            });
            let (key, started) = (key.clone(), started.clone());
            let allocations = IdList::from(ids);
            self.state.write(id, Attachment { key, started, endpoint: endpoint_id, allocations });
            ids = self.state.asked_for(request, endpoint_id, id);
        }
        self.stop_waiting(endpoint_id, request);
        Served::Held { repeated: false, ids, to: attachment_id }
    }

    pub(super) fn new_endpoint(&mut self, id: EndpointId, request: &Allocate) -> Endpoint {
        let row = Endpoint {
            meta: self.new_meta(id),
            key: request.endpoint.clone(),
            uid: request.uid.clone(),
            controller: None,
            sticky: None,
            allocations: IdList::default(),
            waiting: None,
        };
        request.updated_endpoint(&row)
    }

    fn write_allocation(
        &mut self,
        request: &Allocate,
        (endpoint, holder): (EndpointId, &Endpoint),
        attachment: Option<AttachmentId>,
        pick: &Pick,
        route_config: Option<Arc<RouteConfig>>,
    ) -> AllocationId {
        let id = self.state.new_id();
        let moves = self.state.moves(holder, request.lifecycle, pick);
        let pool = self.state.pools.named(pick.pool);
        let pool_name = pool.spec.name.clone();
        let network = self.state.subnets.named(pool.subnet).network;
        let network_name = self.state.name_of_network(network);
        match self.state.occupant(network, pick.address) {
            Some(Occupant::Cooling(cooling)) => drop(self.state.end_cooling(cooling)),
            // An adoption reports a fact, which outweighs the result of a probe.
            Some(Occupant::Quarantine(id)) => drop(self.lift_quarantine(id, None)),
            Some(Occupant::Allocation(other)) => {
                broken(PROMISED_ADDRESS, format!("{} is held by allocation {other}", pick.address))
            }
            None => {}
        }
        if self.state.space(pick.pool).is_none_or(|space| !space.allocatable.contains(number(pick.address))) {
            broken(PROMISED_ADDRESS, format!("{} is not of pool {pool_name}", pick.address));
        }
        let row = Allocation {
            address: pick.address,
            network,
            pool: pick.pool,
            endpoint,
            interface: pick.interface.clone(),
            attachment,
            also_attached: RareList::default(),
            node: request.place().cloned(),
            lifecycle: request.lifecycle,
            lease: request.options.ttl_ms.map(|ttl_ms| Box::new(self.new_lease(ttl_ms))),
            checked: self.state.use_check(pick.pool, pick.address),
            mac: request.mac_of(&pick.interface),
            metadata: request.options.metadata.clone(),
            route_config,
            created_wall_ms: self.at.wall_ms,
            created_by: Text::clone(&self.origin.principal),
            source: self
                .rights
                .as_ref()
                .map_or(Source::Operator, |(grant, _)| Source::of(grant, request.options.adopt)),
        };
        let space = self.state.space_mut(pick.pool);
        space.allocated += 1;
        space.occupy(number(pick.address));
        self.state.write_allocation(id, row, &request.endpoint.realm);
        let old = self.state.pool_states.get(pick.pool).cloned().unwrap_or_default();
        let moved = PoolState { cursor: Some(pick.address), ..old };
        self.state.write(pick.pool, moved);
        let reason = match request.attachment {
            _ if request.options.adopt => Reason::Adopted,
            _ if moves => Reason::Moved,
            Some(_) => Reason::AttachmentAdded,
            None if request.options.wait && self.state.waiting(endpoint).is_some() => Reason::Waited,
            None => Reason::Requested,
        };
        self.emit(EventKind::Allocated(Holding {
            network: network_name,
            address: pick.address,
            pool: pool_name,
            endpoint: request.endpoint.clone(),
            interface: pick.interface.clone(),
            node: request.node.clone(),
            allocation: id,
            reason,
        }));
        self.refresh_readiness(pick.pool);
        let scopes = self.state.scopes(holder, pick.pool);
        self.state.count_address(scopes, pick.address, true);
        id
    }
}

/// Sorts allocations in the order in which attachments list them and answers show them.
fn in_order(mut ids: Vec<AllocationId>) -> Vec<AllocationId> {
    ids.sort_unstable();
    ids
}

impl State {
    /// Returns true if a sticky endpoint had another address of the family on the interface.
    fn moves(&self, endpoint: &Endpoint, lifecycle: Lifecycle, pick: &Pick) -> bool {
        let mut before = endpoint.allocations.iter().filter_map(|id| self.allocations.get(*id));
        lifecycle != Lifecycle::Leased
            && endpoint.sticky.is_some()
            && before.any(|row| {
                row.interface == pick.interface && Family::of(row.address) == Family::of(pick.address)
            })
    }

    /// Interfaces with their allocations and the configuration, for one attachment or for a reader. All
    /// allocations belong to one endpoint.
    #[must_use]
    pub fn given(&self, allocations: &[AllocationId], to: Option<AttachmentId>) -> Vec<GivenInterface> {
        let mut interfaces: Vec<GivenInterface> = Vec::new();
        let first = allocations.first().and_then(|id| self.allocations.get(*id));
        let is_alive = first.is_some_and(|row| self.is_attached(row.endpoint));
        for id in allocations {
            let Some(row) = self.allocations.get(*id) else { continue };
            let Some(given) = self.given_address(*id, row) else { continue };
            let mut attached: Vec<(AttachmentId, &Attachment)> = self.attachments_of(row).collect();
            attached.sort_by_key(|(id, _)| Some(*id) != to);
            let mut keys = attached.into_iter().map(|(_, attachment)| attachment.key.clone());
            let attachment = keys.next();
            let (preallocated, kept) =
                (row.awaits_attachment() && is_alive, row.awaits_attachment() && !is_alive);
            let is_same = |other: &&mut GivenInterface| {
                (&other.name, &other.attachment, other.kept, other.preallocated)
                    == (&row.interface, &attachment, kept, preallocated)
            };
            match interfaces.iter_mut().find(is_same) {
                Some(other) => {
                    let more: Vec<_> = keys.filter(|key| !other.also_attached.contains(key)).collect();
                    other.also_attached.extend(more);
                    other.addresses.push(given);
                }
                None => interfaces.push(GivenInterface {
                    name: row.interface.clone(),
                    attachment,
                    also_attached: keys.collect(),
                    kept,
                    preallocated,
                    addresses: vec![given],
                }),
            }
        }
        for interface in &mut interfaces {
            interface.addresses.sort_by_key(|given| !given.address.addr().is_ipv4());
        }
        interfaces
    }

    /// A pool with the configuration that all of its addresses share.
    pub(crate) fn given_pool(&self, id: PoolId) -> GivenPool {
        let pool = self.pools.named(id);
        let subnet = &self.subnets.named(pool.subnet).spec;
        GivenPool {
            name: pool.spec.name.clone(),
            subnet: subnet.name.clone(),
            cidr: subnet.cidr,
            gateway: pool.spec.gateway.or(subnet.gateway),
            routes: shared_routes(&subnet.routes, &pool.spec.routes),
            dns: subnet.dns.clone(),
            vlan: subnet.vlan,
            mtu: subnet.mtu,
        }
    }

    fn given_address(&self, id: AllocationId, row: &Allocation) -> Option<Given> {
        let GivenPool { name, subnet: _, cidr, gateway, routes, dns, vlan, mtu } = self.given_pool(row.pool);
        let probing = self.probing(row.pool);
        Some(Given {
            allocation: id,
            address: IpNet::new(row.address, cidr.prefix_len()).ok()?,
            gateway,
            routes: row.routes(routes),
            clean_gateway: row.route_config.as_ref().is_some_and(|route_config| route_config.clean_gateway),
            dns,
            vlan,
            mtu,
            pool: name,
            checked: row.checked,
            // An agent probes for its own ADD only, and not while another container uses the address, too.
            probes_conflicts: probing.conflicts()
                && !row.checked
                && row.lifecycle == Lifecycle::Attached
                && row.also_attached.is_empty(),
            probes_gateway: probing.gateway(),
            lease: self.lease_of(row),
            mac: row.mac.clone(),
            metadata: row.metadata.clone(),
        })
    }
}
