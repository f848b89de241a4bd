//! A small network, and people who want something of it.

use ipam_api::access::{NodeKey, Role};
use ipam_api::name::Name;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{Lifecycle, Strategy};
use ipam_api::{Code, Selector};
use ipam_machine::command::{
    Allocate, AllocateOptions, AutomaticRules, CreateToken, Credential, Delete, Dns, Expect, Idempotency,
    InterfaceRequest, Kind, Manager, Metadata, NamespaceSpec, NetworkSpec, NodeSpec, PoolPatterns,
    PoolSelectors, PoolSpec, Purpose, Put, Quota, ReleaseAttachment, ReservationSpec, Routing, Started,
    Stored, SubnetSpec, Text, Via,
};
use ipam_machine::{
    Action, Answer, Applied, At, Command, Event, EventKind, Grant, Origin, Outcome, State, Terms, apply,
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
    let spec = NetworkSpec { name: self::name(name), metadata: Metadata::default() };
    Action::PutNetwork(Put { spec, expect: Expect::Anything })
}

pub(crate) fn subnet(name: &str, cidr: &str) -> Action {
    let spec = SubnetSpec {
        name: self::name(name),
        network: Name::default_name(),
        cidr: cidr.parse().unwrap(),
        gateway: None,
        vlan: None,
        mtu: None,
        routes: Vec::new(),
        dns: Dns::default(),
        automatic: Some(AutomaticRules::default()),
        metadata: Metadata::default(),
    };
    Action::PutSubnet(Put { spec, expect: Expect::Anything })
}

pub(crate) fn pool(name: &str, subnet: &str, range: &str, metadata: Metadata) -> Action {
    let spec = PoolSpec {
        name: self::name(name),
        subnet: self::name(subnet),
        network: None,
        ranges: vec![range.parse().unwrap()],
        exclude: Vec::new(),
        strategy: Strategy::Sequential,
        cooling_ms: 0,
        strict_cooling: false,
        allow_edges: false,
        gateway: None,
        routes: Vec::new(),
        default: false,
        selectors: PoolSelectors::default(),
        scale_down: Default::default(),
        disabled: false,
        terminating: false,
        drains_to: None,
        reclaim: None,
        metadata,
    };
    Action::PutPool(Put { spec, expect: Expect::Anything })
}

pub(crate) fn reservation(name: &str) -> Action {
    let spec = ReservationSpec {
        name: self::name(name),
        network: Name::default_name(),
        addresses: vec!["10.0.0.200".parse().unwrap()],
        metadata: Metadata::default(),
    };
    Action::PutReservation(Put { spec, expect: Expect::Anything })
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
        endpoint: endpoint.parse().unwrap(),
        uid: None,
        labels: std::collections::BTreeMap::new(),
        node: Some(key.node.clone()),
        attachment: Some(key),
        stickiness: Default::default(),
        automatic_pool: None,
        lifecycle: Lifecycle::Attached,
        interfaces: vec![request(pool)],
        started: Some(started(1)),
        options: AllocateOptions::default(),
        routing: Routing::default(),
    }
}

/// Addresses that are held until somebody says otherwise.
pub(crate) fn hold(on_node: Option<&str>, endpoint: &str, pool: &str) -> Allocate {
    Allocate {
        endpoint: endpoint.parse().unwrap(),
        uid: None,
        labels: std::collections::BTreeMap::new(),
        node: on_node.map(|node| node.parse().unwrap()),
        attachment: None,
        stickiness: Default::default(),
        automatic_pool: None,
        lifecycle: Lifecycle::Held,
        interfaces: vec![request(pool)],
        started: None,
        options: AllocateOptions::default(),
        routing: Routing::default(),
    }
}

fn request(pool: &str) -> InterfaceRequest {
    InterfaceRequest {
        name: "eth0".parse().unwrap(),
        subnets: Vec::new(),
        pools: PoolPatterns { ipv4: vec![(&name(pool)).into()], ipv6: Vec::new() },
        default_pools: PoolPatterns::default(),
        families: Vec::new(),
        addresses: Vec::new(),
        mac: None,
        network_attachment: None,
    }
}

pub(crate) fn del(node: &str, container: &str) -> Action {
    Action::ReleaseAttachment(ReleaseAttachment { key: attachment(node, container), started: started(2) })
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
        self.run_as("somebody", terms, action)
    }

    pub(crate) fn run_as(&mut self, principal: &str, terms: Terms, action: Action) -> Outcome {
        let origin = origin(principal);
        self.apply(&Command { origin, terms, action })
    }

    /// The events of a command that is carried out.
    pub(crate) fn events(&mut self, terms: Terms, action: Action) -> Vec<EventKind> {
        let origin = origin("somebody");
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
        let origin = Origin {
            principal: Text::given("caller"),
            via: Via::Http,
            request_id: Text::given("request"),
            comment: None,
            not_after_ms: None,
        };
        let wall_ms = 1_700_000_000_000 + self.log_time_ms;
        let at = At { log_time_ms: self.log_time_ms, wall_ms, leadership: 0 };
        (at, Command { origin, terms, action })
    }

    /// The code of the refusal, or nothing.
    pub(crate) fn code(&mut self, terms: Terms, action: Action) -> Option<Code> {
        self.run(terms, action).err().map(|refusal| refusal.code())
    }

    /// Makes a token; what it allows.
    pub(crate) fn make(&mut self, request: CreateToken) -> Terms {
        let Applied { answer, .. } = self.run(admin(), Action::CreateToken(request)).unwrap();
        let Answer::Stored { revision, resource, .. } = answer else { panic!("{answer:?}") };
        assert!(matches!(*resource, Stored::Token(_)));
        Terms { credential: Credential::Token { id: revision.into() }, ..admin() }
    }
}

fn origin(principal: &str) -> Origin {
    Origin {
        principal: Text::given(principal),
        via: Via::Http,
        request_id: Text::given("request"),
        comment: None,
        not_after_ms: None,
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
