//! The model's own ADD and DEL.

mod adopt;
mod choose;
mod selectors;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::limits::{ALLOCATIONS_PER_ENDPOINT_MAX, ATTACHMENTS_PER_ALLOCATION_MAX};
use ipam_api::name::NamePattern;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Lifecycle;
use ipam_api::{Code, Family};
use ipam_machine::command::{Allocate, InterfaceRequest, RouteConfig, Started};

use selectors::{stands_for, unspecific};

use crate::model::naive::preallocated::{Found, own, waits_for};
use crate::model::naive::probes::Quarantined;
use crate::model::naive::waiting::Claim;
use crate::model::naive::{Held, Incarnation, Model, Pool, Reply, Spot};

/// Choice for an interface.
enum Choice<'a> {
    /// An existing address.
    Reused(Held),
    /// An address of a pool.
    New(&'a Pool, IpAddr),
}

/// Result of a request.
pub(crate) struct Plan {
    given: Vec<Held>,
    reused: Vec<Spot>,
    left: Vec<Spot>,
    route_configs: BTreeMap<Spot, RouteConfig>,
}

impl Model {
    pub(crate) fn release_in_order_of(&mut self, endpoints: &[u64]) -> Reply {
        let mut addresses = Vec::new();
        for endpoint in endpoints {
            if let Reply::Released(more) = self.release(|one| one.endpoint == *endpoint) {
                addresses.extend(more);
            }
        }
        Reply::Released(addresses)
    }

    pub(crate) fn allocate(&mut self, request: &Allocate) -> Result<Reply, Code> {
        if let (Some(key), Some(started)) = (&request.attachment, &request.started) {
            self.check_not_late(key, started)?;
        }
        let is_renamed = self.take_over(request)?;
        let said = self.allocate_known(request)?;
        Ok(match said {
            Reply::Given { addresses, .. } if is_renamed => Reply::Given { repeated: false, addresses },
            other => other,
        })
    }

    fn allocate_known(&mut self, request: &Allocate) -> Result<Reply, Code> {
        let meant = self.meant(request).cloned();
        let sticky = Model::keeps(request, meant.as_ref());
        let before: Vec<Held> = match &request.attachment {
            Some(key) => self.attached_before(request, key)?,
            None if sticky => Vec::new(),
            None => self.claimed_before(request, meant.as_ref().map(|one| one.number))?,
        };
        if !before.is_empty() {
            if let (Some(key), Some(started)) = (&request.attachment, &request.started) {
                self.note_repeat(key, started);
            }
            self.renew_all(&before, request.options.ttl_ms);
            let before = self.asked_for(request, before[0].endpoint, before);
            self.resize_pools(request, &before);
            return Ok(said(true, &before, request));
        }
        let used = self.make_pools(request)?;
        let plan = match self.plan(request, meant.as_ref()) {
            Ok(plan) => plan,
            Err(code) if request.options.wait => return self.wait(request, meant.as_ref(), code),
            Err(code) => return Err(code),
        };
        let endpoint = meant.as_ref().map_or(self.incarnations + 1, |one| one.number);
        if let (Some(key), Some(started)) = (&request.attachment, &request.started) {
            self.hear(key, started, false);
            self.attachments.insert(key.clone(), (started.clone(), endpoint));
            self.tied += 1;
            self.ties.insert(key.clone(), self.tied);
        }
        let said = self.give(request, meant.as_ref(), plan);
        self.trim(&used);
        Ok(said)
    }

    /// An address for every interface and family.
    pub(crate) fn plan(&self, request: &Allocate, meant: Option<&Incarnation>) -> Result<Plan, Code> {
        let endpoint = meant.map_or(self.incarnations + 1, |one| one.number);
        let mut reused: Vec<Held> = Vec::new();
        let mut given: Vec<Held> = Vec::new();
        let mut waiting: Vec<Spot> = Vec::new();
        let mut chosen_for = Vec::new();
        for (place, interface) in request.interfaces.iter().enumerate() {
            match self.found(request, meant, interface) {
                Found::Nothing => {}
                Found::Enough => continue,
                Found::Waiting(found) => {
                    reused.extend(found);
                    continue;
                }
            }
            chosen_for.push(interface.name.clone());
            let portable = self.portable(request, meant, interface);
            let mut chosen = Vec::new();
            for choice in self.choose(request, place, &given, &portable)? {
                match choice {
                    Choice::Reused(held) if own(request, interface) => reused.push(held),
                    Choice::Reused(held) => waiting.push(held.spot()),
                    Choice::New(pool, address) => chosen.push((pool, address)),
                }
            }
            given.extend(chosen.into_iter().map(|(pool, address)| Held {
                id: 0,
                network: self.subnet_of(&pool.spec).network.clone(),
                pool: pool.spec.name.clone(),
                address,
                endpoint,
                interface: interface.name.clone(),
                lifecycle: request.lifecycle,
                adopted: request.options.adopt,
                route_config: RouteConfig::default(),
                node: request.node.clone().or(request.attachment.as_ref().map(|key| key.node.clone())),
                attachments: request.attachment.iter().filter(|_| own(request, interface)).cloned().collect(),
                lease: request.options.ttl_ms.map(|ttl_ms| (ttl_ms, self.now + ttl_ms)),
                checked: false,
                mac: interface.mac.clone(),
                neighbor: None,
            }));
        }
        let held = self.held.iter().filter(|one| one.endpoint == endpoint).count();
        if held + given.len() > ALLOCATIONS_PER_ENDPOINT_MAX {
            return Err(Code::LimitExceeded);
        }
        let full = |one: &Held| one.attachments.len() >= ATTACHMENTS_PER_ALLOCATION_MAX;
        if request.attachment.is_some() && reused.iter().any(full) {
            return Err(Code::LimitExceeded);
        }
        let reused: Vec<Spot> = reused.iter().map(Held::spot).collect();
        let is_left = |one: &Held| {
            one.endpoint == endpoint
                && one.attachments.is_empty()
                && one.lifecycle != Lifecycle::Leased
                && !reused.contains(&one.spot())
                && !waiting.contains(&one.spot())
                && match Model::keeps(request, meant) {
                    true => chosen_for.contains(&one.interface),
                    false => waits_for(one, request),
                }
        };
        let left: Vec<Spot> = self.held.iter().filter(|one| is_left(one)).map(Held::spot).collect();
        if self.exceeded(request, meant, &given, &left).is_some() {
            return Err(Code::QuotaExceeded);
        }
        let route_configs = self.route_configs(request, endpoint, &given, &reused, &left)?;
        Ok(Plan { given, reused, left, route_configs })
    }

    pub(crate) fn give(&mut self, request: &Allocate, meant: Option<&Incarnation>, plan: Plan) -> Reply {
        let Plan { mut given, reused, left, route_configs } = plan;
        let keeps = Model::keeps(request, meant);
        let updated_endpoint = meant.map(|meant| Model::updated_endpoint(meant, request));
        let repeated = request.attachment.is_none()
            && given.is_empty()
            && left.is_empty()
            && updated_endpoint.as_ref() == meant;
        match updated_endpoint {
            Some(updated_endpoint) => {
                let row = self.endpoints.iter_mut().find(|one| one.number == updated_endpoint.number);
                *row.expect("meant") = updated_endpoint;
            }
            None => self.begin_incarnation(request),
        }
        let endpoint = meant.map_or(self.incarnations, |one| one.number);
        for one in self.held.iter_mut().filter(|one| reused.contains(&one.spot())) {
            if let Some(key) = &request.attachment {
                one.node = request.node.clone().or(Some(key.node.clone()));
                let is_said_before = !keeps && one.attachments.is_empty() && request.routing.is_empty();
                if !is_said_before {
                    one.route_config = route_configs.get(&one.spot()).cloned().unwrap_or_default();
                }
                one.checked &= !keeps || !one.attachments.is_empty();
                let own = request.interfaces.iter().find(|interface| interface.name == one.interface);
                one.mac = own.and_then(|interface| interface.mac.clone()).or(one.mac.take());
                one.attachments.push(key.clone());
            }
        }
        for one in &mut given {
            one.route_config = route_configs.get(&one.spot()).cloned().unwrap_or_default();
            one.checked = self.use_check(&one.pool, one.address);
        }
        for one in &given {
            let is_other =
                |other: &Quarantined| (&other.network, other.address) != (&one.network, one.address);
            self.quarantines.retain(is_other);
            self.cooling.retain(|rest| (&rest.network, rest.address) != (&one.network, one.address));
            self.pools.get_mut(&one.pool).expect("chosen from").cursor = Some(one.address);
        }
        let mut all: Vec<Held> =
            self.held.iter().filter(|one| reused.contains(&one.spot())).cloned().collect();
        all.extend(given.iter().cloned());
        self.held.extend(given);
        self.release(|one| left.contains(&one.spot()));
        let named = |claim: &mut Claim| {
            let mut waited = claim.request.interfaces.iter();
            waited.any(|one| request.interfaces.iter().any(|other| other.name == one.name))
        };
        let row = self.endpoints.iter_mut().find(|one| one.number == endpoint).expect("it is there");
        if !repeated && row.claim.as_mut().is_some_and(named) {
            row.claim = None;
        }
        said(repeated, &self.asked_for(request, endpoint, all), request)
    }

    pub(crate) fn begin_incarnation(&mut self, request: &Allocate) {
        self.incarnations += 1;
        let (number, key, uid) = (self.incarnations, request.endpoint.clone(), request.uid.clone());
        let fresh = Incarnation { number, key, uid, controller: None, sticky: None, claim: None };
        self.endpoints.push(Model::updated_endpoint(&fresh, request));
    }

    /// Existing addresses of the attachment, if the endpoint is the same.
    fn attached_before(&self, request: &Allocate, key: &AttachmentKey) -> Result<Vec<Held>, Code> {
        let Some((_, owner)) = self.attachments.get(key) else { return Ok(Vec::new()) };
        let owner = self.endpoints.iter().find(|one| one.number == *owner).expect("it has an owner");
        let same_uid = request.uid.is_none() || request.uid == owner.uid || owner.sticky.is_some();
        if owner.key != request.endpoint || !same_uid {
            return Err(Code::AlreadyExists);
        }
        Ok(self.held.iter().filter(|one| one.attachments.contains(key)).cloned().collect())
    }

    /// Existing claims of the endpoint on these interfaces: all of them as requested, or none.
    fn claimed_before(&self, request: &Allocate, endpoint: Option<u64>) -> Result<Vec<Held>, Code> {
        let mut all = Vec::new();
        let mut missing = false;
        for interface in &request.interfaces {
            let held: Vec<Held> = self
                .held
                .iter()
                .filter(|one| {
                    Some(one.endpoint) == endpoint
                        && one.lifecycle != Lifecycle::Attached
                        && one.interface == interface.name
                })
                .cloned()
                .collect();
            let otherwise = |one: &Held| one.lifecycle != request.lifecycle;
            let fits = self.as_requested(&held, interface) && self.in_subnets(&held, interface);
            if !held.is_empty() && (held.iter().any(otherwise) || !fits) {
                return Err(Code::AlreadyExists);
            }
            missing |= held.is_empty();
            all.extend(held);
        }
        if missing && !all.is_empty() { Err(Code::AlreadyExists) } else { Ok(all) }
    }

    pub(crate) fn in_subnets(&self, held: &[Held], request: &InterfaceRequest) -> bool {
        let subnet = |one: &Held| self.pools.get(&one.pool).map(|pool| &pool.spec.subnet);
        request.subnets.is_empty()
            || held.iter().all(|one| subnet(one).is_some_and(|subnet| request.subnets.contains(subnet)))
    }

    fn note_repeat(&mut self, key: &AttachmentKey, started: &Started) {
        let (living, owner) = self.attachments.get(key).cloned().expect("it was found");
        if self.began_before(key, &living, started) || self.is_forgotten(key, &living, started) {
            self.hear(key, started, false);
            self.attachments.insert(key.clone(), (started.clone(), owner));
        }
    }
}

impl Model {
    /// True if a claim's addresses satisfy the interface's request.
    pub(crate) fn as_requested(&self, held: &[Held], request: &InterfaceRequest) -> bool {
        let needs = |family| request.families.is_empty() || request.families.contains(&family);
        let has = |family| held.iter().any(|one| Family::of(one.address) == family);
        let families_fit =
            request.families.is_empty() || Family::BOTH.iter().all(|family| needs(*family) == has(*family));
        let none_named = request.pools.is_empty() || !request.subnets.is_empty();
        let from = |names: &[NamePattern], v4| {
            let mut of_family = held.iter().filter(|one| one.address.is_ipv4() == v4).peekable();
            let present = of_family.peek().is_some();
            let family = if v4 { Family::V4 } else { Family::V6 };
            present == (!names.is_empty() && needs(family))
                && of_family.all(|one| {
                    names.iter().any(|name| stands_for(name, &one.pool))
                        || self.stands_in(&one.pool, |of| names.iter().any(|name| stands_for(name, of)))
                })
        };
        families_fit
            && (none_named || from(&request.pools.ipv4, true) && from(&request.pools.ipv6, false))
            && request.addresses.iter().all(|address| held.iter().any(|one| one.address == *address))
    }
}

/// Answer by interface, IPv4 first, for one attachment or for a reader.
fn said(repeated: bool, held: &[Held], request: &Allocate) -> Reply {
    let to = request.attachment.as_ref();
    let group = |one: &Held| {
        let shown = to.filter(|to| one.attachments.contains(to)).or(one.attachments.last()).cloned();
        (one.interface.clone(), shown, one.attachments.is_empty() && one.lifecycle == Lifecycle::Attached)
    };
    let mut groups = Vec::new();
    for one in held {
        if !groups.contains(&group(one)) {
            groups.push(group(one));
        }
    }
    let mut addresses = Vec::new();
    for of in groups {
        for is_v4 in [true, false] {
            let here = held.iter().filter(|one| group(one) == of && one.address.is_ipv4() == is_v4);
            addresses.extend(here.map(|one| (one.interface.clone(), one.address)));
        }
    }
    Reply::Given { repeated, addresses }
}
