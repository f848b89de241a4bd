//! Giving addresses: everything that is asked for, or nothing.
//!
//! First all of it is planned on the state as it is; nothing can be refused once the first row is written.

use std::sync::Arc;

use ipam_api::Family;
use ipam_api::address::number;
use ipam_api::limits::ALLOCATIONS_PER_ENDPOINT_MAX;
use ipam_api::resource::Lifecycle;
use ipnet::IpNet;

use crate::allocate::carry_over::Comer;
use crate::allocate::course::Courses;
use crate::allocate::pick::{Pick, Spoken, Taken, behind};
use crate::allocate::routing::Settings;
use crate::apply::step::Step;
use crate::broken::broken;
use crate::command::{Allocate, Answer, Cause, Given, GivenInterface, InterfaceWish, Refusal, Setting, Text};
use crate::event::{Holding, Reason, What};
use crate::invariant::PROMISED_ADDRESS;
use crate::state::row::{Allocation, Attachment, Endpoint, PoolState, Source};
use crate::state::{Occupant, State};

use crate::allocate::selectors::Taker;
use crate::allocate::unclaimed::Needs;
use crate::apply::work::{Search, Work};
use crate::state::id::{AllocationId, AttachmentId, EndpointId};

impl Step<'_> {
    pub(crate) fn allocate(&mut self, wish: &Allocate) -> Result<Answer, Refusal> {
        // Late comes first: an ADD from before a release doesn't share what a newer ADD was given after it.
        if let (Some(key), Some(started)) = (&wish.attachment, &wish.started) {
            self.state.check_not_late(key, started)?;
        }
        let before = self.state.given_before(wish, self.work);
        self.work.check()?;
        if let Some((ids, to)) = before? {
            if let (Some(key), Some(started)) = (&wish.attachment, &wish.started) {
                self.note_repeat(key, started);
            }
            if let Some(ttl_ms) = wish.manner.ttl_ms {
                // Whoever asks for a lease again renews it, and must be allowed to.
                let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
                self.state.permit_labels_of(grant, &ids)?;
                ids.iter().try_for_each(|id| self.state.permit_lease(grant, *id, Some(ttl_ms)))?;
                self.renew_all(&ids, Some(ttl_ms));
            }
            self.resize_pools(wish, &ids);
            return Ok(Answer::Allocated { repeated: true, interfaces: self.state.given(&ids, to) });
        }
        self.with_automatic_pools(wish, |step| step.choose_and_give(wish))
    }

    fn choose_and_give(&mut self, wish: &Allocate) -> Result<Answer, Refusal> {
        let endpoint = self.state.incarnation_for(wish);
        match self.state.plan(wish, endpoint, self.search()?) {
            Ok(plan) => Ok(self.give(wish, plan)),
            Err(refusal) if wish.manner.wait && !self.work.is_exceeded() => {
                self.wait(wish, endpoint, refusal)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Writes what was planned.
    pub(crate) fn give(&mut self, wish: &Allocate, plan: Plan) -> Answer {
        let Plan { endpoint, arrived, picks, along, left, settings } = plan;
        let unchanged = endpoint.and_then(|id| self.state.endpoints.get(id)) == arrived.as_ref();
        if wish.attachment.is_none() && unchanged && picks.is_empty() && left.is_empty() {
            return Answer::Allocated {
                repeated: true,
                interfaces: self.state.given(&in_order(along), None),
            };
        }
        if let (Some(key), Some(started)) = (&wish.attachment, &wish.started) {
            self.hear(key, started, false);
        }
        let endpoint_id = endpoint.unwrap_or_else(|| self.state.new_id());
        let attachment_id = wish.attachment.as_ref().map(|_| self.state.new_id());
        let mut row = arrived.unwrap_or_else(|| self.new_endpoint(endpoint_id, wish));
        if let Some(attachment) = attachment_id {
            for id in &along {
                self.attach(*id, wish, attachment, settings.of_allocation(*id));
                self.detach_surplus(*id, wish);
            }
        }
        let mut ids = Vec::with_capacity(picks.len());
        for (place, pick) in picks.iter().enumerate() {
            let id = self.state.new_id();
            ids.push(id);
            let moves = self.state.moves(&row, wish.lifecycle, pick);
            let to = attachment_id.filter(|_| wish.is_own(&pick.interface));
            self.write_allocation(id, wish, endpoint_id, to, (pick, settings.of_pick(place)), moves);
            let accounts = self.state.accounts(&row, pick.pool);
            self.state.count_address(accounts, pick.address, true);
        }
        row.allocations.extend_from_slice(&ids);
        if wish.attachment.is_none() && ids.is_empty() {
            self.state.tick();
        }
        self.put_endpoint(endpoint_id, row);
        // Only now: an endpoint that holds nothing is gone.
        self.release_all(&left, Reason::Moved);
        let mut ids = in_order(along.into_iter().chain(ids).collect());
        if let (Some(key), Some(id), Some(started)) = (&wish.attachment, attachment_id, &wish.started) {
            ids.retain(|id| self.state.allocations.get(*id).is_some_and(|row| wish.is_own(&row.interface)));
            let (key, started) = (key.clone(), started.clone());
            let row = Attachment { key, started, endpoint: endpoint_id, allocations: ids };
            self.state.write(id, row);
            ids = self.state.asked_for(wish, endpoint_id, id);
        }
        self.stop_waiting(endpoint_id, wish);
        Answer::Allocated { repeated: false, interfaces: self.state.given(&ids, attachment_id) }
    }

    pub(crate) fn new_endpoint(&mut self, id: EndpointId, wish: &Allocate) -> Endpoint {
        let row = Endpoint {
            meta: self.new_meta(id),
            key: wish.endpoint.clone(),
            uid: wish.uid.clone(),
            controller: None,
            sticky: None,
            allocations: Vec::new(),
            waiting: None,
        };
        self.state.arrived(&row, wish)
    }

    fn source(&self, wish: &Allocate) -> Source {
        self.rights.as_ref().map_or(Source::Operator, |(grant, _)| Source::of(grant, wish.manner.adopt))
    }

    fn write_allocation(
        &mut self,
        id: AllocationId,
        wish: &Allocate,
        endpoint: EndpointId,
        attachment: Option<AttachmentId>,
        (pick, setting): (&Pick, Option<Arc<Setting>>),
        moves: bool,
    ) {
        let pool = self.state.pools.named(pick.pool);
        let pool_name = pool.intention.name.clone();
        let network = self.state.subnets.named(pool.subnet).network;
        let network_name = self.state.name_of_network(network);
        match self.state.occupant(network, pick.address) {
            Some(Occupant::Cooling(cooling)) => drop(self.state.end_cooling(cooling)),
            Some(Occupant::Allocation(other)) => {
                broken(PROMISED_ADDRESS, format!("{} is held by allocation {other}", pick.address))
            }
            None => {}
        }
        if self.state.space(pick.pool).is_none_or(|space| !space.giveable.contains(number(pick.address))) {
            broken(PROMISED_ADDRESS, format!("{} is not of pool {pool_name}", pick.address));
        }
        let mac =
            wish.interfaces.iter().find(|one| one.name == pick.interface).and_then(|one| one.mac.clone());
        let row = Allocation {
            address: pick.address,
            network,
            pool: pick.pool,
            endpoint,
            interface: pick.interface.clone(),
            attachment,
            also_attached: Vec::new(),
            node: wish.place().cloned(),
            lifecycle: wish.lifecycle,
            lease: wish.manner.ttl_ms.map(|ttl_ms| self.new_lease(ttl_ms)),
            checked: false,
            mac,
            note: wish.manner.note.clone(),
            setting,
            created_wall_ms: self.at.wall_ms,
            created_by: Text::clone(&self.origin.principal),
            source: self.source(wish),
        };
        let space = self.state.space_mut(pick.pool);
        space.allocated += 1;
        space.occupy(number(pick.address));
        self.state.write(id, row);
        let old = self.state.pool_states.get(pick.pool).cloned().unwrap_or_default();
        let moved = PoolState { cursor: Some(pick.address), ..old };
        self.state.write(pick.pool, moved);
        let reason = match wish.attachment {
            _ if wish.manner.adopt => Reason::Adopted,
            _ if moves => Reason::Moved,
            Some(_) => Reason::AttachmentAdded,
            None if wish.manner.wait && self.state.waiting(endpoint).is_some() => Reason::Waited,
            None => Reason::Requested,
        };
        self.emit(What::Allocated(Holding {
            network: network_name,
            address: pick.address,
            pool: pool_name,
            endpoint: wish.endpoint.clone(),
            interface: pick.interface.clone(),
            node: wish.node.clone(),
            allocation: id,
            reason,
        }));
        self.refresh_readiness(pick.pool);
    }
}

/// What a request comes to, before anything is written.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The endpoint's id, if it is there.
    endpoint: Option<EndpointId>,
    /// Its row, as the request leaves it but for its allocations.
    arrived: Option<Endpoint>,
    /// Addresses that are new.
    picks: Vec<Pick>,
    /// Allocations that the endpoint has already and takes along to the attachment.
    along: Vec<AllocationId>,
    /// What the endpoint holds no longer.
    left: Vec<AllocationId>,
    /// What is kept of its routing.
    settings: Settings,
}

/// What an earlier request was given, and to which attachment.
type Before = (Vec<AllocationId>, Option<AttachmentId>);

/// The order in which an attachment has its allocations, and every answer shows them.
fn in_order(mut ids: Vec<AllocationId>) -> Vec<AllocationId> {
    ids.sort_unstable();
    ids
}

impl State {
    /// Chooses an address for every interface and family, or finds it among what the endpoint has.
    pub(crate) fn plan(
        &self,
        wish: &Allocate,
        endpoint: Option<EndpointId>,
        search: Search<'_>,
    ) -> Result<Plan, Refusal> {
        let plan = self.plan_all(wish, endpoint, search);
        // First of all: a search that was cut short says nothing about the pools.
        search.work.check()?;
        plan
    }

    fn plan_all(
        &self,
        wish: &Allocate,
        endpoint: Option<EndpointId>,
        search: Search<'_>,
    ) -> Result<Plan, Refusal> {
        let row = endpoint.and_then(|id| self.endpoints.get(id));
        let comer = Comer { wish, row };
        let (mut picks, mut along, mut stays) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen_to = Vec::new();
        let asked = self.asked_by_value(wish, search);
        let mut courses = Courses::default();
        for (place, interface) in wish.interfaces.iter().enumerate() {
            let portable = match self.needs(&comer, interface, search.work) {
                Needs::Nothing => continue,
                Needs::Claims(ids) => {
                    along.extend(ids);
                    continue;
                }
                Needs::Addresses(portable) => portable,
            };
            seen_to.push(&interface.name);
            let taken = if wish.manner.adopt {
                self.pick_adopted(interface, &portable, &picks, search)?
            } else {
                let taker = Taker::of(self, wish, interface);
                let behind = behind(&asked, place);
                let spoken = Spoken { picked: &picks, behind: &behind };
                self.pick_for((interface, &taker), &portable, spoken, search, &mut courses)?
            };
            for one in taken {
                match one {
                    Taken::New(pick) => picks.push(pick),
                    Taken::Along(id) if wish.is_own(&interface.name) => along.push(id),
                    Taken::Along(id) => stays.push(id),
                }
            }
        }
        let held = row.map_or(0, |row| row.allocations.len());
        if held + picks.len() > ALLOCATIONS_PER_ENDPOINT_MAX {
            let endpoint = wish.endpoint.clone();
            return Err(Cause::TooManyAllocations { endpoint, held: held as u64 }.into());
        }
        stays.extend_from_slice(&along);
        let mut left = match comer.is_sticky() {
            true => self.left_behind(&comer, &stays, &seen_to),
            false => self.unclaimed_and_unwanted(&comer, &stays),
        };
        self.limit_plan(search.grant, wish, row, &picks, &mut left)?;
        self.check_portable(wish, &along, &left, search.grant)?;
        self.check_quota(wish, row, &picks, &left)?;
        let settings = self.settings(wish, row, &picks, &along, &left)?;
        let arrived = row.map(|row| match self.is_fixed_for(search.grant, row) {
            true => row.clone(),
            false => self.arrived(row, wish),
        });
        Ok(Plan { endpoint, arrived, picks, along, left, settings })
    }

    /// Whether an address is for an interface of a sticky endpoint that had another one there.
    fn moves(&self, endpoint: &Endpoint, lifecycle: Lifecycle, pick: &Pick) -> bool {
        let mut before = endpoint.allocations.iter().filter_map(|id| self.allocations.get(*id));
        lifecycle != Lifecycle::Leased
            && endpoint.sticky.is_some()
            && before.any(|row| {
                row.interface == pick.interface && Family::of(row.address) == Family::of(pick.address)
            })
    }

    /// The incarnation that the request speaks of, if it exists: the one with its uid, an earlier one too;
    /// without a uid the newest. A sticky endpoint has one, whatever its uid.
    pub(crate) fn incarnation_for(&self, wish: &Allocate) -> Option<EndpointId> {
        let rows = || self.incarnations(&wish.endpoint).rev();
        let is_sticky = |id: &EndpointId| self.endpoints.get(*id).is_some_and(|row| row.sticky.is_some());
        let is_meant = |id: &EndpointId| {
            wish.uid.is_none() || self.endpoints.get(*id).is_some_and(|row| row.uid == wish.uid)
        };
        let sticky = if wish.stickiness.is_sticky() { rows().find(is_sticky) } else { None };
        sticky.or_else(|| rows().find(is_meant))
    }

    /// What an earlier request that was the same was given: by attachment, else by endpoint and interface.
    fn given_before(&self, wish: &Allocate, work: &Work) -> Result<Option<Before>, Refusal> {
        if let Some(key) = &wish.attachment {
            let Some((id, row)) = self.attachment(key) else { return Ok(None) };
            let owner = self.endpoints.get(row.endpoint);
            let same = owner.is_some_and(|owner| {
                let same_incarnation = wish.uid.is_none() || wish.uid == owner.uid || owner.sticky.is_some();
                owner.key == wish.endpoint && same_incarnation
            });
            if same {
                return Ok(Some((self.asked_for(wish, row.endpoint, id), Some(id))));
            }
            return Err(Cause::AttachmentOfAnother {
                attachment: key.clone(),
                holder: self.holder(row.endpoint),
                is_incarnation: owner.is_some_and(|owner| owner.key == wish.endpoint),
            }
            .into());
        }
        let Some(endpoint) = self.incarnation_for(wish).and_then(|id| self.endpoints.get(id)) else {
            return Ok(None);
        };
        if (Comer { wish, row: Some(endpoint) }).is_sticky() {
            // It takes along what it has, and may change the rest.
            return Ok(None);
        }
        let mut ids = Vec::new();
        let mut missing = 0;
        for interface in &wish.interfaces {
            let held = self.held_by(endpoint, interface);
            let other = held.iter().filter_map(|id| self.allocations.get(*id));
            let other = other.map(|row| row.lifecycle).find(|lifecycle| *lifecycle != wish.lifecycle);
            if held.is_empty() {
                missing += 1;
            } else if let Some(other) = other {
                return Err(Cause::OtherLifecycle {
                    endpoint: wish.endpoint.clone(),
                    interface: interface.name.clone(),
                    present: other,
                    asked: wish.lifecycle,
                }
                .into());
            } else if !self.satisfies(&held, interface, work) {
                let (endpoint, interface) = (wish.endpoint.clone(), interface.name.clone());
                return Err(Cause::OtherAddresses { endpoint, interface }.into());
            }
            ids.extend(held);
        }
        match (ids.is_empty(), missing) {
            (true, _) => Ok(None),
            (false, 0) => Ok(Some((ids, None))),
            (false, _) => Err(Cause::SomeInterfaces { endpoint: wish.endpoint.clone() }.into()),
        }
    }

    /// What an endpoint holds on an interface without an attachment.
    fn held_by(&self, endpoint: &Endpoint, interface: &InterfaceWish) -> Vec<AllocationId> {
        let holds = |id: &&AllocationId| {
            self.allocations
                .get(**id)
                .is_some_and(|row| row.lifecycle != Lifecycle::Attached && row.interface == interface.name)
        };
        endpoint.allocations.iter().filter(holds).copied().collect()
    }

    /// Whether what is held is what an interface asks for.
    pub(crate) fn satisfies(&self, held: &[AllocationId], wish: &InterfaceWish, work: &Work) -> bool {
        let rows = || held.iter().filter_map(|id| self.allocations.get(*id));
        let allowed = |row: &Allocation| {
            let Some(pool) = self.pools.get(row.pool).map(|pool| &pool.intention) else { return false };
            if !wish.subnets.is_empty() {
                return wish.subnets.contains(&pool.subnet);
            }
            let family = Family::of(row.address);
            let names = wish.pools.of(family);
            wish.pools.is_empty()
                || names.iter().any(|pattern| pattern.fits(&pool.name))
                || self.stands_in_for(&pool.name, family, names, work)
        };
        let has = |family| rows().any(|row| Family::of(row.address) == family);
        let named = |family| wish.subnets.is_empty() && !wish.pools.of(family).is_empty();
        let covers = |family| !named(family) || !wish.takes(family) || has(family);
        rows().all(allowed)
            && (wish.families.is_empty() || Family::BOTH.iter().all(|one| wish.takes(*one) == has(*one)))
            && Family::BOTH.into_iter().all(covers)
            && wish.addresses.iter().all(|address| rows().any(|row| row.address == *address))
    }

    /// What interfaces have, with all that is needed to configure them: for one of its attachments, or for whoever
    /// looks at it. All of them are one endpoint's.
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
            let (unclaimed, kept) =
                (row.awaits_attachment() && is_alive, row.awaits_attachment() && !is_alive);
            let is_same = |other: &&mut GivenInterface| {
                (&other.name, &other.attachment, other.kept, other.unclaimed)
                    == (&row.interface, &attachment, kept, unclaimed)
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
                    unclaimed,
                    addresses: vec![given],
                }),
            }
        }
        for interface in &mut interfaces {
            interface.addresses.sort_by_key(|given| !given.address.addr().is_ipv4());
        }
        interfaces
    }

    fn given_address(&self, id: AllocationId, row: &Allocation) -> Option<Given> {
        let pool = self.pools.get(row.pool)?;
        let subnet = &self.subnets.get(pool.subnet)?.intention;
        let pool = &pool.intention;
        Some(Given {
            allocation: id,
            address: IpNet::new(row.address, subnet.cidr.prefix_len()).ok()?,
            gateway: pool.gateway.or(subnet.gateway),
            routes: row.routes(&subnet.routes, &pool.routes),
            clean_gateway: row.setting.as_ref().is_some_and(|setting| setting.clean_gateway),
            dns: subnet.dns.clone(),
            vlan: subnet.vlan,
            mtu: subnet.mtu,
            pool: pool.name.clone(),
            checked: row.checked,
            lease: row.lease.clone(),
            mac: row.mac.clone(),
            note: row.note.clone(),
        })
    }
}
