//! One value of everything that enters the log, the rows or the wire between peers, each with a name.
//!
//! The matches without a wildcard are there so that a new variant doesn't compile until it has a sample.

use ipam_api::access::{NodeKey, Role};
use ipam_raft::machine::command::{
    Allocate, AutomaticPool, ChangeMembers, ConfirmGeneration, Context, Controller, CreateToken, Credential,
    Delegate, Delete, Dns, EndController, Expect, Given, GivenInterface, GivenPrefix, Idempotency,
    InterfaceWish, JoinMember, Kind, KnownMember, Leases, Manager, Manner, NamespaceIntention,
    NetworkIntention, NodeIntention, Note, Origin, Pending, PoolIntention, PoolPatterns, Precondition,
    PrefixLevel, PrefixSource, Purpose, Put, ReleaseAttachment, Remarks, Renew, Renewed,
    ReservationIntention, Routing, ScaleController, Setting, SplitPool, Started, Stickiness, Stored,
    SubnetIntention, Takers, Transaction, Via,
};
use ipam_raft::machine::{
    Action, Answer, Applied, By, Command, Event, EventId, Grant, Outcome, Refusal, State, Terms, What,
};
use std::collections::BTreeMap;

use ipam_api::Code;
use ipam_api::name::{InterfaceName, Name};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKind, Lifecycle, PoolSize, Route, ScaleDown, Strategy};
use ipam_raft::machine::change::FieldChange;
use ipam_raft::machine::event::{Readiness, Reason, Why};
use ipam_raft::machine::journal::Segment;
use ipam_raft::machine::model::{
    Allocation, Attachment, Automatic, AutomaticStanding, Boots, Cooling, Endpoint, Generation, Lease,
    Member, MemberStanding, Meta, Namespace, Network, Node, Pool, PoolState, Prefix, PrefixOwner, Replay,
    Reservation, Sticky, Subnet, Token, Tombstone, Waiting,
};
use ipam_raft::machine::table::Ledger;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn command(action: Action) -> Command {
    let origin = Origin {
        principal: "alice".into(),
        via: Via::Cni,
        request_id: "0190-7".into(),
        comment: Some("because".into()),
        not_after_ms: Some(90_000),
    };
    let terms = Terms {
        credential: Credential::Token { id: 1 << 40 | 6 },
        idempotency: Some(Idempotency { key: "key-1".into(), request: 1 << 100 }),
        manager: Manager::Named("gitops".into()),
    };
    Command { origin, terms, action }
}

fn known_member() -> KnownMember {
    KnownMember {
        id: 3,
        name: name("n3"),
        disk_id: "disk-3".into(),
        peer_address: "10.0.0.3:7441".into(),
        client_url: "https://10.0.0.3:7440".into(),
        votes: true,
    }
}

fn attachment() -> AttachmentKey {
    AttachmentKey {
        realm: Name::default_name(),
        node: "node-1".parse().unwrap(),
        config: "net".parse().unwrap(),
        container_id: "c0ffee".parse().unwrap(),
        interface: "eth0".parse().unwrap(),
    }
}

fn remarks() -> Remarks {
    let one = |key: &str, value: &str| BTreeMap::from([(key.into(), value.into())]);
    Remarks {
        description: "what people say".into(),
        labels: one("site", "vienna"),
        annotations: one("tool", "terraform"),
        managed_by: Some("gitops".into()),
    }
}

fn network() -> NetworkIntention {
    NetworkIntention { name: name("blue"), remarks: remarks() }
}

fn subnet() -> SubnetIntention {
    let route = Route { destination: "10.9.0.0/16".parse().unwrap(), gateway: "10.1.2.3".parse().unwrap() };
    SubnetIntention {
        name: name("lan"),
        network: name("blue"),
        cidr: "10.1.2.0/24".parse().unwrap(),
        gateway: Some("10.1.2.1".parse().unwrap()),
        vlan: Some(300),
        mtu: Some(9000),
        routes: vec![route],
        dns: dns(),
        remarks: remarks(),
    }
}

fn dns() -> Dns {
    Dns {
        nameservers: vec!["2001:db8::53".parse().unwrap()],
        domain: Some("example.org".into()),
        search: vec!["a.example.org".into()],
        options: vec!["ndots:2".into()],
    }
}

fn pool() -> PoolIntention {
    PoolIntention {
        name: name("web"),
        subnet: name("lan"),
        network: None,
        ranges: vec!["10.1.2.2-10.1.2.200".parse().unwrap()],
        exclude: vec!["10.1.2.9".parse().unwrap()],
        strategy: Strategy::Sequential,
        cooling_ms: 30_000,
        strict_cooling: true,
        allow_edges: false,
        default: true,
        takers: takers(),
        scale_down: ScaleDown::Keep,
        disabled: false,
        terminating: true,
        drains_to: Some(name("web-2")),
        reclaim: Some(false),
        remarks: remarks(),
    }
}

fn takers() -> Takers {
    Takers {
        realms: vec![name("prod")],
        node_names: vec!["node-1".parse().unwrap()],
        node_selector: "zone in (a,b)".parse().unwrap(),
        namespaces: vec!["web".parse().unwrap()],
        namespace_selector: "team=web".parse().unwrap(),
        endpoint_selector: "app=web,tier in (front,back),!legacy".parse().unwrap(),
        network_attachments: vec!["kube-system/macvlan".parse().unwrap()],
    }
}

fn node_intention() -> NodeIntention {
    NodeIntention { realm: name("prod"), name: "node-1".parse().unwrap(), remarks: remarks() }
}

fn namespace() -> NamespaceIntention {
    NamespaceIntention {
        realm: name("prod"),
        name: "web".parse().unwrap(),
        default_pools: pool_patterns(),
        remarks: remarks(),
    }
}

fn reservation() -> ReservationIntention {
    let addresses = vec!["10.1.2.7".parse().unwrap(), "2001:db8::/64".parse().unwrap()];
    ReservationIntention { name: name("kept"), network: name("blue"), addresses, remarks: remarks() }
}

fn started() -> Started {
    Started { boot_id: "boot-1".into(), at_us: 123_456_789 }
}

fn pool_patterns() -> PoolPatterns {
    PoolPatterns {
        ipv4: vec![(&name("web")).into(), "lan-*".parse().unwrap()],
        ipv6: vec![(&name("six")).into()],
    }
}

fn wish() -> Allocate {
    let key = attachment();
    let interface = InterfaceWish {
        name: key.interface.clone(),
        subnets: vec![name("lan"), name("lan6")],
        pools: pool_patterns(),
        default_pools: PoolPatterns { ipv4: Vec::new(), ipv6: vec!["lan6-?".parse().unwrap()] },
        families: vec![ipam_api::Family::V4, ipam_api::Family::V6],
        addresses: vec!["10.1.2.5".parse().unwrap(), "2001:db8::5".parse().unwrap()],
        mac: Some("0a:58:0a:0a:00:4d".into()),
        network_attachment: Some("kube-system/macvlan".parse().unwrap()),
    };
    Allocate {
        endpoint: "pod/prod/web/w0".parse().unwrap(),
        uid: Some("uid-1".into()),
        labels: [("app".into(), "web".into())].into(),
        node: Some(key.node.clone()),
        attachment: Some(key),
        stickiness: Stickiness {
            controller: Some(controller()),
            sticky: Some(true),
            scale_down: Some(ScaleDown::Keep),
        },
        lifecycle: Lifecycle::Attached,
        interfaces: vec![interface],
        automatic_pool: Some(AutomaticPool { size: PoolSize::Flexible(2), replicas: 3, reclaim: true }),
        started: Some(started()),
        manner: manner(),
        routing: routing(),
    }
}

fn controller() -> Controller {
    Controller {
        group: "apps".into(),
        kind: "StatefulSet".into(),
        name: "w".parse().unwrap(),
        uid: Some("uid-2".into()),
    }
}

fn automatic() -> Automatic {
    Automatic {
        realm: name("prod"),
        namespace: "web".parse().unwrap(),
        controller: controller(),
        interface: "eth0".parse().unwrap(),
        size: PoolSize::Flexible(2),
        replicas: 3,
        standing: AutomaticStanding::Elsewhere,
    }
}

fn routing() -> Routing {
    let interface = || "eth0".parse().unwrap();
    let clean = vec![interface()];
    Routing { routes: subnet().routes, clean, default_interface: Some(interface()) }
}

fn manner() -> Manner {
    Manner { ttl_ms: Some(600_000), adopt: true, wait: true, note: note() }
}

fn note() -> Note {
    Note { hostname: Some("db-07.example.com".into()), description: "by the door".into() }
}

fn lease() -> Lease {
    Lease { ttl_ms: 600_000, until_ms: 601_000, until_wall_ms: 1_795_000_601_000 }
}

/// Each kind of action once.
pub(crate) fn actions() -> Vec<(&'static str, Action)> {
    let precondition = Precondition {
        kind: Kind::Pool,
        name: (&name("web")).into(),
        expect: Expect::Revision(1 << 40 | 300),
    };
    let all = [
        Action::PutNetwork(Put { intention: network(), expect: Expect::Anything }),
        Action::PutSubnet(Put { intention: subnet(), expect: Expect::Absent }),
        Action::PutPool(Put {
            intention: PoolIntention { network: Some(name("blue")), ..pool() },
            expect: Expect::Revision(1 << 40 | 7),
        }),
        Action::PutReservation(Put { intention: reservation(), expect: Expect::Anything }),
        Action::Delete(Delete {
            kind: Kind::Pool,
            name: (&name("web")).into(),
            expect: Expect::Absent,
            drain: true,
        }),
        Action::Allocate(wish()),
        Action::ReleaseAttachment(ReleaseAttachment { key: attachment(), started: started() }),
        Action::ReleaseAllocation { id: 1 << 40 | 300 },
        Action::ReleaseEndpoint { key: "host/db-07".parse().unwrap() },
        Action::Transaction(Transaction {
            preconditions: vec![precondition],
            steps: vec![Action::Expire, Action::ReleaseAllocation { id: 5 }],
        }),
        Action::Expire,
        Action::CreateToken(CreateToken {
            name: name("ci"),
            purpose: Purpose::Join,
            grant: grant(),
            ttl_ms: Some(3_600_000),
            description: "for nodes".into(),
            secret_hash: [7; 32],
        }),
        Action::RotateToken { name: name("ci"), secret_hash: [8; 32], expect: Expect::Revision(5) },
        Action::Join { node: node(), secret_hash: [9; 32] },
        Action::TrimJournal { through: 3 },
        Action::RaiseLevel { level: 2 },
        Action::SealJournal,
        Action::ConfirmGeneration(ConfirmGeneration { generation: 2, pools: Some(vec![name("web")]) }),
        Action::JoinMember(JoinMember {
            name: name("n4"),
            disk_id: "disk-4".into(),
            peer_address: "10.0.0.4:7441".into(),
            client_url: "https://10.0.0.4:7440".into(),
            known: vec![known_member()],
        }),
        Action::Delegate(Delegate {
            from: PrefixSource::Pool(name("web")),
            realm: name("prod"),
            levels: vec![PrefixLevel {
                owner: "node-1".parse().unwrap(),
                length: Some(26),
                keep_edges: true,
                ttl_ms: Some(900_000),
            }],
        }),
        Action::ReleasePrefix { id: 1 << 40 | 9 },
        Action::ChangeMembers(ChangeMembers {
            promote: vec![4],
            remove: vec![3],
            voters: vec![1, 2, 3],
            known: vec![known_member()],
        }),
        Action::PutNode(Put { intention: node_intention(), expect: Expect::Anything }),
        Action::PutNamespace(Put { intention: namespace(), expect: Expect::Absent }),
        Action::SplitPool(SplitPool {
            name: name("web"),
            into: name("web-2"),
            ranges: vec!["10.1.2.100-10.1.2.200".parse().unwrap()],
            expect: Expect::Revision(5),
        }),
        Action::ScaleController(ScaleController {
            realm: name("prod"),
            namespace: "web".parse().unwrap(),
            controller: controller(),
            replicas: 3,
            start: 1,
        }),
        Action::Renew(Renew { which: Leases::Endpoint("host/db-07".parse().unwrap()), ttl_ms: Some(5_000) }),
        Action::EndController(EndController {
            realm: name("prod"),
            namespace: "web".parse().unwrap(),
            controller: controller(),
        }),
    ];
    all.into_iter().map(|action| (action_name(&action), action)).collect()
}

fn action_name(action: &Action) -> &'static str {
    match action {
        Action::PutNetwork(_) => "put-network",
        Action::PutSubnet(_) => "put-subnet",
        Action::PutPool(_) => "put-pool",
        Action::PutNode(_) => "put-node",
        Action::PutNamespace(_) => "put-namespace",
        Action::PutReservation(_) => "put-reservation",
        Action::Delete(_) => "delete",
        Action::Allocate(_) => "allocate",
        Action::ReleaseAttachment(_) => "release-attachment",
        Action::ReleaseAllocation { .. } => "release-allocation",
        Action::ReleaseEndpoint { .. } => "release-endpoint",
        Action::Transaction(_) => "transaction",
        Action::Expire => "expire",
        Action::CreateToken(_) => "create-token",
        Action::RotateToken { .. } => "rotate-token",
        Action::Join { .. } => "join",
        Action::TrimJournal { .. } => "trim-journal",
        Action::RaiseLevel { .. } => "raise-level",
        Action::SealJournal => "seal-journal",
        Action::ConfirmGeneration(_) => "confirm-generation",
        Action::JoinMember(_) => "join-member",
        Action::ChangeMembers(_) => "change-members",
        Action::SplitPool(_) => "split-pool",
        Action::Delegate(_) => "delegate",
        Action::ReleasePrefix { .. } => "release-prefix",
        Action::ScaleController(_) => "scale-controller",
        Action::Renew(_) => "renew",
        Action::EndController(_) => "end-controller",
    }
}

/// Each kind of answer once, and a refusal.
pub(crate) fn outcomes() -> Vec<(&'static str, Outcome)> {
    let given = Given {
        allocation: 1 << 40 | 9,
        address: "10.1.2.5/24".parse().unwrap(),
        gateway: Some("10.1.2.1".parse().unwrap()),
        routes: subnet().routes,
        dns: dns(),
        clean_gateway: true,
        vlan: Some(300),
        mtu: Some(9000),
        pool: name("web"),
        checked: true,
        lease: Some(lease()),
        mac: Some("0a:58:0a:0a:00:4d".into()),
        note: note(),
    };
    let interface = GivenInterface {
        name: "eth0".parse().unwrap(),
        attachment: wish().attachment,
        also_attached: vec![attachment()],
        kept: true,
        unclaimed: false,
        addresses: vec![given],
    };
    let answers = [
        Answer::Stored {
            created: true,
            revision: 1 << 40 | 7,
            resource: Box::new(Stored::Network(Network { meta: meta(101), intention: network() })),
        },
        Answer::Gone,
        Answer::Draining { held: 3 },
        Answer::Allocated { repeated: true, interfaces: vec![interface] },
        Answer::Released { addresses: wish().interfaces[0].addresses.clone() },
        Answer::Steps(vec![Answer::Gone]),
        Answer::Expired { rows: 64 },
        Answer::Trimmed { segments: 2 },
        Answer::Level { level: 2 },
        Answer::Sealed { segment: Some(3) },
        Answer::Confirmed { pools: 1, waiting: 4 },
        Answer::Members { ids: vec![3, 4] },
        Answer::Delegated { repeated: true, prefixes: vec![given_prefix()] },
        Answer::PrefixReleased { cidrs: vec!["10.1.2.128/26".parse().unwrap()], ending: true },
        Answer::Pending(Pending {
            repeated: true,
            why: Why::PoolNotReady,
            detail: "full".into(),
            since_wall_ms: 7,
        }),
        Answer::Renewed {
            leases: vec![Renewed {
                allocation: 1 << 40 | 9,
                address: "10.1.2.5".parse().unwrap(),
                lease: lease(),
            }],
        },
    ];
    let applied = |answer| Ok(Applied { revision: 1 << 40 | 400, answer, replayed: true });
    let held = Context::Held { held: 1, examples: vec![("10.1.2.5".parse().unwrap(), wish().endpoint)] };
    let refusal = Refusal {
        code: Code::InUse,
        detail: "it is".to_owned(),
        help: Some("wait".to_owned()),
        context: Some(Box::new(Context::Step { step: 3, inner: Some(Box::new(held)) })),
        replayed: true,
    };
    let named = answers.into_iter().map(|answer| (answer_name(&answer), applied(answer)));
    named.chain([("refused", Err(refusal))]).collect()
}

fn given_prefix() -> GivenPrefix {
    GivenPrefix {
        id: 1 << 40 | 9,
        cidr: "10.1.2.128/26".parse().unwrap(),
        network: name("blue"),
        subnet: name("lan"),
        pool: name("web"),
        parent: Some(1 << 40 | 8),
        path: vec!["conduit".parse().unwrap(), "node-1".parse().unwrap()],
        realm: name("prod"),
        owner: "node-1".parse().unwrap(),
        keep_edges: true,
        ttl_ms: Some(900_000),
        ends_in_ms: Some(899_000),
        children: 4,
        created_wall_ms: 14,
        created_by: "alice".into(),
    }
}

fn prefix_owner() -> PrefixOwner {
    PrefixOwner { realm: name("prod"), name: "node-1".parse().unwrap() }
}

fn answer_name(answer: &Answer) -> &'static str {
    match answer {
        Answer::Stored { .. } => "stored",
        Answer::Gone => "gone",
        Answer::Draining { .. } => "draining",
        Answer::Allocated { .. } => "allocated",
        Answer::Released { .. } => "released",
        Answer::Steps(_) => "steps",
        Answer::Expired { .. } => "expired",
        Answer::Trimmed { .. } => "trimmed",
        Answer::Level { .. } => "level",
        Answer::Sealed { .. } => "sealed",
        Answer::Confirmed { .. } => "confirmed",
        Answer::Members { .. } => "members",
        Answer::Delegated { .. } => "delegated",
        Answer::PrefixReleased { .. } => "prefix-released",
        Answer::Renewed { .. } => "renewed",
        Answer::Pending(_) => "pending",
    }
}

/// Each kind of event once.
pub(crate) fn events() -> Vec<(&'static str, Event)> {
    let (address, pool, allocation) = ("10.1.2.5".parse().unwrap(), name("web"), 1 << 40 | 9);
    let (endpoint, interface): (_, InterfaceName) = (wish().endpoint, "eth0".parse().unwrap());
    let reason = Reason::AllocationReleased;
    let all = [
        What::Created { kind: Kind::Network, name: (&name("blue")).into() },
        What::Changed {
            kind: Kind::Subnet,
            name: (&name("lan")).into(),
            changes: vec![FieldChange { field: "vlan".to_owned(), from: String::new(), to: "7".to_owned() }],
        },
        What::Deleted { kind: Kind::Reservation, name: (&name("kept")).into() },
        What::Allocated {
            network: name("blue"),
            address,
            pool: pool.clone(),
            endpoint: endpoint.clone(),
            interface: interface.clone(),
            node: wish().node,
            allocation,
            reason: Reason::AttachmentAdded,
        },
        What::Released {
            network: name("blue"),
            address,
            pool: pool.clone(),
            endpoint: endpoint.clone(),
            interface: interface.clone(),
            node: wish().node,
            allocation,
            reason,
            rests: true,
        },
        What::Cooled { network: name("blue"), address, pool: pool.clone() },
        What::PoolReady { pool: pool.clone(), readiness: Readiness::Exhausted },
        What::JournalTrimmed { through: 3, segments: 2, events: 70_000, bytes: 8 << 20 },
        What::LevelRaised { level: 2 },
        What::GenerationBegun { generation: 2, from_revision: 1 << 40 | 9 },
        What::PoolConfirmed { generation: 2, pool: pool.clone() },
        What::GenerationConfirmed { generation: 2 },
        What::PoolSplit {
            pool: name("web"),
            into: name("web-2"),
            ranges: vec!["10.1.2.100-10.1.2.200".parse().unwrap()],
        },
        What::Member { id: 4, name: name("n4"), standing: MemberStanding::Learner },
        What::Delegated {
            network: name("blue"),
            cidr: given_prefix().cidr,
            pool: pool.clone(),
            owner: prefix_owner(),
            prefix: given_prefix().id,
            parent: given_prefix().parent,
        },
        What::TakenBack {
            network: name("blue"),
            cidr: given_prefix().cidr,
            pool: pool.clone(),
            owner: prefix_owner(),
            prefix: given_prefix().id,
            with: 1 << 40 | 8,
            released: true,
        },
        What::Attached {
            network: name("blue"),
            address,
            pool: pool.clone(),
            endpoint: endpoint.clone(),
            interface: interface.clone(),
            node: wish().node,
            allocation,
            reason: Reason::Reattached,
        },
        What::Detached {
            network: name("blue"),
            address,
            pool,
            endpoint,
            interface,
            node: wish().node,
            allocation,
            reason: Reason::Kept,
        },
        What::Waits { endpoint: wish().endpoint, why: Why::PoolExhausted },
        What::Withdrawn { endpoint: wish().endpoint },
    ];
    let origin = command(Action::Expire).origin;
    let by = By {
        principal: origin.principal,
        via: origin.via,
        request_id: origin.request_id,
        comment: origin.comment,
    };
    let event = |what| Event { revision: 1 << 40 | 9, number: 2, wall_ms: 77, by: by.clone(), what };
    all.into_iter().map(|what| (what_name(&what), event(what))).collect()
}

fn what_name(what: &What) -> &'static str {
    match what {
        What::Created { .. } => "created",
        What::Changed { .. } => "changed",
        What::Deleted { .. } => "deleted",
        What::Allocated { .. } => "allocated",
        What::Released { .. } => "released",
        What::Cooled { .. } => "cooled",
        What::PoolReady { .. } => "pool-ready",
        What::JournalTrimmed { .. } => "journal-trimmed",
        What::LevelRaised { .. } => "level-raised",
        What::GenerationBegun { .. } => "generation-begun",
        What::PoolConfirmed { .. } => "pool-confirmed",
        What::GenerationConfirmed { .. } => "generation-confirmed",
        What::Member { .. } => "member",
        What::PoolSplit { .. } => "pool-split",
        What::Delegated { .. } => "delegated",
        What::TakenBack { .. } => "taken-back",
        What::Attached { .. } => "attached",
        What::Detached { .. } => "detached",
        What::Waits { .. } => "waits",
        What::Withdrawn { .. } => "withdrawn",
    }
}

fn meta(id: u64) -> Meta {
    Meta {
        id,
        revision: id + 1000,
        created_wall_ms: 11,
        created_by: "alice".into(),
        updated_wall_ms: 12,
        updated_by: "bob".into(),
        updated_fields: vec!["ranges".into()],
    }
}

fn node() -> NodeKey {
    NodeKey { realm: name("prod"), name: "node-1".parse().unwrap() }
}

fn grant() -> Grant {
    let labels = "team=web,zone in (a,b)".parse().unwrap();
    Grant { role: Role::Node, node: Some(node()), realms: vec![name("prod")], labels }
}

/// A row of each table; together they are a state that makes sense.
pub(crate) fn rows() -> State {
    let mut state = State::new();
    let mut ledger = Ledger::default();
    let key = attachment();
    let (ten, eleven) = ("10.1.2.10".parse().unwrap(), "10.1.2.11".parse().unwrap());
    state.networks.put(101, Network { meta: meta(101), intention: network() }, &mut ledger);
    state.subnets.put(102, Subnet { meta: meta(102), intention: subnet(), network: 101 }, &mut ledger);
    let row =
        Pool { meta: meta(103), intention: pool(), subnet: 102, automatic: Some(Box::new(automatic())) };
    state.pools.put(103, row, &mut ledger);
    let row = Reservation { meta: meta(104), intention: reservation(), network: 101 };
    state.reservations.put(104, row, &mut ledger);
    let row = PoolState { cursor: Some(ten), readiness: Readiness::Terminating, since_wall_ms: 13 };
    state.pool_states.put(103, row, &mut ledger);
    let (endpoint, uid) = (wish().endpoint, wish().uid);
    let sticky = Sticky { controller: Some(controller()), scale_down: Some(ScaleDown::Keep), wanted: true };
    let sticky = Some(Box::new(sticky));
    let waiting = Waiting {
        order: 109,
        wish: wish(),
        credential: Credential::Token { id: 110 },
        principal: "alice".into(),
        request_id: "request".into(),
        since_wall_ms: 5,
        why: Why::AllocationFailed,
        detail: "gone".into(),
        lacks: vec![(103, 2)],
    };
    let waiting = Some(Box::new(waiting));
    let row = Endpoint { meta: meta(105), key: endpoint, uid, sticky, allocations: vec![107], waiting };
    state.endpoints.put(105, row, &mut ledger);
    let row = Attachment { key: key.clone(), started: started(), endpoint: 105, allocations: vec![107] };
    state.attachments.put(106, row, &mut ledger);
    let row = Allocation {
        address: ten,
        network: 101,
        pool: 103,
        endpoint: 105,
        interface: key.interface.clone(),
        attachment: Some(106),
        also_attached: Vec::new(),
        node: Some(key.node.clone()),
        lifecycle: Lifecycle::Attached,
        lease: Some(lease()),
        checked: true,
        mac: wish().interfaces[0].mac.clone(),
        note: note(),
        setting: Some(Setting { routes: subnet().routes, clean_gateway: true }.into()),
        created_wall_ms: 14,
        created_by: "alice".into(),
    };
    state.allocations.put(107, row, &mut ledger);
    let node = Boots {
        realm: name("prod"),
        name: key.node.clone(),
        boot_id: Some("boot-2".into()),
        past_boots: vec!["boot-0".into(), "boot-1".into()],
    };
    state.boots.put(108, node, &mut ledger);
    state.tombstones.put(109, Tombstone { key, started: started(), node: 108, until_ms: 900 }, &mut ledger);
    let token = Token {
        meta: meta(111),
        name: name("ci"),
        purpose: Purpose::Bearer,
        grant: grant(),
        description: "for a node".into(),
        secret_hash: [7; 32],
        expires_ms: Some(902),
        expires_wall_ms: Some(15),
        used_for: Some(112),
    };
    state.tokens.put(111, token, &mut ledger);
    let replay = Replay {
        principal: "alice".into(),
        key: "key-1".into(),
        request: 1 << 100,
        outcome: outcomes().pop().unwrap().1,
        until_ms: 903,
    };
    state.replays.put(113, replay, &mut ledger);
    let place = |revision| EventId { revision, number: 1 };
    let row = Segment {
        first: place(20),
        last: place(90),
        frames: 50,
        events: 61,
        bytes: 4 << 20,
        from_wall_ms: 15,
        until_wall_ms: 16,
        before: [7; 32],
        chain: [9; 32],
        until_log_time_ms: 14,
    };
    state.segments.put(1, row, &mut ledger);
    let row = Generation {
        number: 1,
        from_revision: 40,
        since_wall_ms: 17,
        confirmed: [103].into(),
        ended_wall_ms: Some(18),
    };
    state.generations.put(1, row, &mut ledger);
    state.nodes.put(115, Node { meta: meta(115), intention: node_intention() }, &mut ledger);
    state.namespaces.put(116, Namespace { meta: meta(116), intention: namespace() }, &mut ledger);
    let row = Member {
        name: name("n4"),
        disk_id: "disk-4".into(),
        peer_address: "10.0.0.4:7441".into(),
        client_url: "https://10.0.0.4:7440".into(),
        standing: MemberStanding::Removed,
        joined: 114,
    };
    state.members.put(4, row, &mut ledger);
    let row = Prefix {
        cidr: given_prefix().cidr,
        network: 101,
        pool: 103,
        parent: 103,
        owner: prefix_owner(),
        keep_edges: true,
        ttl_ms: Some(900_000),
        until_ms: Some(904),
        released: true,
        created_wall_ms: 19,
        created_by: "alice".into(),
    };
    state.prefixes.put(115, row, &mut ledger);
    state.coolings.put(110, Cooling { address: eleven, network: 101, pool: 103, until_ms: 901 }, &mut ledger);
    state
}

/// Enumerations that travel by position, all of their values.
pub(crate) fn enumerations() -> Vec<(&'static str, Vec<u8>)> {
    fn bytes<T: serde::Serialize>(all: &[T]) -> Vec<u8> {
        postcard::to_stdvec(all).unwrap()
    }
    vec![
        ("kind", bytes(&[Kind::Network, Kind::Subnet, Kind::Pool, Kind::Reservation, Kind::Token])),
        ("kind-in-a-realm", bytes(&[Kind::Node, Kind::Namespace])),
        ("role", bytes(&Role::ALL)),
        ("purpose", bytes(&[Purpose::Bearer, Purpose::Join, Purpose::JoinMember])),
        (
            "member-standing",
            bytes(&[MemberStanding::Learner, MemberStanding::Voter, MemberStanding::Removed]),
        ),
        ("via", bytes(&[Via::Http, Via::Cni, Via::Task])),
        ("expect", bytes(&[Expect::Anything, Expect::Absent, Expect::Revision(5)])),
        ("lifecycle", bytes(&[Lifecycle::Attached, Lifecycle::Leased, Lifecycle::Held])),
        ("strategy", bytes(&[Strategy::Next, Strategy::Sequential, Strategy::Random])),
        (
            "reason",
            bytes(&[
                Reason::AttachmentReleased,
                Reason::AllocationReleased,
                Reason::EndpointReleased,
                Reason::AttachmentAdded,
                Reason::Requested,
            ]),
        ),
        (
            "reason-of-sticky-endpoints",
            bytes(&[
                Reason::Reattached,
                Reason::Shared,
                Reason::Kept,
                Reason::Moved,
                Reason::ScaledDown,
                Reason::Claimed,
                Reason::Unclaimed,
            ]),
        ),
        ("scale-down", bytes(&[ScaleDown::Release, ScaleDown::Keep])),
        ("pool-size", bytes(&[PoolSize::Fixed(5), PoolSize::Flexible(2)])),
        (
            "standing-of-an-application",
            bytes(&[AutomaticStanding::Present, AutomaticStanding::Elsewhere, AutomaticStanding::Ended]),
        ),
        (
            "readiness",
            bytes(&[Readiness::Serving, Readiness::Exhausted, Readiness::Disabled, Readiness::Terminating]),
        ),
        ("readiness-after-a-restore", bytes(&[Readiness::Unconfirmed])),
        ("endpoint-kind", bytes(&EndpointKind::ALL)),
    ]
}
