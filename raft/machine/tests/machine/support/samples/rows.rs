//! Of every row.

use ipam_machine::command::{Cause, Credential, Purpose, RouteConfig, Started, Text};
use ipam_machine::{Damaged, EventId, RowKey, State};
use std::collections::BTreeMap;

use ipam_api::Family;
use ipam_api::access::NodeKey;
use ipam_api::resource::{Lifecycle, ScaleDown};
use ipam_machine::event::{Readiness, WaitReason};
use ipam_machine::journal::Segment;
use ipam_machine::model::{
    Allocation, Attachment, Boot, BootHistory, Check, Cooling, Endpoint, Epoch, HostPolicy, Member,
    MemberStanding, MissingBlock, Namespace, Neighbor, Network, Node, NodeReport, Pool, PoolState, Prefix,
    PrefixClaim, PrefixCooling, PrefixOwner, Quarantine, Replay, ReportedRealm, Reservation, Silence, Source,
    Sticky, Subnet, Token, Tombstone, WaitTarget, Waiting,
};
use ipam_machine::table::Row;

use super::actions::delegate;
use super::{
    allocation_metadata, attachment, automatic, controller, given_prefix, grant, host_policy, inventory,
    lease, links, mac, meta, name, namespace, network, node, node_spec, not_ready, outcomes, pool,
    prefix_owner, reported_boot, reported_pod, request, reservation, scope, started, subnet,
};

/// Rows by their keys, as a snapshot has them.
pub(crate) struct Rows(BTreeMap<RowKey, Vec<u8>>);

impl Rows {
    /// Writes a row with the version of its encoding.
    pub(crate) fn put<T: Row>(&mut self, id: u64, row: &T) {
        self.0.insert(RowKey { table: T::TABLE, id }, postcard::to_extend(row, vec![1]).unwrap());
    }

    pub(crate) fn remove<T: Row>(&mut self, id: u64) {
        self.0.remove(&RowKey { table: T::TABLE, id });
    }

    pub(crate) fn state(self) -> Result<State, Damaged> {
        State::from_rows(self.0)
    }
}

/// A state with a row of each table.
pub(crate) fn rows() -> State {
    all_rows().state().unwrap()
}

/// A row of each table; together they are a state that makes sense.
pub(crate) fn all_rows() -> Rows {
    let mut rows = Rows(State::new().rows().collect());
    let key = attachment();
    let (ten, eleven) = ("10.1.2.10".parse().unwrap(), "10.1.2.11".parse().unwrap());
    rows.put(101, &Network { meta: meta(101), spec: network() });
    rows.put(102, &Subnet { meta: meta(102), spec: subnet(), network: 101.into() });
    let row =
        Pool { meta: meta(103), spec: pool(), subnet: 102.into(), automatic: Some(Box::new(automatic())) };
    rows.put(103, &row);
    let row = Reservation { meta: meta(104), spec: reservation(), network: 101.into() };
    rows.put(104, &row);
    let row = PoolState { cursor: Some(ten), readiness: Readiness::Terminating, since_wall_ms: 13 };
    rows.put(103, &row);
    let (endpoint, uid) = (request().endpoint, request().uid);
    let sticky = Sticky { scale_down: Some(ScaleDown::Keep), wanted: true };
    let sticky = Some(Box::new(sticky));
    let waiting = Waiting {
        order: 109,
        request: request(),
        credential: Credential::Token { id: 110.into() },
        principal: Text::given("alice"),
        request_id: Text::given("request"),
        since_wall_ms: 5,
        why: WaitReason::AllocationFailed,
        cause: Box::new(Cause::AwaitedPoolsGone),
        missing: vec![(WaitTarget::Pool(103.into()), 2), (WaitTarget::Quota(scope(), Family::V6), 1)],
    };
    let waiting = Some(Box::new(waiting));
    let controller = Some(Box::new(controller()));
    let row = Endpoint {
        meta: meta(105),
        key: endpoint,
        uid,
        controller,
        sticky,
        allocations: vec![107.into()].into(),
        waiting,
    };
    rows.put(105, &row);
    let row = Attachment {
        key: key.clone(),
        started: started(),
        endpoint: 105.into(),
        allocations: vec![107.into()].into(),
    };
    rows.put(106, &row);
    let row = Allocation {
        address: ten,
        network: 101.into(),
        pool: 103.into(),
        endpoint: 105.into(),
        interface: key.interface.clone(),
        attachment: Some(106.into()),
        also_attached: Vec::new().into(),
        node: Some(key.node.clone()),
        lifecycle: Lifecycle::Attached,
        lease: Some(Box::new(lease())),
        checked: true,
        mac: request().interfaces[0].mac.clone(),
        metadata: allocation_metadata(),
        route_config: Some(RouteConfig { routes: subnet().routes, clean_gateway: true }.into()),
        created_wall_ms: 14,
        created_by: Text::given("alice"),
        source: Source::Node(NodeKey { realm: name("prod"), name: key.node.clone() }),
    };
    rows.put(107, &row);
    let earlier = Started { boot_id: Text::given("boot-0"), start_ticks: None, ..started() };
    let boots = BootHistory {
        realm: name("prod"),
        name: key.node.clone(),
        boots: vec![
            Boot { earliest: earlier, is_confirmed: false, has_released: true },
            Boot { earliest: started(), is_confirmed: true, has_released: false },
        ],
        window_ends_ms: 3_600_000,
        window_events: 12,
    };
    rows.put(108, &boots);
    rows.put(109, &Tombstone { key, releases: vec![started()], node: 108.into(), until_ms: 900 });
    let report = NodeReport {
        node: NodeKey { realm: name("prod"), name: attachment().node },
        boot: reported_boot(),
        past: vec![Text::given("boot-0")],
        readiness: not_ready(),
        since_wall_ms: 20,
        agent_version: Text::given("1.2.0"),
        heard_ms: 905,
        heard_wall_ms: 21,
        links: links(),
        inventory: inventory(),
        inventory_matched: true,
    };
    rows.put(117, &report);
    let token = Token {
        meta: meta(111),
        name: name("ci"),
        purpose: Purpose::Bearer,
        grant: grant(),
        description: Text::given("for a node"),
        joined_with: Some(name("join")),
        secret_hash: [7; 32],
        expires_ms: Some(902),
        expires_wall_ms: Some(15),
        used_for: Some(112.into()),
        replaces: true,
    };
    rows.put(111, &token);
    let replay = Replay {
        principal: Text::given("alice"),
        key: Text::given("key-1"),
        request: 1 << 100,
        outcome: outcomes().pop().unwrap().1,
        until_ms: 903,
    };
    rows.put(113, &replay);
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
    rows.put(1, &row);
    let row = Epoch {
        number: 1,
        from_revision: 40,
        since_wall_ms: 17,
        confirmed: [103.into()].into(),
        ended_wall_ms: Some(18),
    };
    rows.put(1, &row);
    rows.put(115, &Node { meta: meta(115), spec: node_spec() });
    rows.put(116, &Namespace { meta: meta(116), spec: namespace() });
    rows.put(124, &HostPolicy { meta: meta(124), spec: host_policy() });
    let row = Member {
        name: name("n4"),
        disk_id: Text::given("disk-4"),
        peer_address: Text::given("10.0.0.4:7441"),
        client_url: Text::given("https://10.0.0.4:7440"),
        standing: MemberStanding::Removed,
        joined: 114,
    };
    rows.put(4, &row);
    let row = Prefix {
        cidr: given_prefix().cidr,
        network: 101.into(),
        pool: 103.into(),
        parent: 103.into(),
        owner: prefix_owner(),
        keep_edges: true,
        ttl_ms: Some(900_000),
        until_ms: Some(904),
        released: true,
        created_wall_ms: 19,
        created_by: Text::given("alice"),
    };
    rows.put(115, &row);
    let row = PrefixClaim {
        pool: 103.into(),
        owner: prefix_owner(),
        request: delegate(),
        credential: Credential::Token { id: 111.into() },
        principal: Text::given("alice"),
        request_id: Text::given("request-1"),
        since_wall_ms: 22,
        why: WaitReason::PoolExhausted,
        cause: Box::new(Cause::NothingFree { pools: vec![name("web")] }),
        missing: Some(MissingBlock { of: WaitTarget::Block(103.into()), need: 7, owner: prefix_owner() }),
    };
    rows.put(118, &row);
    let row = PrefixCooling {
        parent: 115.into(),
        network: 101.into(),
        pool: 103.into(),
        address: "10.1.2.130".parse().unwrap(),
        owner: PrefixOwner { name: "conn-7".parse().unwrap(), ..prefix_owner() },
        until_ms: 906,
    };
    rows.put(119, &row);
    rows.put(110, &Cooling { address: eleven, network: 101.into(), pool: 103.into(), until_ms: 901 });
    let row = Quarantine {
        address: "10.1.2.12".parse().unwrap(),
        network: 101.into(),
        pool: 103.into(),
        mac: mac(1),
        reported_by: node(),
        confirmed_by: Some(NodeKey { name: "node-2".parse().unwrap(), ..node() }),
        since_wall_ms: 23,
        heard_ms: 907,
        heard_wall_ms: 24,
    };
    rows.put(120, &row);
    let free = "10.1.2.13".parse().unwrap();
    rows.put(121, &Check { address: free, network: 101.into(), pool: 103.into(), until_ms: 908 });
    let row = Neighbor {
        pool: 103.into(),
        attachment: Some(106.into()),
        mac: mac(3),
        other: Some(mac(4)),
        other_ms: 910,
        heard_by: vec![node()],
        silence: vec![Silence { node: node(), rounds: 2, last_ms: 909 }],
    };
    rows.put(107, &row);
    rows.put(122, &reported_pod());
    rows.put(123, &ReportedRealm { realm: name("default"), until_ms: 911 });
    rows
}
