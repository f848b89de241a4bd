//! Bounds that take too many commands for a scenario.

use crate::support::script;
use ipam_machine::command::Text;
use std::collections::VecDeque;

use crate::support::script::Line;
use ipam_api::limits::{
    ALLOCATIONS_PER_ENDPOINT_MAX, ATTACHMENTS_PER_ALLOCATION_MAX, DNS_DOMAIN_CHARS_MAX, DNS_ENTRIES_MAX,
    DNS_OPTION_CHARS_MAX, EXPIRIES_PER_COMMAND_MAX, HOST_POLICIES_MAX, INTERFACES_MAX, LINK_ADDRESSES_MAX,
    MAP_STEPS_MAX, OBJECT_NAME_CHARS_MAX, PAST_BOOTS_MAX, RANGES_MAX, RESPONSE_ADDRESSES_MAX,
    RESPONSE_BYTES_MAX, ROUTES_MAX, ROW_BYTES_MAX, TEXT_CHARS_MAX, TOMBSTONE_TTL_MS, TOMBSTONES_PER_NODE_MAX,
    TRANSACTION_STEPS_MAX, WAITING_MAX, WAITING_TRIED_PER_COMMAND_MAX,
};
use ipam_api::name::ObjectName;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Route;
use ipam_api::{Code, Name};
use ipam_machine::command::{
    AllocationMetadata, Dns, Expect, Given, GivenInterface, Idempotency, Kind, Metadata, PoolSpec, Put,
    Renewed, Transaction,
};
use ipam_machine::id::PrefixId;
use ipam_machine::map::{MapPage, Run, Standing, Wanted};
use ipam_machine::model::Lease;
use ipam_machine::{Action, Answer, At, Command, Outcome, State, apply};

/// A state with what these commands make of it.
fn state(commands: &[&str]) -> State {
    let mut state = State::new();
    for command in commands {
        say(&mut state, 0, command).unwrap();
    }
    state
}

fn read(line: &str) -> Command {
    match script::read(line, &mut VecDeque::new()) {
        Line::Propose(command) | Line::Explain(command) => *command,
        Line::At(later, wall) => panic!("only a time: {later} {wall:?}"),
        Line::Leadership(number, grace_ms) => panic!("only a leadership: {number} {grace_ms}"),
        Line::Under(number) => panic!("only a leadership: {number}"),
        Line::Show(what, which) => panic!("only a look: {what} {which}"),
        Line::Unreadable(problem) => panic!("{problem:?}"),
    }
}

fn say(state: &mut State, log_time_ms: u64, line: &str) -> Outcome {
    apply(state, At { log_time_ms, wall_ms: 1, leadership: 0 }, &read(line)).0
}

#[track_caller]
fn refused(outcome: &Outcome, code: Code) {
    assert_eq!(outcome.as_ref().unwrap_err().code(), code);
}

#[test]
fn a_node_has_room_for_so_many_releases_and_forgets_the_oldest() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan default"]);
    say(&mut state, 0, "release attachment n2/net/other/eth0 started=b:9").unwrap();
    for i in 0..TOMBSTONES_PER_NODE_MAX {
        say(&mut state, 1, &format!("release attachment n1/net/c{i}/eth0 started=b:9")).unwrap();
    }
    assert_eq!(state.tombstones.len(), TOMBSTONES_PER_NODE_MAX + 1);
    refused(
        &say(&mut state, 2, "allocate container/c0 eth0 attach=n1/net/c0 started=b:1"),
        Code::AttachmentReleased,
    );
    // The same one again is not one more.
    say(&mut state, 2, "release attachment n1/net/c7/eth0 started=b:10").unwrap();
    assert_eq!(state.tombstones.len(), TOMBSTONES_PER_NODE_MAX + 1);
    say(&mut state, 3, "release attachment n1/net/more/eth0 started=b:9").unwrap();
    assert_eq!(state.tombstones.len(), TOMBSTONES_PER_NODE_MAX + 1);
    // Only this node's oldest is forgotten.
    say(&mut state, 4, "allocate container/c0 eth0 attach=n1/net/c0 started=b:1").unwrap();
    refused(
        &say(&mut state, 4, "allocate container/c1 eth0 attach=n1/net/c1 started=b:1"),
        Code::AttachmentReleased,
    );
    let other = "allocate container/other eth0 attach=n2/net/other started=b:1";
    refused(&say(&mut state, 4, other), Code::AttachmentReleased);
    // A rebuilt state counts the same.
    let mut rebuilt = State::from_rows(state.rows()).unwrap();
    say(&mut rebuilt, 5, "release attachment n1/net/evenmore/eth0 started=b:9").unwrap();
    assert_eq!(rebuilt.tombstones.len(), TOMBSTONES_PER_NODE_MAX + 1);
}

#[test]
fn one_command_clears_away_a_bounded_number_and_the_next_goes_on() {
    let mut state =
        state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan default cooling_ms=10"]);
    let count = EXPIRIES_PER_COMMAND_MAX + 5;
    for i in 0..count {
        say(&mut state, 0, &format!("allocate host/h{i} eth0")).unwrap();
    }
    for i in 0..count {
        say(&mut state, 0, &format!("release endpoint host/h{i}")).unwrap();
    }
    say(&mut state, 0, "release attachment n1/net/c1/eth0 started=b:1").unwrap();
    let expired = |outcome: Outcome| match outcome.unwrap().answer {
        Answer::Expired { rows } => usize::try_from(rows).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(expired(say(&mut state, 10, "expire")), EXPIRIES_PER_COMMAND_MAX);
    assert_eq!((state.coolings.len(), state.next_expiry_ms()), (5, Some(10)));
    assert_eq!(expired(say(&mut state, 10, "expire")), 5);
    assert_eq!(expired(say(&mut state, 10, "expire")), 0);
    assert_eq!(state.next_expiry_ms(), Some(TOMBSTONE_TTL_MS));
    assert_eq!(expired(say(&mut state, TOMBSTONE_TTL_MS, "expire")), 1);
    assert_eq!(state.next_expiry_ms(), None);
}

#[test]
fn cooling_blocks_of_a_released_prefix_are_cleared_a_bounded_number_at_a_time() {
    let pool = "put pool lan subnet=lan cooling_ms=10 strict";
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", pool]);
    let count = 2 * EXPIRIES_PER_COMMAND_MAX;
    for i in 0..count {
        say(&mut state, 0, &format!("delegate from=lan rack/25 + a{i}/32")).unwrap();
    }
    let rack = state.prefixes.first().unwrap().0;
    let slots: Vec<_> = state.prefixes_below(rack.into()).collect();
    let release = |id: PrefixId| format!("release prefix {}", id.get() & 0xff_ffff);
    for slot in slots {
        say(&mut state, 0, &release(slot)).unwrap();
    }
    let left = |state: &State| (state.prefixes.len(), state.prefix_coolings.len(), state.next_expiry_ms());
    assert_eq!(left(&state), (1, count, Some(10)));
    // By time,
    let mut cooled = state.clone();
    say(&mut cooled, 10, "expire").unwrap();
    assert_eq!(left(&cooled), (1, count / 2, Some(10)));
    say(&mut cooled, 10, "expire").unwrap();
    assert_eq!(left(&cooled), (1, 0, None));
    // and by the end of the prefix. A claim for a block of it then waits for its last row.
    say(&mut state, 0, "delegate from=lan wait rack + late/32").unwrap();
    let ended = say(&mut state, 0, &release(rack)).unwrap().answer;
    assert_eq!(ended, Answer::PrefixReleased { cidrs: Vec::new(), ending: true });
    assert_eq!(left(&state), (1, count / 2, Some(0)));
    let rebuilt = State::from_rows(state.rows()).unwrap();
    assert_eq!(state.index_differences(&rebuilt), [""; 0]);
    say(&mut state, 0, "expire").unwrap();
    say(&mut state, 0, "expire").unwrap();
    assert_eq!(left(&state), (0, 0, None));
}

/// A request waits until the owner's own prefix is cleared, and has the address back then.
///
/// Nothing else is free, and the pool is strict.
#[test]
fn a_claim_of_the_last_owner_of_a_cooling_address_has_it_back() {
    let pool = "put pool lan subnet=lan cooling_ms=60000 strict";
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", pool]);
    say(&mut state, 0, "delegate from=lan node/31 + mine/32 ttl_ms=50000").unwrap();
    say(&mut state, 0, "delegate from=lan node + other/32").unwrap();
    for i in 0..EXPIRIES_PER_COMMAND_MAX {
        say(&mut state, 0, &format!("delegate from=lan a{i}/32 ttl_ms=40000")).unwrap();
    }
    let address = |state: &State| {
        let mine = state.prefixes.iter().find(|(_, row)| row.owner.name.as_str() == "mine");
        mine.map(|(id, row)| (id, row.cidr))
    };
    let before = address(&state).unwrap();
    say(&mut state, 50_000, "delegate from=lan wait node + mine/32").unwrap();
    assert_eq!(address(&state), Some(before), "the command has cleared the others");
    assert_eq!(state.prefix_claims.len(), 1);
    say(&mut state, 50_000, "expire").unwrap();
    let after = address(&state).unwrap();
    assert!(after.1 == before.1 && after.0 > before.0, "{after:?}");
    assert_eq!((state.prefix_claims.len(), state.prefix_coolings.len()), (0, 0));
}

#[test]
fn an_endpoint_holds_a_bounded_number_of_addresses() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan default"]);
    for i in 0..ALLOCATIONS_PER_ENDPOINT_MAX - 1 {
        say(&mut state, 0, &format!("allocate vm/a eth{i}")).unwrap();
    }
    let before = state.digest();
    refused(&say(&mut state, 0, "allocate vm/a one + two"), Code::LimitExceeded);
    assert_eq!(state.digest(), before);
    say(&mut state, 0, "allocate vm/a one").unwrap();
    refused(&say(&mut state, 0, "allocate vm/a two"), Code::LimitExceeded);
    // Another incarnation is another holder.
    say(&mut state, 0, "allocate vm/a two uid=other").unwrap();
}

#[test]
fn a_request_has_a_bounded_number_of_interfaces_and_pools() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan default"]);
    let request = |count: usize| {
        let interfaces: Vec<String> = (0..count).map(|i| format!("eth{i}")).collect();
        format!("allocate host/a {}", interfaces.join(" + "))
    };
    refused(&say(&mut state, 0, &request(INTERFACES_MAX + 1)), Code::LimitExceeded);
    say(&mut state, 0, &request(INTERFACES_MAX)).unwrap();
    let pools = |count: usize| format!("allocate host/b eth0 ipv4_pools={}", vec!["web"; count].join(","));
    refused(&say(&mut state, 0, &pools(65)), Code::LimitExceeded);
    say(&mut state, 0, &pools(64)).unwrap();
    let links = |count: usize| format!("allocate host/c eth0 link={}", vec!["10.0.0.1"; count].join(","));
    refused(&say(&mut state, 0, &links(LINK_ADDRESSES_MAX + 1)), Code::LimitExceeded);
    say(&mut state, 0, &links(LINK_ADDRESSES_MAX)).unwrap();
}

#[test]
fn a_node_remembers_a_bounded_number_of_boots() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan default"]);
    say(&mut state, 0, "allocate container/old eth0 attach=n1/net/old started=boot0:500").unwrap();
    for boot in 1..=PAST_BOOTS_MAX + 2 {
        let line = format!("allocate container/c{boot} eth0 attach=n1/net/c{boot} started=boot{boot}:1");
        say(&mut state, 0, &line).unwrap();
    }
    let (_, node) = state.boots.first().unwrap();
    assert_eq!(node.boots.len(), PAST_BOOTS_MAX + 1);
    assert_eq!(&*node.boots[0].earliest.boot_id, "boot2");
    // The attachment's boot is long forgotten; its DEL from the present one takes effect all the same.
    let line = format!("release attachment n1/net/old/eth0 started=boot{}:9", PAST_BOOTS_MAX + 2);
    let released = say(&mut state, 0, &line).unwrap();
    assert!(matches!(released.answer, Answer::Released { addresses, .. } if addresses.len() == 1));
}

#[test]
fn boots_that_only_add_take_no_memory_from_those_that_are_proven() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan default"]);
    say(&mut state, 0, "release attachment n1/net/c/eth0 started=old:9").unwrap();
    say(&mut state, 0, "release attachment n1/net/c/eth0 started=live:9").unwrap();
    say(&mut state, 0, "allocate container/live eth0 attach=n1/net/live started=live:10").unwrap();
    // Granted or refused, each is heard.
    for boot in 0..3 * PAST_BOOTS_MAX {
        let line = format!("allocate container/c eth0 attach=n1/net/c started=flood{boot}:1");
        refused(&say(&mut state, 0, &line), Code::BootUnconfirmed);
        let line = format!("allocate container/{boot} eth0 attach=n1/net/{boot} started=more{boot}:1");
        say(&mut state, 0, &line).unwrap();
    }
    let (_, node) = state.boots.first().unwrap();
    assert_eq!(node.boots.len(), PAST_BOOTS_MAX + 1);
    // The living container keeps its address, and frees it with its own boot's DEL.
    let release = |state: &mut State, boot: &str| {
        let line = format!("release attachment n1/net/live/eth0 started={boot}:99");
        match say(state, 0, &line).unwrap().answer {
            Answer::Released { addresses, late, .. } => (addresses.len(), late),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(release(&mut state, "old"), (0, true));
    assert_eq!(release(&mut state, "live"), (1, false));
}

#[test]
fn a_report_has_a_bounded_number_of_past_boots() {
    let mut state = state(&[]);
    for boot in 1..=3 * PAST_BOOTS_MAX {
        say(&mut state, 0, &format!("heartbeat n1 boot=boot{boot}:{boot}")).unwrap();
    }
    let (_, report) = state.reports.first().unwrap();
    assert_eq!(report.past.len(), PAST_BOOTS_MAX);
    assert_eq!(report.past.last().map(|boot| &**boot), Some(&*format!("boot{}", 3 * PAST_BOOTS_MAX - 1)));
}

/// A command expires a bounded number of rows. Those that are left have no effect all the same.
#[test]
fn a_check_that_waits_for_its_expiry_proves_nothing() {
    let mut state = state(&[
        "put subnet lan cidr=10.0.0.0/24 gateway=10.0.0.1",
        "put pool web subnet=lan default probe=yes valid=20000 cooling_ms=10000",
        "heartbeat n1 boot=A:1 links=10.0.0.0/24",
    ]);
    for host in 0..100 {
        say(&mut state, 0, &format!("allocate host/h{host} eth0")).unwrap();
        say(&mut state, 0, &format!("release endpoint host/h{host}")).unwrap();
    }
    say(&mut state, 0, "probes n1 10.0.0.200>").unwrap();
    let allocated = say(&mut state, 30_000, "allocate pod/a eth0 attach=n1/net/a started=A:1").unwrap();
    assert_eq!(state.checks.len(), 1, "its row is still there");
    let Answer::Allocated { interfaces, .. } = allocated.answer else { panic!("{allocated:?}") };
    let given = &interfaces[0].addresses[0];
    assert!(!given.checked && given.probes_conflicts, "{given:?}");
}

#[test]
fn a_transaction_has_a_bounded_number_of_steps() {
    let transaction = |count| {
        let steps = vec![Action::Expire; count];
        script::command(Action::Transaction(Transaction { preconditions: Vec::new(), steps }), None)
    };
    let mut state = State::new();
    let at = At::default();
    refused(&apply(&mut state, at, &transaction(TRANSACTION_STEPS_MAX + 1)).0, Code::LimitExceeded);
    apply(&mut state, at, &transaction(TRANSACTION_STEPS_MAX)).0.unwrap();
}

#[test]
fn the_largest_subnets_cost_what_small_ones_do() {
    let mut state = state(&[
        "put subnet eight cidr=10.0.0.0/8 gateway=10.0.0.1",
        "put subnet sixteen cidr=2001::/16",
        "put pool eight subnet=eight default",
        "put pool sixteen subnet=sixteen default exclude=2001::-2001:ffff::",
    ]);
    say(&mut state, 0, "allocate host/a eth0").unwrap();
    let addresses: Vec<String> = state.allocations.iter().map(|(_, row)| row.address.to_string()).collect();
    assert_eq!(addresses, ["10.0.0.2", "2001:ffff::1"]);
    let size = |name: &str| {
        let id = state.id_of(Kind::Pool, &name.parse::<Name>().unwrap()).unwrap();
        state.space(id.into()).unwrap().counts().size
    };
    assert_eq!((size("eight"), size("sixteen")), (1 << 24, 1 << 112));
}

#[test]
fn a_map_costs_its_shown_part_and_not_the_whole_network() {
    let mut state = state(&[
        "put subnet wide cidr=10.0.0.0/8",
        "put pool eight subnet=wide",
        "put subnet six cidr=2001:db8::/48",
        "put pool six subnet=six",
        "allocate host/six eth0 ipv6_pools=six",
    ]);
    // More than a page looks at, one behind the other.
    let held = MAP_STEPS_MAX + 1000;
    for i in 0..held {
        say(&mut state, 0, &format!("allocate host/h{i} eth0 ipv4_pools=eight")).unwrap();
    }
    let [eight, six] =
        ["eight", "six"].map(|name| state.id_of(Kind::Pool, &name.parse::<Name>().unwrap()).unwrap());
    let wide = state.id_of(Kind::Subnet, &"wide".parse::<Name>().unwrap()).unwrap();
    let wanted = Wanted { from: 0, limit: 10, only: None };
    let sizes = |page: MapPage| {
        assert_eq!(page.next, None);
        let size = |run: &Run| (run.standing.as_str(), run.last - run.first + 1);
        page.runs.iter().map(size).collect::<Vec<_>>()
    };
    let held = held as u128;
    assert_eq!(
        sizes(state.map_of_pool(eight.into(), wanted).unwrap()),
        [("excluded", 1), ("allocated", held), ("free", (1 << 24) - held - 2), ("excluded", 1)]
    );
    assert_eq!(
        sizes(state.map_of_pool(six.into(), wanted).unwrap()),
        [("excluded", 1), ("allocated", 1), ("free", (1 << 80) - 2)]
    );
    // What is held though it is reserved is looked at one by one: so many a page, and the next one goes on.
    say(&mut state, 0, "put reservation r addresses=10.0.0.0/8").unwrap();
    let page = state.map_of_pool(eight.into(), wanted).unwrap();
    assert_eq!(page.runs.last().map(|run| (run.standing, run.reserved)), Some((Standing::Allocated, true)));
    let next = page.next.unwrap();
    assert_eq!(page.runs.last().unwrap().last + 1, next);
    let rest = state.map_of_pool(eight.into(), Wanted { from: next, ..wanted }).unwrap();
    assert_eq!(
        rest.runs.iter().map(|run| run.last - run.first + 1).sum::<u128>() + next,
        (1 << 24) + (10 << 24)
    );
    assert_eq!(state.counts_of_subnet(wide.into()).size, 1 << 24);
}

#[test]
fn so_many_claims_wait_and_are_served_in_order_a_bounded_number_with_each_command() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan ranges=10.0.0.1"]);
    say(&mut state, 0, "allocate host/first eth0 ipv4_pools=web").unwrap();
    let wait = |i: usize| format!("allocate claim/c{i} eth0 ipv4_pools=web wait");
    for i in 0..WAITING_MAX {
        say(&mut state, 1, &wait(i)).unwrap();
    }
    refused(&say(&mut state, 1, &wait(WAITING_MAX)), Code::LimitExceeded);
    // Asking again is no other claim, and who goes makes room.
    say(&mut state, 1, &wait(7)).unwrap();
    say(&mut state, 1, "release endpoint claim/c7").unwrap();
    say(&mut state, 1, &wait(WAITING_MAX)).unwrap();
    let mut rebuilt = State::from_rows(state.rows()).unwrap();
    refused(&say(&mut rebuilt, 2, &wait(WAITING_MAX + 1)), Code::LimitExceeded);
    // The pool grows: the oldest claims are served first, and the next command continues.
    say(&mut state, 2, "put pool web subnet=lan").unwrap();
    let waits = |state: &State, i: usize| {
        let key = format!("claim/c{i}").parse().unwrap();
        let mut rows = state.incarnations(&key).filter_map(|id| state.waiting(id));
        rows.next().is_some()
    };
    assert_eq!(state.waiting_count(), WAITING_MAX - WAITING_TRIED_PER_COMMAND_MAX);
    assert!(
        !waits(&state, WAITING_TRIED_PER_COMMAND_MAX) && waits(&state, WAITING_TRIED_PER_COMMAND_MAX + 1)
    );
    say(&mut state, 3, "expire").unwrap();
    assert_eq!(state.waiting_count(), WAITING_MAX - 2 * WAITING_TRIED_PER_COMMAND_MAX);
}

#[test]
fn prefix_requests_share_the_queue_and_its_limit_with_endpoints() {
    let mut state =
        state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan ranges=10.0.0.1 cooling_ms=0"]);
    say(&mut state, 0, "allocate host/first eth0 ipv4_pools=web").unwrap();
    for i in 0..WAITING_MAX {
        say(&mut state, 1, &format!("delegate from=web wait c{i}/32")).unwrap();
    }
    refused(&say(&mut state, 1, "delegate from=web wait late/32"), Code::LimitExceeded);
    refused(&say(&mut state, 1, "allocate claim/late eth0 ipv4_pools=web wait"), Code::LimitExceeded);
    say(&mut state, 1, "delegate from=web wait c9/32").unwrap();
    // Each command tries a bounded number, the oldest first.
    say(&mut state, 2, "put pool web subnet=lan").unwrap();
    assert_eq!(state.prefix_claims.len(), WAITING_MAX - WAITING_TRIED_PER_COMMAND_MAX);
    say(&mut state, 3, "expire").unwrap();
    assert_eq!(state.prefix_claims.len(), WAITING_MAX - 2 * WAITING_TRIED_PER_COMMAND_MAX);
    let oldest = state.prefix_claims.iter().next().map(|(_, claim)| claim.owner.name.to_string());
    assert_eq!(oldest, Some(format!("c{}", 2 * WAITING_TRIED_PER_COMMAND_MAX)));
}

#[test]
fn a_claim_below_a_prefix_that_a_new_leadership_keeps_is_served() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool web subnet=lan"]);
    say(&mut state, 0, "delegate from=web a/24 ttl_ms=60000").unwrap();
    for i in 0..EXPIRIES_PER_COMMAND_MAX + 8 {
        say(&mut state, 0, &format!("delegate from=web a + c{i}/32")).unwrap();
    }
    // The prefix has ended, and one command can't clear all of it.
    say(&mut state, 60_000, "delegate from=web wait a/24 + late/30").unwrap();
    assert_eq!((state.prefix_claims.len(), state.prefixes.len()), (1, 9));
    // Its owner refreshes it in the grace of the next leadership.
    state.begin_leadership(0, 30_000);
    say(&mut state, 60_001, "delegate from=web a/24 ttl_ms=60000").unwrap();
    assert_eq!((state.prefix_claims.len(), state.prefixes.len()), (0, 10));
}

#[test]
fn a_pool_of_an_application_that_shrinks_has_no_more_ranges_than_may_be_sent_back() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16 automatic automatic-max=65536"]);
    let count = 2 * RANGES_MAX + 100;
    let allocate = |state: &mut State, number: usize, replicas: usize| {
        let of = format!("controller=apps/Deployment/a automatic=+0 replicas={replicas}");
        say(state, 0, &format!("allocate pod/shop/a{number} eth0 subnets=lan lifecycle=held {of}"))
    };
    let pool = |state: &State| state.pools.iter().next().map(|(id, row)| (id, row.clone())).unwrap();
    let usable = |state: &State| {
        let counts = state.space(pool(state).0).unwrap().counts();
        usize::try_from(counts.allocated + counts.cooling + counts.free).unwrap()
    };
    for number in 0..count {
        allocate(&mut state, number, count).unwrap();
    }
    let mut spec = pool(&state).1.spec;
    spec.cooling_ms = 0;
    let put = |state: &mut State, spec: &PoolSpec| {
        let put = Put { spec: spec.clone(), expect: Expect::Anything };
        let at = At { log_time_ms: 0, wall_ms: 1, leadership: 0 };
        apply(state, at, &script::command(Action::PutPool(put), None)).0
    };
    put(&mut state, &spec).unwrap();
    say(&mut state, 0, "scale shop/apps/Deployment/a replicas=100").unwrap();
    for number in (0..count).step_by(2) {
        say(&mut state, 0, &format!("release endpoint pod/shop/a{number}")).unwrap();
    }
    // What is in the way of being in few pieces stays.
    let spec = pool(&state).1.spec;
    assert_eq!(spec.ranges.len(), RANGES_MAX);
    assert!(usable(&state) > count / 2, "{}", usable(&state));
    let described = PoolSpec {
        metadata: Metadata { description: Text::given("as it is"), ..spec.metadata.clone() },
        ..spec
    };
    put(&mut state, &described).unwrap();
    // One more of its endpoints changes nothing of that, and once it wants more it gets what lies between its
    // own.
    allocate(&mut state, 0, 100).unwrap();
    assert_eq!(pool(&state).1.spec.ranges.len(), RANGES_MAX);
    say(&mut state, 0, &format!("scale shop/apps/Deployment/a replicas={count}")).unwrap();
    assert_eq!(usable(&state), count);
    say(&mut state, 0, "scale shop/apps/Deployment/a replicas=100").unwrap();
    assert!(pool(&state).1.spec.ranges.len() <= RANGES_MAX);
    for number in (0..count).filter(|number| number % 2 == 1) {
        say(&mut state, 0, &format!("release endpoint pod/shop/a{number}")).unwrap();
    }
    assert_eq!(usable(&state), 100);
}

/// State with default pools of both families, and a host with 16 interfaces and a long description.
fn both_families() -> (State, Action) {
    let mut state = state(&[
        "put subnet four cidr=10.0.0.0/16",
        "put pool four subnet=four default",
        "put subnet six cidr=2001:db8::/64",
        "put pool six subnet=six default",
    ]);
    let interfaces: Vec<String> = (0..INTERFACES_MAX).map(|at| format!("eth{at}")).collect();
    let mut command = read(&format!("allocate host/a {}", interfaces.join(" + ")));
    let Action::Allocate(request) = &mut command.action else { panic!("{command:?}") };
    // Four bytes each.
    request.options.metadata.description = Text::given("\u{1F980}".repeat(TEXT_CHARS_MAX));
    apply(&mut state, At::default(), &command).0.unwrap();
    (state, command.action)
}

fn transaction(steps: Vec<Action>) -> Command {
    let mut command =
        script::command(Action::Transaction(Transaction { preconditions: Vec::new(), steps }), None);
    command.terms.idempotency = Some(Idempotency { key: Text::given("key"), request: 7 });
    command
}

fn rows_are_within_bounds(state: &State) {
    for (key, row) in state.rows() {
        assert!(row.len() <= ROW_BYTES_MAX, "{key:?} has {} bytes", row.len());
    }
}

/// A change that isn't repeated comes first, so that it shows if anything of the transaction stays.
#[test]
fn a_transaction_whose_response_is_too_large_is_refused_and_changes_nothing() {
    let (mut state, repeated) = both_families();
    let mut steps = vec![read("allocate host/b eth0").action];
    steps.extend(vec![repeated; 519]);
    let before = state.clone();
    let refusal = apply(&mut state, At::default(), &transaction(steps)).0.unwrap_err();
    assert_eq!(refusal.code(), Code::LimitExceeded);
    assert!(refusal.help().unwrap().contains("Split"));
    assert!(state.allocations.iter().map(|(id, _)| id).eq(before.allocations.iter().map(|(id, _)| id)));
    assert_eq!(
        (state.endpoints.len(), state.replays.len()),
        (before.endpoints.len(), 1),
        "the refusal is kept"
    );
    rows_are_within_bounds(&state);
}

#[test]
fn a_thousand_allocations_of_both_families_are_one_transaction() {
    let (mut state, _) = both_families();
    let steps: Vec<Action> = (0..1000).map(|at| read(&format!("allocate host/h{at} eth0")).action).collect();
    let command = transaction(steps);
    let first = apply(&mut state, At::default(), &command).0.unwrap();
    let again = apply(&mut state, At::default(), &command).0.unwrap();
    assert_eq!((again.replayed, &again.answer), (true, &first.answer));
    assert_eq!(state.allocations.len(), 2000 + 2 * INTERFACES_MAX);
    rows_are_within_bounds(&state);
}

/// All fields as long as they may be, for all that one endpoint may hold.
#[test]
fn the_largest_answer_to_one_action_fits() {
    let text = |chars: usize| -> Text { Text::given("\u{1F980}".repeat(chars)) };
    let plain = |bytes: usize| -> Text { Text::given("x".repeat(bytes)) };
    let object = || ObjectName::new(&"x".repeat(OBJECT_NAME_CHARS_MAX)).unwrap();
    let (realm, interface) = (Name::new(&"x".repeat(63)).unwrap(), "x".repeat(15).parse().unwrap());
    let key = AttachmentKey {
        realm: realm.clone(),
        node: object(),
        config: object(),
        container_id: object(),
        interface,
    };
    let address: std::net::IpAddr = "ffff::1".parse().unwrap();
    let route = Route { destination: "ffff::/128".parse().unwrap(), gateway: address };
    let given = Given {
        allocation: u64::MAX.into(),
        address: "ffff::/128".parse().unwrap(),
        gateway: Some(address),
        // The subnet's, the pool's and the request's.
        routes: vec![route; 3 * ROUTES_MAX],
        clean_gateway: true,
        dns: Dns {
            nameservers: vec![address; DNS_ENTRIES_MAX],
            domain: Some(plain(DNS_DOMAIN_CHARS_MAX)),
            search: vec![plain(DNS_DOMAIN_CHARS_MAX); DNS_ENTRIES_MAX],
            options: vec![plain(DNS_OPTION_CHARS_MAX); DNS_ENTRIES_MAX],
        },
        vlan: Some(u16::MAX),
        mtu: Some(u32::MAX),
        pool: realm,
        checked: true,
        probes_conflicts: true,
        probes_gateway: true,
        lease: Some(Lease { ttl_ms: u64::MAX, until_ms: u64::MAX, until_wall_ms: u64::MAX }),
        mac: Some(plain(17)),
        metadata: AllocationMetadata {
            hostname: Some(plain(OBJECT_NAME_CHARS_MAX)),
            description: text(TEXT_CHARS_MAX),
        },
    };
    let one = GivenInterface {
        name: key.interface.clone(),
        attachment: Some(key.clone()),
        also_attached: vec![key; ATTACHMENTS_PER_ALLOCATION_MAX - 1],
        kept: false,
        preallocated: false,
        addresses: vec![given],
    };
    let answer = Answer::Allocated { repeated: true, interfaces: vec![one; ALLOCATIONS_PER_ENDPOINT_MAX] };
    let bytes = postcard::experimental::serialized_size(&answer).unwrap();
    assert!(bytes <= RESPONSE_BYTES_MAX, "{bytes}");
    let lease = Renewed {
        allocation: u64::MAX.into(),
        address,
        lease: Lease { ttl_ms: u64::MAX, until_ms: u64::MAX, until_wall_ms: u64::MAX },
    };
    let answer = Answer::Renewed { leases: vec![lease; RESPONSE_ADDRESSES_MAX], more: u64::MAX };
    let bytes = postcard::experimental::serialized_size(&answer).unwrap();
    assert!(bytes <= RESPONSE_BYTES_MAX, "{bytes}");
}

#[test]
fn dns_entries_are_short() {
    let mut state = State::new();
    let mut put = |dns: Dns| {
        let mut command = read("put subnet lan cidr=10.0.0.0/16");
        let Action::PutSubnet(put) = &mut command.action else { panic!("{command:?}") };
        put.spec.dns = dns;
        apply(&mut state, At::default(), &command).0
    };
    let text = |bytes: usize| -> Text { Text::given("x".repeat(bytes)) };
    for (domain, search, option) in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)] {
        let dns = Dns {
            nameservers: Vec::new(),
            domain: Some(text(DNS_DOMAIN_CHARS_MAX + domain)),
            search: vec![text(DNS_DOMAIN_CHARS_MAX + search)],
            options: vec![text(DNS_OPTION_CHARS_MAX + option)],
        };
        let outcome = put(dns);
        match domain + search + option {
            0 => drop(outcome.unwrap()),
            _ => refused(&outcome, Code::LimitExceeded),
        }
    }
}

#[test]
fn a_cluster_has_a_bounded_number_of_host_policies() {
    let mut state = state(&[]);
    for i in 0..HOST_POLICIES_MAX {
        say(&mut state, 0, &format!("put host-policy p{i}")).unwrap();
    }
    refused(&say(&mut state, 0, "put host-policy more"), Code::LimitExceeded);
    say(&mut state, 0, "put host-policy p0 node_labelled=a=b").unwrap();
}
