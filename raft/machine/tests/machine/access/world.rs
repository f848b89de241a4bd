//! A small network, and people who want something of it.

use std::collections::BTreeMap;

use ipam_api::access::{NodeKey, Role};
use ipam_api::name::Name;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{Lifecycle, Strategy};
use ipam_api::{Code, Selector};
use ipam_machine::command::{
    Allocate, CreateToken, Credential, Delete, Expect, HostPolicySpec, Idempotency, Kind, Manager,
    MaxUnavailable, Metadata, NamespaceSpec, NodeSpec, PoolPatterns, PoolSpec, Purpose, Put, Quota,
    ReleaseAttachment, ReleaseAttachmentOf, ReservationSpec, Started, Stored, Text,
};
use ipam_machine::fixtures::origin;
use ipam_machine::{
    Action, Answer, Applied, At, Command, Event, EventKind, Grant, Outcome, State, Terms, apply, fixtures,
};

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) log_time_ms: u64,
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn labelled(labels: &[(&str, &str)]) -> Metadata {
    let labels = labels.iter().map(|(key, value)| (Text::given(*key), Text::given(*value))).collect();
    Metadata { labels, ..Metadata::default() }
}

pub(crate) fn admin() -> Terms {
    Terms::of(Grant::of(Role::Admin))
}

pub(crate) fn node_key(node: &str) -> NodeKey {
    NodeKey { realm: Name::default_name(), name: node.parse().unwrap() }
}

pub(crate) fn node(node: &str) -> Terms {
    Terms::of(Grant::of_node(node_key(node)))
}

pub(crate) fn with_labels(role: Role, selector: &str) -> Terms {
    let labels: Selector = selector.parse().unwrap();
    Terms::of(Grant { labels, ..Grant::of(role) })
}

pub(crate) fn network(name: &str) -> Action {
    Action::PutNetwork(fixtures::put(fixtures::network(name)))
}

pub(crate) fn subnet(name: &str, cidr: &str) -> Action {
    Action::PutSubnet(fixtures::put(fixtures::subnet(name, cidr)))
}

pub(crate) fn pool(name: &str, subnet: &str, range: &str, metadata: Metadata) -> Action {
    let ranges = vec![range.parse().unwrap()];
    let (strategy, whole) = (Strategy::Sequential, fixtures::pool(name, subnet));
    Action::PutPool(fixtures::put(PoolSpec { ranges, strategy, metadata, ..whole }))
}

pub(crate) fn reservation(name: &str) -> Action {
    let spec = ReservationSpec {
        name: self::name(name),
        network: Name::default_name(),
        addresses: vec!["10.0.0.200".parse().unwrap()],
        endpoint: None,
        metadata: Metadata::default(),
    };
    Action::PutReservation(Put { spec, expect: Expect::Anything })
}

pub(crate) fn host_policy(name: &str, realm: &str) -> Action {
    let spec = HostPolicySpec {
        name: self::name(name),
        realm: self::name(realm),
        node_selector: Selector::default(),
        interfaces: Vec::new(),
        capture: BTreeMap::new(),
        desired_state: Text::given("{}"),
        max_unavailable: MaxUnavailable::Count(1),
        metadata: Metadata::default(),
    };
    Action::PutHostPolicy(Put { spec, expect: Expect::Anything })
}

pub(crate) fn put_in_realm(kind: Kind, name: &str) -> Action {
    let (realm, name, metadata) = (Name::default_name(), name.parse().unwrap(), Metadata::default());
    let expect = Expect::Anything;
    if kind == Kind::Node {
        return Action::PutNode(Put { spec: NodeSpec { realm, name, metadata }, expect });
    }
    let default_pools = PoolPatterns::default();
    Action::PutNamespace(Put {
        spec: NamespaceSpec { realm, name, default_pools, quota: Quota::default(), metadata },
        expect,
    })
}

pub(crate) fn delete(kind: Kind, name: &str) -> Action {
    Action::Delete(Delete { kind, name: name.parse().unwrap(), expect: Expect::Anything, drain: false })
}

pub(crate) fn attachment(node: &str, container: &str) -> AttachmentKey {
    AttachmentKey {
        realm: Name::default_name(),
        node: node.parse().unwrap(),
        config: "net".parse().unwrap(),
        container_id: container.parse().unwrap(),
        interface: "eth0".parse().unwrap(),
    }
}

pub(crate) fn started(at_us: u64) -> Started {
    Started { boot_id: Text::given("boot"), at_us, start_ticks: None }
}

/// An ADD on a node.
pub(crate) fn add(node: &str, endpoint: &str, pool: &str) -> Allocate {
    let key = attachment(node, endpoint.rsplit('/').next().unwrap());
    Allocate {
        node: Some(key.node.clone()),
        attachment: Some(key),
        lifecycle: Lifecycle::Attached,
        started: Some(started(1)),
        ..fixtures::allocate(endpoint, pool)
    }
}

/// Allocates addresses that are held until an explicit release.
pub(crate) fn hold(on_node: Option<&str>, endpoint: &str, pool: &str) -> Allocate {
    Allocate { node: on_node.map(|node| node.parse().unwrap()), ..fixtures::allocate(endpoint, pool) }
}

pub(crate) fn del(node: &str, container: &str) -> Action {
    Action::ReleaseAttachment(ReleaseAttachment { key: attachment(node, container), started: started(2) })
}

/// A DEL that names its endpoint.
pub(crate) fn del_of(node: &str, container: &str, endpoint: &str, uid: &str) -> Action {
    let release = ReleaseAttachment { key: attachment(node, container), started: started(2) };
    let (endpoint, uid) = (endpoint.parse().unwrap(), Text::given(uid));
    Action::ReleaseAttachmentOf(ReleaseAttachmentOf { release, endpoint, uid })
}

pub(crate) fn token(name: &str, purpose: Purpose, grant: Grant, ttl_ms: Option<u64>) -> CreateToken {
    let secret_hash = ipam_machine::command::secret_hash(name);
    let (name, description) = (self::name(name), Text::given(""));
    CreateToken { name, purpose, grant, ttl_ms, description, secret_hash, replaces: false }
}

impl World {
    /// One subnet with the pools `web` (team=web) and `db` (team=db).
    pub(crate) fn new() -> Self {
        let mut world = Self { state: State::new(), log_time_ms: 1_000 };
        for action in [
            subnet("lan", "10.0.0.0/24"),
            pool("web", "lan", "10.0.0.10-10.0.0.19", labelled(&[("team", "web")])),
            pool("db", "lan", "10.0.0.20-10.0.0.29", labelled(&[("team", "db")])),
        ] {
            world.run(admin(), action).unwrap();
        }
        world
    }

    pub(crate) fn run(&mut self, terms: Terms, action: Action) -> Outcome {
        self.run_as("caller", terms, action)
    }

    pub(crate) fn run_as(&mut self, principal: &str, terms: Terms, action: Action) -> Outcome {
        let origin = origin(principal);
        self.apply(&Command { origin, terms, action })
    }

    /// The events of a command that is carried out.
    pub(crate) fn events(&mut self, terms: Terms, action: Action) -> Vec<EventKind> {
        let origin = origin("caller");
        let at = self.now();
        let (outcome, events) = apply(&mut self.state, at, &Command { origin, terms, action });
        outcome.unwrap();
        events.into_iter().map(|event| event.kind).collect()
    }

    fn now(&self) -> At {
        At { log_time_ms: self.log_time_ms, wall_ms: 1_700_000_000_000 + self.log_time_ms, leadership: 0 }
    }

    pub(crate) fn apply(&mut self, command: &Command) -> Outcome {
        let at = self.now();
        let outcome = apply(&mut self.state, at, command).0;
        let again = State::from_rows(self.state.rows()).unwrap();
        assert_eq!(again.digest(), self.state.digest());
        assert_eq!(self.state.index_differences(&again), [""; 0]);
        outcome
    }

    /// The same with its events.
    pub(crate) fn run_with_events(&mut self, terms: Terms, action: Action) -> (Outcome, Vec<Event>) {
        let (at, command) = self.command(terms, action);
        apply(&mut self.state, at, &command)
    }

    /// The code of the refusal without a look at the whole state: for thousands of commands.
    pub(crate) fn code_unchecked(&mut self, terms: Terms, action: Action) -> Option<Code> {
        let (at, command) = self.command(terms, action);
        apply(&mut self.state, at, &command).0.err().map(|refusal| refusal.code())
    }

    fn command(&self, terms: Terms, action: Action) -> (At, Command) {
        (self.now(), Command { origin: origin("caller"), terms, action })
    }

    /// The code of the refusal, or nothing.
    pub(crate) fn code(&mut self, terms: Terms, action: Action) -> Option<Code> {
        self.run(terms, action).err().map(|refusal| refusal.code())
    }

    /// Creates a token; returns its terms.
    pub(crate) fn make(&mut self, request: CreateToken) -> Terms {
        let Applied { answer, .. } = self.run(admin(), Action::CreateToken(request)).unwrap();
        let Answer::Stored { revision, resource, .. } = answer else { panic!("{answer:?}") };
        assert!(matches!(*resource, Stored::Token(_)));
        Terms { credential: Credential::Token { id: revision.into() }, ..admin() }
    }
}

pub(crate) fn under_key(terms: Terms, key: &str, request: u128) -> Terms {
    Terms { idempotency: Some(Idempotency { key: Text::given(key), request }), ..terms }
}

pub(crate) fn managed(terms: Terms, manager: Manager) -> Terms {
    Terms { manager, ..terms }
}

/// The allocations that an answer gives.
pub(crate) fn ids(outcome: &Outcome) -> Vec<u64> {
    match &outcome.as_ref().unwrap().answer {
        Answer::Allocated { interfaces, .. } => interfaces
            .iter()
            .flat_map(|one| one.addresses.iter().map(|given| given.allocation.get()))
            .collect(),
        other => panic!("{other:?}"),
    }
}
