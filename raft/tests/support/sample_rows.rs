//! Of every row.

use ipam_raft::machine::command::Cause;
use ipam_raft::machine::command::Text;
use ipam_raft::machine::command::{Credential, Purpose, Setting, Started};
use ipam_raft::machine::{EventId, State};

use ipam_api::Family;
use ipam_api::resource::{Lifecycle, ScaleDown};
use ipam_raft::machine::event::{Readiness, Why};
use ipam_raft::machine::journal::Segment;
use ipam_raft::machine::model::{
    Allocation, Attachment, Boot, Boots, Cooling, Endpoint, Generation, Member, MemberStanding, Namespace,
    Network, Node, Pool, PoolState, Prefix, Replay, Reservation, Scarce, Sticky, Subnet, Token, Tombstone,
    Waiting,
};
use ipam_raft::machine::table::Ledger;

use super::{
    account, attachment, automatic, controller, given_prefix, grant, lease, meta, name, namespace, network,
    node_intention, note, outcomes, pool, prefix_owner, reservation, started, subnet, wish,
};

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
    let sticky = Sticky { scale_down: Some(ScaleDown::Keep), wanted: true };
    let sticky = Some(Box::new(sticky));
    let waiting = Waiting {
        order: 109,
        wish: wish(),
        credential: Credential::Token { id: 110 },
        principal: Text::given("alice"),
        request_id: Text::given("request"),
        since_wall_ms: 5,
        why: Why::AllocationFailed,
        cause: Box::new(Cause::AwaitedPoolsGone),
        lacks: vec![(Scarce::Pool(103), 2), (Scarce::Quota(account(), Family::V6), 1)],
    };
    let waiting = Some(Box::new(waiting));
    let controller = Some(Box::new(controller()));
    let row =
        Endpoint { meta: meta(105), key: endpoint, uid, controller, sticky, allocations: vec![107], waiting };
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
        created_by: Text::given("alice"),
    };
    state.allocations.put(107, row, &mut ledger);
    let earlier = Started { boot_id: Text::given("boot-0"), start_ticks: None, ..started() };
    let node = Boots {
        realm: name("prod"),
        name: key.node.clone(),
        boots: vec![
            Boot { earliest: earlier, is_confirmed: false, has_released: true },
            Boot { earliest: started(), is_confirmed: true, has_released: false },
        ],
    };
    state.boots.put(108, node, &mut ledger);
    state.tombstones.put(
        109,
        Tombstone { key, releases: vec![started()], node: 108, until_ms: 900 },
        &mut ledger,
    );
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
        used_for: Some(112),
    };
    state.tokens.put(111, token, &mut ledger);
    let replay = Replay {
        principal: Text::given("alice"),
        key: Text::given("key-1"),
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
        disk_id: Text::given("disk-4"),
        peer_address: Text::given("10.0.0.4:7441"),
        client_url: Text::given("https://10.0.0.4:7440"),
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
        created_by: Text::given("alice"),
    };
    state.prefixes.put(115, row, &mut ledger);
    state.coolings.put(110, Cooling { address: eleven, network: 101, pool: 103, until_ms: 901 }, &mut ledger);
    state
}
