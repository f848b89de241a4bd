//! Comparison of the machine's state with the model, down to every address and every row.

mod probes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipam_api::access::NodeKey;
use ipam_api::address::AddressRange;
use ipam_api::limits::PODS_FORGOTTEN_MS;
use ipam_api::name::{Name, ResourceName};
use ipam_api::resource::Lifecycle;
use ipam_machine::command::{AgentReadiness, Kind, Text};
use ipam_machine::event::{Delegation, Holding, NAMES, Readiness};
use ipam_machine::state::Occupant;
use ipam_machine::{Event, EventKind, Id, State};
use ipnet::IpNet;

use crate::model::naive::{Model, all_of};

/// Everything that can be compared.
pub(crate) fn agree(state: &State, model: &Model) {
    resources(state, model);
    allocations(state, model);
    endpoints_and_attachments(state, model);
    memory(state, model);
    reports(state, model);
    prefixes(state, model);
    prefix_claims(state, model);
    prefixes_owned(state, model);
    probes::agree(state, model);
    assert!(!model.gives_a_gateway());
    for name in model.pools.keys() {
        pool(state, model, name);
    }
    addresses(state, model);
}

pub(super) fn id(state: &State, kind: Kind, name: impl Into<ResourceName>) -> u64 {
    let name = name.into();
    state.id_of(kind, &name).unwrap_or_else(|| panic!("{kind} {name} is gone"))
}

fn resources(state: &State, model: &Model) {
    let names = |kind| state.names(kind, None).map(|(name, _)| name.clone()).collect::<Vec<_>>();
    fn known<'a>(keys: impl Iterator<Item = &'a Name>) -> Vec<ResourceName> {
        keys.map(Into::into).collect()
    }
    assert_eq!(names(Kind::Network), known(model.networks.keys()));
    assert_eq!(names(Kind::Subnet), known(model.subnets.keys()));
    assert_eq!(names(Kind::Pool), known(model.pools.keys()));
    assert_eq!(names(Kind::Reservation), known(model.reservations.keys()));
    assert_eq!(names(Kind::Node), model.nodes.keys().cloned().collect::<Vec<_>>());
    assert_eq!(names(Kind::Namespace), model.namespaces.keys().cloned().collect::<Vec<_>>());
    assert_eq!(names(Kind::HostPolicy), known(model.host_policies.keys()));
    for (name, spec) in &model.host_policies {
        assert_eq!(&state.host_policies.get(id(state, Kind::HostPolicy, name).into()).unwrap().spec, spec);
    }
    for (name, spec) in &model.nodes {
        assert_eq!(&state.nodes.get(id(state, Kind::Node, name).into()).unwrap().spec, spec);
    }
    for (name, spec) in &model.namespaces {
        assert_eq!(&state.namespaces.get(id(state, Kind::Namespace, name).into()).unwrap().spec, spec);
    }
    for (name, spec) in &model.networks {
        assert_eq!(&state.networks.get(id(state, Kind::Network, name).into()).unwrap().spec, spec);
    }
    for (name, spec) in &model.subnets {
        let row = state.subnets.get(id(state, Kind::Subnet, name).into()).unwrap();
        assert_eq!(&row.spec, spec);
        assert_eq!(row.network, id(state, Kind::Network, &spec.network).into());
    }
    for (name, pool) in &model.pools {
        let row = state.pools.get(id(state, Kind::Pool, name).into()).unwrap();
        assert_eq!(row.spec, pool.spec);
        assert_eq!(row.automatic.as_deref(), pool.automatic.as_ref());
        assert_eq!(row.subnet, id(state, Kind::Subnet, &pool.spec.subnet).into());
    }
    for (name, spec) in &model.reservations {
        let row = state.reservations.get(id(state, Kind::Reservation, name).into()).unwrap();
        assert_eq!(&row.spec, spec);
        assert_eq!(row.network, id(state, Kind::Network, &spec.network).into());
    }
}

fn allocations(state: &State, model: &Model) {
    let mut taken = BTreeSet::new();
    let rows: Vec<_> = state.allocations.iter().collect();
    assert_eq!(rows.len(), model.held.len(), "allocations");
    for ((own, row), held) in rows.into_iter().zip(&model.held) {
        assert!(taken.insert((row.network, row.address)), "{} is held twice", row.address);
        assert_eq!((own.get(), row.address), (held.id, held.address));
        assert_eq!(row.network, id(state, Kind::Network, &held.network).into());
        assert_eq!(row.pool, id(state, Kind::Pool, &held.pool).into());
        assert_eq!((&row.interface, row.lifecycle), (&held.interface, held.lifecycle));
        let ids = row.also_attached.iter().chain(&row.attachment);
        let keys: Vec<_> = ids.map(|one| state.attachments.get(*one).unwrap().key.clone()).collect();
        assert_eq!(keys, held.attachments);
        // A kept address belongs to its endpoint, an attached one to its attachment; a preallocated one waits
        // while its endpoint has an attachment.
        let mut all = model.held.iter().filter(|one| one.endpoint == held.endpoint);
        let living = held.lifecycle != Lifecycle::Attached || all.any(|one| !one.attachments.is_empty());
        assert!(living || state.endpoints.get(row.endpoint).unwrap().sticky.is_some());
        assert!(keys.iter().all(|key| key.interface == row.interface));
        assert_eq!(row.route_config.as_deref().cloned().unwrap_or_default(), held.route_config);
        assert_eq!(row.lease.as_ref().map(|lease| (lease.ttl_ms, lease.until_ms)), held.lease);
        assert_eq!(state.lease_of(row).map(|lease| lease.until_ms), model.end_of(held), "end of a lease");
        let pool = &model.pools.get(&held.pool).unwrap().spec;
        assert!(model.allocatable(pool, held.address), "{} is not {}'s to give", held.address, held.pool);
        let given = state.given(&[own], None);
        let [given] = given[0].addresses.as_slice() else { panic!("one address, and not {given:?}") };
        let routes = || given.routes.iter().map(|route| (route.destination, route.gateway));
        assert_eq!((given.gateway, routes().collect()), model.way_of(held));
        let probing = model.probing(pool);
        let is_unchecked =
            !held.checked && held.lifecycle == Lifecycle::Attached && held.attachments.len() < 2;
        let needs = (probing.conflicts == Some(true) && is_unchecked, probing.gateway == Some(true));
        assert_eq!((given.probes_conflicts, given.probes_gateway), needs, "probes of {}", held.address);
        assert_eq!(routes().count(), model.way_of(held).1.len(), "two routes lead to one place");
    }
}

fn endpoints_and_attachments(state: &State, model: &Model) {
    assert_eq!(state.endpoints.len(), model.endpoints.len(), "endpoints");
    for ((own, row), endpoint) in state.endpoints.iter().zip(&model.endpoints) {
        assert_eq!((&row.key, &row.uid), (&endpoint.key, &endpoint.uid));
        assert_eq!(row.controller.as_deref(), endpoint.controller.as_ref());
        assert_eq!(row.sticky.as_deref(), endpoint.sticky.as_ref());
        let claim = endpoint.claim.as_ref().map(|claim| (&claim.request, claim.why));
        assert_eq!(row.waiting.as_ref().map(|waiting| (&waiting.request, waiting.why)), claim);
        let held = model.held.iter().filter(|one| one.endpoint == endpoint.number);
        assert_eq!(*row.allocations, *held.map(|one| Id::new(one.id)).collect::<Vec<_>>());
        assert!(row.allocations.iter().all(|one| state.allocations.get(*one).unwrap().endpoint == own));
        assert!(state.incarnations(&row.key).any(|one| one == own));
    }
    let all: Vec<_> = state.endpoints_after(None).collect();
    assert_eq!(all.len(), model.endpoints.len());
    assert!(all.is_sorted());
    assert_eq!(state.attachments.len(), model.attachments.len(), "attachments");
    for (key, (started, endpoint)) in &model.attachments {
        let (own, row) = state.attachment(key).unwrap();
        assert_eq!((&row.key, &row.started), (key, started));
        let held = || model.held.iter().filter(|one| one.attachments.contains(key));
        assert_eq!(*row.allocations, *held().map(|one| Id::new(one.id)).collect::<Vec<_>>());
        assert!(held().all(|one| one.endpoint == *endpoint));
        assert!(row.allocations.iter().all(|one| {
            let allocation = state.allocations.get(*one).unwrap();
            let ids = [allocation.attachment.as_slice(), &allocation.also_attached].concat();
            ids.contains(&own) && allocation.endpoint == row.endpoint
        }));
    }
}

fn memory(state: &State, model: &Model) {
    let kept_tombstones: Vec<_> = state
        .tombstones
        .iter()
        .map(|(_, row)| (row.key.clone(), row.releases.clone(), row.until_ms))
        .collect();
    let tombstones = model.tombstones.iter().map(|one| (one.key.clone(), one.releases.clone(), one.until_ms));
    assert_eq!(kept_tombstones, tombstones.collect::<Vec<_>>(), "tombstones");
    let cooling: Vec<_> =
        state.coolings.iter().map(|(_, row)| (row.network, row.pool, row.address, row.until_ms)).collect();
    let cools = model.cooling.iter().map(|one| {
        let network = id(state, Kind::Network, &one.network);
        (network.into(), id(state, Kind::Pool, &one.pool).into(), one.address, one.until_ms)
    });
    assert_eq!(cooling, cools.collect::<Vec<_>>(), "coolings");
    let blocks = state.prefix_coolings.iter().map(|(_, row)| {
        let parent = state.prefixes.get(row.parent).unwrap();
        assert_eq!((row.network, row.pool), (parent.network, parent.pool));
        (row.parent.get(), row.address, &row.owner.realm, &row.owner.name, row.until_ms)
    });
    let cools = model
        .cooling_blocks
        .iter()
        .map(|one| (model.block(one.parent).id, one.address, &one.realm, &one.owner, one.until_ms));
    assert_eq!(blocks.collect::<Vec<_>>(), cools.collect::<Vec<_>>(), "cooling blocks of prefixes");
    let ends = model.cooling.iter().map(|one| one.until_ms);
    let ends = ends.chain(model.cooling_blocks.iter().map(|one| one.until_ms));
    let graced = |until_ms: u64| until_ms.max(model.leadership.1);
    let blocks = model.blocks.iter().filter_map(|one| match one.released {
        true => Some(0),
        false => one.until_ms.map(graced),
    });
    let ends = ends.chain(blocks);
    let leases = model.held.iter().filter_map(|one| model.end_of(one).map(graced));
    let ends = ends.chain(model.checks.iter().map(|one| one.until_ms));
    let forgotten = model.reported_realms.values().map(|until_ms| until_ms + PODS_FORGOTTEN_MS);
    let ends = ends.chain(forgotten);
    let next = ends.chain(leases).chain(model.tombstones.iter().map(|one| one.until_ms)).min();
    assert_eq!(state.next_expiry_ms(), next);
    assert_eq!(state.boots.len(), model.boots.len(), "nodes with boots");
    for (_, row) in state.boots.iter() {
        let boots = &model.boots[&NodeKey { realm: row.realm.clone(), name: row.name.clone() }];
        assert_eq!(row.boots.len(), boots.len(), "boots");
        for (own, boot) in row.boots.iter().zip(boots) {
            assert_eq!((&own.earliest.boot_id, own.has_released), (&boot.id, boot.has_released), "boots");
            assert_eq!(own.is_confirmed.then_some(&own.earliest), boot.heard.as_ref(), "boots");
        }
    }
}

fn reports(state: &State, model: &Model) {
    let pods: Vec<_> = state.reported_pods_after(None).collect();
    assert_eq!(pods, model.reported_pods.values().collect::<Vec<_>>(), "reported pods");
    let realms = state.reported_realms.iter().map(|(_, row)| (row.realm.clone(), row.until_ms));
    assert_eq!(realms.collect::<BTreeMap<_, _>>(), model.reported_realms, "realms of reported pods");
    assert_eq!(state.reports.len(), model.reports.len(), "reports of nodes");
    for (node, report) in &model.reports {
        let (_, row) = state.report_of(node).unwrap();
        let boots: Vec<_> = row.past.iter().chain([&row.boot.id]).cloned().collect();
        assert_eq!((boots, row.boot.number), (report.boots.clone(), report.number));
        assert_eq!((row.readiness, row.heard_ms), (report.readiness, report.heard_ms));
        assert_eq!((&row.agent_version, &row.links), (&report.agent_version, &report.links));
        assert_eq!((row.inventory, row.inventory_matched), (report.inventory, report.inventory_matched));
    }
    for key in model.attachments.keys() {
        let node = NodeKey { realm: key.realm.clone(), name: key.node.clone() };
        let listed: Vec<_> = state.attachments_on(&node, None).map(|(_, row)| &row.key).collect();
        assert!(listed.contains(&key), "attachments of a node");
        assert_eq!(listed.len() as u64, state.inventory(&node).attachments());
        assert_eq!(state.inventory(&node), model.inventory(&node), "inventory");
    }
}

fn prefix_claims(state: &State, model: &Model) {
    let claims = state.prefix_claims.iter().map(|(id, row)| (id.get(), row.request.clone(), row.why));
    let expected = model.prefix_claims.iter().map(|one| (one.id, one.request.clone(), one.why));
    assert_eq!(claims.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "prefix claims");
}

/// Prefixes and claims are found by their owners, in one realm and in all.
fn prefixes_owned(state: &State, model: &Model) {
    let mut owned: BTreeMap<_, BTreeMap<_, BTreeSet<u64>>> = BTreeMap::new();
    let blocks = model.blocks.iter().map(|one| (&one.owner, &one.realm, one.id));
    let claims = model.prefix_claims.iter().map(|one| {
        let last = one.request.levels.last().unwrap();
        (&last.owner, &one.request.realm, one.id)
    });
    for (owner, realm, id) in blocks.chain(claims) {
        owned.entry(owner).or_default().entry(realm).or_default().insert(id);
    }
    for (owner, realms) in owned {
        for (realm, ids) in &realms {
            assert!(state.prefixes_owned_by(owner, Some(realm)).eq(ids.iter().copied()), "{realm}/{owner}");
        }
        let all = realms.values().flatten().copied();
        assert!(state.prefixes_owned_by(owner, None).eq(all), "{owner}");
    }
}

fn prefixes(state: &State, model: &Model) {
    assert_eq!(state.prefixes.len(), model.blocks.len(), "prefixes");
    for ((own, row), block) in state.prefixes.iter().zip(&model.blocks) {
        assert_eq!((own.get(), row.cidr), (block.id, block.cidr));
        assert_eq!(row.network, id(state, Kind::Network, &block.network).into());
        assert_eq!(row.pool, id(state, Kind::Pool, &block.pool).into());
        assert_eq!(row.parent, block.parent.map_or(row.pool, |parent| model.block(parent).id.into()).into());
        assert_eq!((&row.owner.realm, &row.owner.name), (&block.realm, &block.owner));
        assert_eq!(
            (row.keep_edges, row.ttl_ms, row.until_ms),
            (block.keep_edges, block.ttl_ms, block.until_ms)
        );
        assert_eq!(state.prefix_of(row.parent, &row.owner).map(|(found, _)| found), Some(own));
        let children = model.blocks.iter().filter(|one| one.parent == Some(block.number));
        let mut children: Vec<_> = children.collect();
        children.sort_by_key(|one| one.cidr.network());
        let below: Vec<_> = children.iter().map(|one| Id::new(one.id)).collect();
        assert_eq!(state.prefixes_below(own.into()).collect::<Vec<_>>(), below);
        let cooling =
            state.prefix_coolings_of(own).map(|one| state.prefix_coolings.get(one).unwrap().address);
        let expected = model.cooling_below(block.number).map(|one| one.address);
        assert_eq!(cooling.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "cooling in {}", row.cidr);
        assert_eq!(state.given_prefix(own).unwrap().children, below.len() as u64);
        for (i, one) in children.iter().enumerate() {
            assert!(row.cidr.contains(&one.cidr) && one.cidr != row.cidr);
            assert!(children.iter().skip(i + 1).all(|other| !other.cidr.contains(&one.cidr.network())));
        }
        assert!(
            model.held.iter().all(|one| one.network != block.network || !block.cidr.contains(&one.address)),
            "an address of {} is held",
            block.cidr
        );
    }
}

fn pool(state: &State, model: &Model, name: &Name) {
    let pool = model.pools.get(name).unwrap();
    let own = id(state, Kind::Pool, name);
    let space = state.space(own.into()).unwrap();
    let counts = space.counts();
    let all = |what| model.in_state(&pool.spec, what).len() as u128;
    assert_eq!(counts.allocated, all("allocated"), "{name} allocated");
    assert_eq!(counts.cooling, all("cooling"), "{name} cooling");
    assert_eq!(counts.quarantined, all("quarantined"), "{name} quarantined");
    assert_eq!(counts.reserved, all("reserved"), "{name} reserved");
    assert_eq!(counts.excluded, all("excluded"), "{name} excluded");
    assert_eq!(counts.free, all("free"), "{name} free");
    let cidr = model.subnet_of(&pool.spec).cidr;
    let size = all_of(cidr).filter(|address| model.has(&pool.spec, *address)).count() as u128;
    assert_eq!(counts.size, size);
    let sum = counts.allocated + counts.cooling + counts.quarantined + counts.reserved;
    assert_eq!(sum + counts.excluded + counts.free, size, "conservation in {name}");
    for address in all_of(cidr) {
        let free = model.has(&pool.spec, address) && model.state_of(&pool.spec, address) == "free";
        assert_eq!(space.free.is_free(ipam_api::address::number(address)), free, "{address} of {name}");
    }
    let row = state.pool_states.get(own.into()).unwrap();
    assert_eq!(row.cursor, pool.cursor, "cursor of {name}");
    let readiness = if pool.spec.terminating {
        Readiness::Terminating
    } else if pool.spec.disabled {
        Readiness::Disabled
    } else if pool.spec.drains_to.is_some() {
        Readiness::Drained
    } else if all("free") == 0 {
        Readiness::Exhausted
    } else {
        Readiness::Serving
    };
    assert_eq!(row.readiness, readiness, "{name}");
}

/// Compares the lookups by address.
fn addresses(state: &State, model: &Model) {
    for name in model.networks.keys() {
        let network = id(state, Kind::Network, name);
        for cidr in ["10.0.0.0/27", "10.0.1.0/30", "10.0.2.0/28", "2001:db8::/124"] {
            for address in all_of(cidr.parse().unwrap()) {
                let held = model.holder(name, address).map(|one| Occupant::Allocation(one.id.into()));
                match state.occupant(network.into(), address) {
                    Some(Occupant::Quarantine(_)) => assert!(model.quarantine(name, address).is_some()),
                    Some(Occupant::Cooling(_)) => assert!(model.rest(name, address).is_some(), "{address}"),
                    other => assert_eq!(other, held, "{address} of {name}"),
                }
                let prefix = state.prefix_at(network.into(), address).map(|(id, _)| id);
                assert_eq!(
                    prefix,
                    model.smallest_at(name, address).map(|one| Id::new(one.id)),
                    "{address} of {name}"
                );
                assert_eq!(state.is_reserved(network.into(), address), model.is_reserved(name, address));
                let subnet = state.subnet_at(network.into(), address).map(|(_, row)| row.spec.name.clone());
                let expected =
                    model.subnets.values().find(|one| one.network == *name && one.cidr.contains(&address));
                assert_eq!(subnet, expected.map(|one| one.name.clone()));
                let pool = state.pool_at(network.into(), address);
                let pool = pool.map(|pool| state.pools.get(pool).unwrap().spec.name.clone());
                let owner = model.pools.values().find(|pool| {
                    model.subnet_of(&pool.spec).network == *name && model.owns(&pool.spec, address)
                });
                assert_eq!(pool, owner.map(|pool| pool.spec.name.clone()), "{address} of {name}");
            }
        }
    }
}

/// State of a follower that reads only events.
#[derive(Default)]
pub(crate) struct Follower {
    newest: u64,
    resources: BTreeSet<(Kind, ResourceName)>,
    held: BTreeMap<u64, (IpAddr, Name)>,
    delegated: BTreeMap<u64, IpNet>,
    ready: BTreeMap<Name, Readiness>,
    quarantined: BTreeSet<(Name, IpAddr)>,
    node_boots: BTreeMap<NodeKey, Text>,
    node_readiness: BTreeMap<NodeKey, AgentReadiness>,
}

impl Follower {
    pub(crate) fn hear(&mut self, events: &[Event]) {
        for (number, event) in (0..).zip(events) {
            assert_eq!(event.number, number);
            assert!(number > 0 || event.revision > self.newest, "two events have one name");
            self.newest = event.revision;
            assert!(
                NAMES.iter().any(|(name, _)| *name == event.kind.name()),
                "{:?} has no entry",
                event.kind
            );
            match event.kind.clone() {
                EventKind::Created { kind, name } => assert!(self.resources.insert((kind, name))),
                EventKind::Changed { kind, name, .. } => assert!(self.resources.contains(&(kind, name))),
                EventKind::Deleted { kind, name } => {
                    if let (Kind::Pool, Some(pool)) = (kind, name.name()) {
                        self.ready.remove(&pool);
                    }
                    assert!(self.resources.remove(&(kind, name)));
                }
                EventKind::Allocated(Holding { address, pool, allocation, .. }) => {
                    assert!(self.held.insert(allocation.get(), (address, pool)).is_none());
                }
                EventKind::Released { of: Holding { address, pool, allocation, .. }, .. } => {
                    assert_eq!(self.held.remove(&allocation.get()), Some((address, pool)));
                }
                EventKind::Delegated { of: Delegation { cidr, prefix, .. }, parent } => {
                    assert!(parent.is_none_or(|parent| self.delegated.contains_key(&parent.get())));
                    assert!(self.delegated.insert(prefix.get(), cidr).is_none());
                }
                EventKind::TakenBack { of: Delegation { cidr, prefix, .. }, .. } => {
                    assert_eq!(self.delegated.remove(&prefix.get()), Some(cidr));
                }
                EventKind::Attached(Holding { address, pool, allocation, .. })
                | EventKind::Detached(Holding { address, pool, allocation, .. }) => {
                    assert_eq!(self.held.get(&allocation.get()), Some(&(address, pool)));
                }
                EventKind::Quarantined { network, address, .. } => {
                    assert!(self.quarantined.insert((network, address)));
                }
                EventKind::QuarantineEnded { network, address, .. } => {
                    assert!(self.quarantined.remove(&(network, address)));
                }
                EventKind::Collided { of, .. } => assert!(self.held.contains_key(&of.allocation.get())),
                EventKind::ClaimMismatch { .. } => unreachable!("the model has no nodes' grants"),
                EventKind::Waits { .. }
                | EventKind::Withdrawn { .. }
                | EventKind::EndpointChanged { .. }
                | EventKind::PrefixWaits { .. }
                | EventKind::PrefixWithdrawn { .. }
                | EventKind::Cooled { .. }
                | EventKind::JournalTrimmed { .. }
                | EventKind::LevelRaised { .. }
                | EventKind::EpochBegun { .. }
                | EventKind::EpochConfirmed { .. }
                | EventKind::PoolConfirmed { .. }
                | EventKind::Member { .. } => {}
                EventKind::PoolSplit { pool, into, ranges } => {
                    for (address, of) in self.held.values_mut() {
                        let single = AddressRange::single(*address);
                        if *of == pool && ranges.iter().any(|range| range.contains(&single)) {
                            *of = into.clone();
                        }
                    }
                }
                EventKind::NodeBooted { node, boot } => drop(self.node_boots.insert(node, boot.id)),
                EventKind::NodeReady { node, readiness } => {
                    self.node_readiness.insert(node, readiness);
                }
                EventKind::PoolReady { pool, readiness } => {
                    assert_ne!(self.ready.insert(pool, readiness), Some(readiness), "nothing has changed");
                }
            }
        }
    }

    /// The follower's state equals the machine's.
    pub(crate) fn agree(&self, state: &State) {
        for kind in
            [Kind::Subnet, Kind::Pool, Kind::Reservation, Kind::Node, Kind::Namespace, Kind::HostPolicy]
        {
            let known = self.resources.iter().filter(|(of, _)| *of == kind).map(|(_, name)| name);
            assert!(known.eq(state.names(kind, None).map(|(name, _)| name)), "{kind}s by events");
        }
        let name = |pool| state.pools.get(pool).unwrap().spec.name.clone();
        let held = state.allocations.iter().map(|(id, row)| (id.get(), (row.address, name(row.pool))));
        assert!(held.eq(self.held.clone()), "allocations by events");
        let network = |network| state.networks.get(network).unwrap().spec.name.clone();
        let quarantined: BTreeSet<_> =
            state.quarantines.iter().map(|(_, row)| (network(row.network), row.address)).collect();
        assert_eq!(quarantined, self.quarantined, "quarantines by events");
        let delegated = state.prefixes.iter().map(|(id, row)| (id.get(), row.cidr));
        assert!(delegated.eq(self.delegated.clone()), "prefixes by events");
        for (_, row) in state.reports.iter() {
            assert_eq!(self.node_boots.get(&row.node), Some(&row.boot.id), "boots by events");
            assert_eq!(self.node_readiness.get(&row.node), Some(&row.readiness), "readiness by events");
        }
        for (pool, row) in state.pool_states.iter() {
            assert_eq!(self.ready.get(&name(pool)), Some(&row.readiness));
        }
    }
}
