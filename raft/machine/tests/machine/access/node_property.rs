//! Property: no sequence of requests with node n2's token changes a resource of n1 or an operator.
//!
//! The model attributes each allocation to the actor whose request made it, by events alone, and reads
//! nothing of the machine's own attribution.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::access::Role;
use ipam_api::limits::QUARANTINES_PER_NODE_MAX;
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, EndpointKind, Lifecycle};
use ipam_machine::command::{
    Allocate, EndController, Leases, OnLinks, PoolPatterns, Renew, ScaleController, Started, Text,
};
use ipam_machine::event::{Holding, Reason};
use ipam_machine::model::{Allocation, Endpoint, Prefix};
use ipam_machine::{Action, At, Command, EventKind, Grant, Id, Outcome, State, Terms, apply};
use proptest::prelude::*;

use crate::access::world::{add, attachment, hold, node, node_key, started};
use crate::support::random::{Dice, Draw};

const COMMANDS: usize = 150;
/// Commands that make the networks, subnets and pools.
const FOUNDING: u64 = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    Operator,
    First,
    Second,
}

impl Actor {
    fn drawn(dice: &mut Dice, index: u64) -> Self {
        match dice.below(10) {
            _ if index < FOUNDING => Self::Operator,
            0..=2 => Self::Operator,
            3..=5 => Self::First,
            _ => Self::Second,
        }
    }

    fn terms(self) -> Terms {
        match self {
            Self::Operator => Terms::of(Grant::of(Role::Admin)),
            Self::First => node("n1"),
            Self::Second => node("n2"),
        }
    }

    fn place(self) -> Option<ObjectName> {
        match self {
            Self::Operator => None,
            Self::First => Some("n1".parse().unwrap()),
            Self::Second => Some("n2".parse().unwrap()),
        }
    }

    /// Moves a request to the actor's node, so that it isn't refused for its place.
    fn relocate(self, action: &mut Action, dice: &mut Dice) {
        let Some(place) = self.place().filter(|_| dice.chance(85)) else { return };
        match action {
            Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) => {
                if let Some(key) = &mut request.attachment {
                    (key.realm, key.node) = (Name::default_name(), place.clone());
                }
                request.endpoint.realm = Name::default_name();
                if request.endpoint.kind == EndpointKind::Host && dice.chance(70) {
                    request.endpoint = node_key(place.as_str()).host();
                }
                request.node = Some(place);
                request.options.adopt = false;
                // Automatic pools have a test of their own.
                request.automatic_pool = None;
            }
            Action::AllocateMany(many) => {
                many.request.endpoint.realm = Name::default_name();
                many.request.node = Some(place);
                many.request.automatic_pool = None;
            }
            Action::ReleaseAttachment(release) => {
                (release.key.realm, release.key.node) = (Name::default_name(), place);
            }
            Action::Heartbeat(heartbeat) => heartbeat.node = node_key(place.as_str()),
            Action::ReportProbes(report) => report.node = node_key(place.as_str()),
            Action::ReleaseAttachmentOf(of) => {
                (of.release.key.realm, of.release.key.node) = (Name::default_name(), place);
            }
            Action::Transaction(transaction) => {
                transaction.preconditions.clear();
                transaction.steps.iter_mut().for_each(|step| self.relocate(step, dice));
            }
            _ => {}
        }
    }
}

type Claims = BTreeMap<EndpointKey, BTreeSet<Actor>>;

/// Attribution of what exists, by events alone.
#[derive(Default)]
struct Model {
    actors: BTreeMap<u64, Actor>,
    adopted: BTreeSet<u64>,
    /// Actors of the claims that wait; incarnations of one endpoint may wait for several.
    claims: Claims,
    /// Endpoints whose claims the last command served.
    served: BTreeSet<EndpointKey>,
}

impl Model {
    fn follow(&mut self, actor: Actor, events: &[EventKind]) {
        self.served.clear();
        for what in events {
            match what {
                EventKind::Allocated(Holding { allocation, reason, endpoint, .. }) => {
                    let waited = self.claims.get(endpoint).filter(|_| *reason == Reason::Waited);
                    // Of several actors n2, the last one: the model then checks less.
                    let waited = waited.and_then(|actors| actors.last().copied());
                    self.actors.insert((*allocation).get(), waited.unwrap_or(actor));
                    if matches!(reason, Reason::Waited | Reason::Moved) {
                        self.served.insert(endpoint.clone());
                    }
                    if *reason == Reason::Adopted {
                        self.adopted.insert((*allocation).get());
                    }
                }
                EventKind::Waits { endpoint, .. } => {
                    self.claims.entry(endpoint.clone()).or_default().insert(actor);
                }
                _ => {}
            }
        }
    }

    /// Returns true if an allocation is of another actor than n2, or holds an address for one.
    fn is_foreign(&self, state: &State, id: u64, row: &Allocation) -> bool {
        let endpoint = state.endpoints.get(row.endpoint).unwrap();
        let made_by_second = self.actors.get(&id) == Some(&Actor::Second);
        let mut keys = keys(state, row).into_iter().peekable();
        if endpoint.key.realm != Name::default_name() {
            return true;
        }
        if is_second_host(&endpoint.key) {
            return keys.any(|key| !is_second(&key));
        }
        if keys.peek().is_some() {
            return keys.any(|key| !is_second(&key)) || (row.lifecycle == Lifecycle::Held && !made_by_second);
        }
        let is_here = row.node.as_ref().is_some_and(|node| node.as_str() == "n2");
        let is_adopted = self.adopted.contains(&id) && endpoint.uid.is_some();
        !(made_by_second || is_here && is_adopted)
    }
}

fn is_second(key: &AttachmentKey) -> bool {
    key.realm == Name::default_name() && key.node.as_str() == "n2"
}

/// The endpoint of n2 as a host is its own, even if others request its addresses.
fn is_second_host(key: &EndpointKey) -> bool {
    key.to_string() == "host/n2"
}

fn keys(state: &State, row: &Allocation) -> Vec<AttachmentKey> {
    let ids = row.attachment.into_iter().chain(row.also_attached.iter().copied());
    ids.map(|id| state.attachments.get(id).unwrap().key.clone()).collect()
}

fn leaves(state: &State, row: &Allocation) -> bool {
    let pool = &state.pools.get(row.pool).unwrap().spec;
    pool.terminating || pool.drains_to.is_some()
}

/// Values of an allocation that only its owner changes.
fn value(row: &Allocation) -> (std::net::IpAddr, u64, u64, &str, Lifecycle) {
    (row.address, row.pool.get(), row.endpoint.get(), row.interface.as_str(), row.lifecycle)
}

fn check(model: &Model, claims: &Claims, before: &State, after: &State, done: &str) {
    for (id, row) in before.allocations.iter() {
        if !model.is_foreign(before, id.get(), row) {
            continue;
        }
        let Some(now) = after.allocations.get(id) else {
            // An operator who drains or deletes a pool has decided that its kept addresses move.
            assert!(row.attachment.is_none() && leaves(before, row), "{done} freed {row:?}");
            continue;
        };
        assert_eq!(value(now), value(row), "{done}");
        let others = |state: &State, row: &Allocation| -> BTreeSet<_> {
            keys(state, row).into_iter().filter(|key| !is_second(key)).collect()
        };
        assert_eq!(others(after, now), others(before, row), "{done} changed the attachments of {row:?}");
        let until = |row: &Allocation| row.lease.as_ref().map(|lease| lease.until_ms);
        assert!(until(now) >= until(row), "{done} shortened the lease of {row:?}");
    }
    for (id, row) in before.attachments.iter().filter(|(_, row)| !is_second(&row.key)) {
        assert_eq!(after.attachments.get(id), Some(row), "{done}");
    }
    for (id, row) in before.endpoints.iter().filter(|(_, row)| row.waiting.is_none()) {
        let mut held = row.allocations.iter().map(|id| (*id, before.allocations.get(*id).unwrap()));
        let is_used = held.any(|(id, row)| {
            model.is_foreign(before, id.get(), row)
                && (row.attachment.is_some() || row.lifecycle == Lifecycle::Held)
        });
        if is_used {
            let said = |row: &Endpoint| (row.uid.clone(), row.controller.clone(), row.sticky.clone());
            assert_eq!(after.endpoints.get(id).map(said), Some(said(row)), "{done}");
        }
    }
    for (id, row) in before.endpoints.iter().filter(|(_, row)| row.waiting.is_some()) {
        let is_own = claims.get(&row.key).is_some_and(|actors| actors.contains(&Actor::Second));
        if is_own || is_second_host(&row.key) {
            continue;
        }
        let now = after.endpoints.get(id).unwrap_or_else(|| panic!("{done} withdrew {:?}", row.key));
        assert!(now.waiting.is_some() || model.served.contains(&row.key), "{done} withdrew {row:?}");
    }
    let resources = |state: &State| -> Vec<String> {
        let pools = state.pools.iter().filter(|(_, row)| !row.spec.terminating && row.automatic.is_none());
        let pools = pools.map(|(id, row)| format!("{id} {row:?}"));
        let subnets = state.subnets.iter().map(|(id, row)| format!("{id} {row:?}"));
        let networks = state.networks.iter().map(|(id, row)| format!("{id} {row:?}"));
        let reservations = state.reservations.iter().map(|(id, row)| format!("{id} {row:?}"));
        let nodes = state.nodes.iter().map(|(id, row)| format!("{id} {row:?}"));
        let namespaces = state.namespaces.iter().map(|(id, row)| format!("{id} {row:?}"));
        let tokens = state.tokens.iter().map(|(id, row)| format!("{id} {row:?}"));
        // An address that n2 frees may serve a prefix request that waits.
        let awaited = |row: &Prefix| before.prefix_claims.iter().any(|(_, claim)| claim.owner == row.owner);
        let is_served = |id: Id<Prefix>, row: &Prefix| before.prefixes.get(id).is_none() && awaited(row);
        let prefixes = state.prefixes.iter().filter(|(id, row)| !is_served(*id, row));
        let prefixes = prefixes.map(|(id, row)| format!("{id} {row:?}"));
        pools
            .chain(subnets)
            .chain(networks)
            .chain(reservations)
            .chain(nodes)
            .chain(namespaces)
            .chain(tokens)
            .chain(prefixes)
            .collect()
    };
    assert_eq!(resources(after), resources(before), "{done}");
    check_quarantines(before, after, done);
}

/// Only the node's own reports quarantine addresses, and the unconfirmed ones are bounded.
fn check_quarantines(before: &State, after: &State, done: &str) {
    let second = node_key("n2");
    let added = after.quarantines.iter().filter(|(id, _)| before.quarantines.get(*id).is_none());
    for (_, row) in added {
        assert_eq!(row.reported_by, second, "{done}");
    }
    let unconfirmed = |state: &State| {
        let rows = state.quarantines.iter().map(|(_, row)| row);
        rows.filter(|row| row.reported_by == second && row.confirmed_by.is_none()).count()
    };
    assert!(unconfirmed(after) <= QUARANTINES_PER_NODE_MAX.max(unconfirmed(before)), "{done}");
}

#[derive(Default)]
struct Run {
    state: State,
    model: Model,
    issued: Vec<u64>,
    asked: Vec<Allocate>,
    /// Commands of n2 that changed anything, by what they are.
    effects: BTreeMap<&'static str, u32>,
}

impl Run {
    fn step(&mut self, index: u64, seed: u64) {
        let mut dice = Dice(!seed);
        let actor = Actor::drawn(&mut dice, index);
        let now = self.state.log_time_ms();
        let mut draw =
            Draw { dice: Dice(seed), state: &self.state, issued: &self.issued, asked: &self.asked, index };
        let at = At { log_time_ms: draw.log_time_ms(now), wall_ms: 1 + index, leadership: 0 };
        let mut command = draw.command(now);
        let aimed =
            if index >= FOUNDING && dice.chance(45) { self.aimed(actor, index, &mut dice) } else { None };
        // The draw repeats its own requests only.
        let is_drawn = aimed.is_none();
        command.action = aimed.unwrap_or(command.action);
        actor.relocate(&mut command.action, &mut dice);
        command.terms = actor.terms();
        if actor == Actor::Second {
            // What time does is not n2's doing.
            let mut expire =
                Command { action: Action::Expire, terms: Actor::Operator.terms(), ..command.clone() };
            expire.origin.not_after_ms = None;
            self.apply(Actor::Operator, at, &expire).unwrap_or_else(|refusal| panic!("{refusal:?}"));
            let at = At { log_time_ms: self.state.log_time_ms(), ..at };
            let (before, claims) = (self.state.clone(), self.model.claims.clone());
            let outcome = self.apply(actor, at, &command);
            let done = format!("{:?}: {outcome:?}", command.action);
            check(&self.model, &claims, &before, &self.state, &done);
            if before.digest() != self.state.digest() && outcome.is_ok() {
                *self.effects.entry(word(&command.action)).or_default() += 1;
            }
        } else {
            drop(self.apply(actor, at, &command));
        }
        if let (true, Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request))) =
            (is_drawn, command.action)
        {
            self.asked.push(request);
        }
    }

    /// A request that aims at what exists: its attachment, release or renewal.
    fn aimed(&self, actor: Actor, index: u64, dice: &mut Dice) -> Option<Action> {
        let rows: Vec<(Id<Allocation>, &Allocation)> = self.state.allocations.iter().collect();
        let place = usize::try_from(dice.below(rows.len().max(1) as u64)).unwrap();
        let (id, row) = *rows.get(place)?;
        let endpoint = self.state.endpoints.get(row.endpoint)?;
        if let Some(controller) = endpoint.controller.clone().filter(|_| dice.chance(20)) {
            let (realm, namespace) = (endpoint.key.realm.clone(), endpoint.key.namespace.clone());
            let controller = *controller;
            return Some(match dice.below(2) {
                0 => Action::EndController(EndController { realm, namespace, controller }),
                _ => {
                    let replicas = u32::try_from(dice.below(3)).unwrap();
                    Action::ScaleController(ScaleController {
                        realm,
                        namespace,
                        controller,
                        replicas,
                        start: 0,
                    })
                }
            });
        }
        Some(match dice.below(10) {
            0 => Action::ReleaseAllocation { id },
            1 => {
                let other = usize::try_from(dice.below(rows.len() as u64)).unwrap();
                Action::ReleaseAllocations { ids: vec![id, rows[other].0] }
            }
            2 => Action::Renew(Renew {
                which: Leases::Allocation(id),
                ttl_ms: dice.chance(50).then_some(60_000),
            }),
            3 if actor == Actor::Operator || dice.chance(20) => {
                Action::ReleaseEndpoint { key: endpoint.key.clone() }
            }
            3 if dice.chance(30) => Action::ReleaseEndpoint { key: node_key(actor.place()?.as_str()).host() },
            3 => Action::Renew(Renew { which: Leases::Endpoint(endpoint.key.clone()), ttl_ms: None }),
            4 => {
                let node = actor.place()?;
                let lifecycle = if dice.chance(50) { Lifecycle::Leased } else { Lifecycle::Held };
                let endpoint = match dice.below(4) {
                    0 => format!("machine/{node}-{}", index % 4),
                    1 => format!("host/{node}-{}", index % 4),
                    2 => "host/n1".to_owned(),
                    _ => format!("host/{node}"),
                };
                let mut request = hold(Some(node.as_str()), &endpoint, "a");
                request.uid = dice.chance(50).then(|| Text::given(dice.pick(&["x", "y"])));
                request.options.take_over = request.uid.is_some() && endpoint.starts_with("host/");
                request.options.ttl_ms = (lifecycle == Lifecycle::Leased).then_some(90_000);
                Action::from(Allocate { lifecycle, ..request })
            }
            _ => {
                let node = actor.place().unwrap_or_else(|| "n1".parse().unwrap());
                let pool = dice.pick(&["a", "b", "c"]);
                let mut request = add(node.as_str(), "pod/web/x", pool);
                request.endpoint = endpoint.key.clone();
                request.uid = endpoint.uid.clone().filter(|_| dice.chance(50));
                request.interfaces[0].name = row.interface.clone();
                let container = format!("c{}", index % 5);
                request.attachment = Some(AttachmentKey {
                    interface: row.interface.clone(),
                    ..attachment(node.as_str(), &container)
                });
                if dice.chance(50) {
                    request.interfaces[0].pools = PoolPatterns::default();
                }
                request.stickiness.sticky = dice.chance(70).then_some(true);
                request.started = Some(Started { boot_id: Text::given("b0"), ..started(1_000 + index) });
                Action::from(request)
            }
        })
    }

    fn apply(&mut self, actor: Actor, at: At, command: &Command) -> Outcome {
        let (outcome, events) = apply(&mut self.state, at, command);
        let events: Vec<EventKind> = events.into_iter().map(|event| event.kind).collect();
        self.model.follow(actor, &events);
        let waits = |key: &EndpointKey| {
            let mut rows = self.state.incarnations(key).filter_map(|id| self.state.endpoints.get(id));
            rows.any(|row| row.waiting.is_some())
        };
        self.model.claims.retain(|key, _| waits(key));
        self.issued.extend(events.iter().filter_map(|what| match what {
            EventKind::Allocated(Holding { allocation, .. }) => Some(allocation.get()),
            _ => None,
        }));
        outcome
    }
}

fn word(action: &Action) -> &'static str {
    match action {
        Action::Allocate(_) | Action::AllocateOnLinks(_) => "allocate",
        Action::ReleaseAttachment(_) => "release-attachment",
        Action::ReleaseAttachmentOf(_) => "release-attachment-of",
        Action::ReleaseAllocation { .. } => "release-allocation",
        Action::AllocateMany(_) => "allocate-many",
        Action::ReleaseAllocations { .. } => "release-allocations",
        Action::ReleaseEndpoint { .. } => "release-endpoint",
        Action::EndIncarnation(_) => "end-incarnation",
        Action::Renew(_) => "renew",
        Action::ScaleController(_) | Action::EndController(_) => "scale",
        Action::Transaction(_) => "transaction",
        Action::Heartbeat(_) => "heartbeat",
        Action::ReleaseOrphans(_) => "release-orphans",
        Action::ReportProbes(_) => "report-probes",
        // The verb `release` of a quarantine, and `reclaim`, are no node's.
        _ => "another",
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn no_request_of_a_node_changes_what_is_not_its_own(
        seeds in prop::collection::vec(any::<u64>(), COMMANDS)
    ) {
        let mut run = Run::default();
        for (index, seed) in (0..).zip(seeds) {
            run.step(index, seed);
        }
    }
}

/// The property says something only if n2's requests have effects.
#[test]
fn random_requests_of_a_node_have_effects_of_each_kind() {
    let mut run = Run::default();
    for index in 0..18_000 {
        run.step(index, index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    let kinds = [
        "allocate",
        "release-attachment",
        "release-attachment-of",
        "allocate-many",
        "release-allocation",
        "release-allocations",
        "release-endpoint",
        "renew",
        "scale",
        "heartbeat",
        "transaction",
    ];
    for kind in kinds {
        assert!(run.effects.get(kind).is_some_and(|count| *count > 1), "{kind}: {:?}", run.effects);
    }
    for rare in ["release-orphans", "report-probes"] {
        assert!(run.effects.contains_key(rare), "{rare}: {:?}", run.effects);
    }
    assert_eq!(run.effects.get("another"), None);
}
