//! The epoch after a restore: new revisions, and pools that allocate nothing until they are confirmed.
use ipam_api::Code;
use ipam_api::name::Name;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{Lifecycle, PoolSize};
use ipam_machine::command::{
    Allocate, AutomaticPool, ConfirmEpoch, Controller, Delegate, Delete, Expect, Kind, PoolPatterns,
    PoolSpec, PrefixLevel, PrefixSource, ReleaseAttachment, SplitPool, Started, Stickiness, Text,
};
use ipam_machine::event::Readiness;
use ipam_machine::{Action, Answer, Applied, At, EventKind, Outcome, State, apply, fixtures};

fn run(state: &mut State, action: Action) -> Outcome {
    let at = At { log_time_ms: state.log_time_ms() + 1, wall_ms: 5_000, leadership: 0 };
    apply(state, at, &fixtures::command(action)).0
}

fn done(state: &mut State, action: Action) -> Applied {
    run(state, action).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

fn code(outcome: Outcome) -> Code {
    outcome.unwrap_err().code()
}

fn pool(name: &str, range: &str) -> Action {
    let ranges = vec![range.parse().unwrap()];
    Action::PutPool(fixtures::put(PoolSpec { ranges, ..fixtures::pool(name, "lan") }))
}

fn allocate(endpoint: &str, pool: &str, address: Option<&str>) -> Action {
    let mut request = fixtures::allocate(endpoint, pool);
    request.interfaces[0].addresses = address.iter().map(|address| address.parse().unwrap()).collect();
    Action::Allocate(request)
}

fn confirm(epoch: u64, pools: Option<&[&str]>) -> Action {
    let pools = pools.map(|pools| pools.iter().map(|name| name.parse().unwrap()).collect());
    Action::ConfirmEpoch(ConfirmEpoch { epoch, pools })
}

/// Two pools, and `host/a` holds an address of the first.
fn before() -> State {
    let mut state = State::new();
    done(&mut state, Action::PutSubnet(fixtures::put(fixtures::subnet("lan", "10.1.0.0/24"))));
    done(&mut state, pool("one", "10.1.0.10-10.1.0.19"));
    done(&mut state, pool("two", "10.1.0.20-10.1.0.29"));
    done(&mut state, allocate("host/a", "one", None));
    state
}

fn restored() -> State {
    let mut state = State::from_rows(before().rows()).unwrap();
    state.begin_epoch(2, 7_000, true).unwrap();
    state
}

fn waiting(state: &State) -> Vec<String> {
    state.waiting_pools().map(|name| name.to_string()).collect()
}

#[test]
fn revisions_and_ids_go_on_above_all_that_there_were() {
    let (old, mut state) = (before(), restored());
    assert!(state.revision() > 2 << 40 && old.revision() < 2 << 40);
    assert_eq!(state.log_time_ms(), old.log_time_ms());
    assert_eq!(state.newest_event().revision, state.revision());
    assert_eq!(state.unconfirmed().unwrap().from_revision, old.revision());
    done(&mut state, confirm(2, None));
    let Answer::Allocated { interfaces, .. } = done(&mut state, allocate("host/b", "one", None)).answer
    else {
        panic!("it was given nothing")
    };
    assert!(interfaces[0].addresses[0].allocation > (2 << 40).into());
    // And once more, from a state of the second epoch.
    state.begin_epoch(5, 9_000, true).unwrap();
    assert!(state.revision() > 5 << 40);
    assert_eq!(waiting(&state), ["one", "two"]);
    for number in [0, 4, 5, 1 << 13] {
        assert!(state.clone().begin_epoch(number, 0, true).is_err(), "{number}");
    }
}

fn delegate(from: PrefixSource, owner: &str, length: u8) -> Action {
    let level =
        PrefixLevel { owner: owner.parse().unwrap(), length: Some(length), keep_edges: false, ttl_ms: None };
    Action::Delegate(Delegate { from, realm: "default".parse().unwrap(), levels: vec![level] })
}

/// Blocks cut from a prefix after the backup are unknown, like those cut from the pool.
#[test]
fn nothing_is_delegated_before_its_pool_is_confirmed() {
    let one = || PrefixSource::Pool("one".parse().unwrap());
    let mut state = before();
    done(&mut state, delegate(one(), "node", 30));
    let (id, _) = state.prefixes.first().unwrap();
    let mut state = State::from_rows(state.rows()).unwrap();
    state.begin_epoch(2, 7_000, true).unwrap();
    assert_eq!(code(run(&mut state, delegate(one(), "other", 30))), Code::EpochUnconfirmed);
    let below = || delegate(PrefixSource::Prefix(id), "child", 32);
    assert_eq!(code(run(&mut state, below())), Code::EpochUnconfirmed);
    // What is there is still answered, and can be given back.
    done(&mut state, delegate(one(), "node", 30));
    done(&mut state, Action::ReleasePrefix { id });
    assert_eq!(code(run(&mut state, delegate(one(), "node", 30))), Code::EpochUnconfirmed);
    done(&mut state, confirm(2, Some(&["one"])));
    done(&mut state, delegate(one(), "node", 30));
}

#[test]
fn nothing_is_given_before_its_pool_is_confirmed() {
    let mut state = restored();
    assert_eq!(waiting(&state), ["one", "two"]);
    let refused = run(&mut state, allocate("host/b", "one", None)).unwrap_err();
    assert_eq!(refused.code(), Code::EpochUnconfirmed);
    assert!(refused.detail().contains("one is not confirmed since the restore"), "{}", refused.detail());
    // An address that is asked for by value neither.
    assert_eq!(code(run(&mut state, allocate("host/b", "one", Some("10.1.0.15")))), Code::EpochUnconfirmed);
    // What is held is answered again, and can be released.
    let Answer::Allocated { repeated, .. } = done(&mut state, allocate("host/a", "one", None)).answer else {
        panic!("it was refused")
    };
    assert!(repeated);
    done(&mut state, Action::ReleaseEndpoint { key: "host/a".parse().unwrap() });
    assert_eq!(code(run(&mut state, allocate("host/a", "one", None))), Code::EpochUnconfirmed);
    // A pool that is made meanwhile waits, too: its addresses may be those of one that was forgotten.
    done(&mut state, pool("three", "10.1.0.30-10.1.0.39"));
    assert_eq!(code(run(&mut state, allocate("host/c", "three", None))), Code::EpochUnconfirmed);
    assert_eq!(waiting(&state), ["one", "three", "two"]);
}

/// A kept address may have been released after the backup and be another endpoint's.
#[test]
fn kept_addresses_wait_for_the_confirmation_of_their_pool() {
    let mut state = before();
    let sticky = || {
        let Action::Allocate(request) = allocate("vm/mail", "one", None) else {
            panic!("it is an allocation")
        };
        let key = "n1/net/c1/eth0".split('/').collect::<Vec<_>>();
        let attachment = AttachmentKey {
            realm: "default".parse().unwrap(),
            node: key[0].parse().unwrap(),
            config: key[1].parse().unwrap(),
            container_id: key[2].parse().unwrap(),
            interface: key[3].parse().unwrap(),
        };
        Allocate {
            attachment: Some(attachment),
            started: Some(Started { boot_id: Text::given("b"), at_us: 3, start_ticks: None }),
            lifecycle: Lifecycle::Attached,
            stickiness: Stickiness { sticky: Some(true), ..Stickiness::default() },
            automatic_pool: None,
            ..request
        }
    };
    let key = sticky().attachment.unwrap();
    let first = Allocate {
        started: Some(Started { boot_id: Text::given("b"), at_us: 1, start_ticks: None }),
        ..sticky()
    };
    done(&mut state, Action::Allocate(first));
    let started = Started { boot_id: Text::given("b"), at_us: 2, start_ticks: None };
    done(&mut state, Action::ReleaseAttachment(ReleaseAttachment { key, started }));
    assert_eq!(state.allocations.len(), 2, "kept");
    state.begin_epoch(2, 7_000, true).unwrap();
    assert_eq!(code(run(&mut state, Action::Allocate(sticky()))), Code::EpochUnconfirmed);
    done(&mut state, confirm(2, None));
    done(&mut state, Action::Allocate(sticky()));
    assert_eq!(state.allocations.len(), 2, "the same one");
}

#[test]
fn pools_are_confirmed_one_by_one_or_all_at_once() {
    let mut state = restored();
    assert_eq!(code(run(&mut state, confirm(1, None))), Code::RevisionMismatch);
    assert_eq!(code(run(&mut state, confirm(2, Some(&["one", "none"])))), Code::NotFound);
    assert_eq!(waiting(&state), ["one", "two"]);
    let answer = done(&mut state, confirm(2, Some(&["one"]))).answer;
    assert_eq!(answer, Answer::Confirmed { pools: 1, waiting: 1 });
    done(&mut state, allocate("host/b", "one", None));
    assert_eq!(code(run(&mut state, allocate("host/c", "two", None))), Code::EpochUnconfirmed);
    // Again: nothing changes.
    let revision = state.revision();
    assert_eq!(done(&mut state, confirm(2, Some(&["one"]))).revision, revision);
    // The last one ends it.
    done(&mut state, confirm(2, Some(&["two"])));
    assert!(state.unconfirmed().is_none());
    done(&mut state, allocate("host/c", "two", None));
    done(&mut state, pool("three", "10.1.0.30-10.1.0.39"));
    done(&mut state, allocate("host/d", "three", None));
    assert_eq!(done(&mut state, confirm(2, None)).answer, Answer::Confirmed { pools: 0, waiting: 0 });
}

#[test]
fn the_events_reveal_all_unconfirmed_pools() {
    let mut state = before();
    state.take_journaled();
    state.begin_epoch(2, 7_000, true).unwrap();
    let ready = |state: &State, name: &str| {
        let id = state.id_of(Kind::Pool, &name.parse::<Name>().unwrap()).unwrap();
        state.pool_states.get(id.into()).unwrap().readiness
    };
    assert_eq!(ready(&state, "one"), Readiness::Unconfirmed);
    assert!(!state.take_journaled().is_empty());
    let at = At { log_time_ms: 9, wall_ms: 9, leadership: 0 };
    let (_, events) = apply(&mut state, at, &fixtures::command(confirm(2, None)));
    let names: Vec<&str> = events.iter().map(|event| event.kind.name()).collect();
    assert_eq!(
        names,
        ["pool.confirmed", "pool.condition", "pool.confirmed", "pool.condition", "epoch.confirmed"]
    );
    assert!(matches!(events[1].kind, EventKind::PoolReady { readiness: Readiness::Serving, .. }));
    assert_eq!(ready(&state, "two"), Readiness::Serving);
}

#[test]
fn rows_tell_all_of_it() {
    let mut state = restored();
    done(&mut state, confirm(2, Some(&["one"])));
    let again = State::from_rows(state.rows()).unwrap();
    assert_eq!((again.digest(), waiting(&again)), (state.digest(), vec!["two".to_owned()]));
}

#[test]
fn both_parts_of_a_split_pool_are_as_confirmed_as_it_was() {
    let mut state = restored();
    let split = |name: &str, into: &str, range: &str| {
        Action::SplitPool(SplitPool {
            name: name.parse().unwrap(),
            into: into.parse().unwrap(),
            ranges: vec![range.parse().unwrap()],
            expect: Expect::Anything,
        })
    };
    done(&mut state, confirm(2, Some(&["one"])));
    done(&mut state, split("one", "one-b", "10.1.0.15-10.1.0.19"));
    done(&mut state, split("two", "two-b", "10.1.0.25-10.1.0.29"));
    assert_eq!(waiting(&state), ["two", "two-b"]);
    done(&mut state, allocate("host/b", "one-b", None));
    assert_eq!(code(run(&mut state, allocate("host/c", "two-b", None))), Code::EpochUnconfirmed);
}

/// An endpoint of an application that wants so many of them, each with an address.
fn of_application(application: &str, endpoint: &str, replicas: u32) -> Action {
    let Action::Allocate(mut request) = allocate(endpoint, "web", None) else { unreachable!("it allocates") };
    request.interfaces[0].pools = PoolPatterns::default();
    request.interfaces[0].subnets = vec!["lan".parse().unwrap()];
    let (group, kind, name) = (Text::given("apps"), Text::given("Deployment"), application.parse().unwrap());
    request.stickiness.controller = Some(Controller { group, kind, name, uid: None });
    request.automatic_pool = Some(AutomaticPool { size: PoolSize::Flexible(0), replicas, reclaim: true });
    Action::Allocate(request)
}

#[test]
fn pools_of_applications_neither_grow_nor_begin_before_all_is_confirmed() {
    let mut state = before();
    done(&mut state, of_application("shop", "pod/a/shop-a", 2));
    let (id, name) = state
        .pools
        .iter()
        .find(|(_, row)| row.automatic.is_some())
        .map(|(id, row)| (id, row.spec.name.clone()))
        .unwrap();
    let size = |state: &State| state.space(id).unwrap().counts().size;
    state.begin_epoch(2, 4_000, true).unwrap();
    assert_eq!(code(run(&mut state, of_application("shop", "pod/a/shop-b", 2))), Code::EpochUnconfirmed);
    done(&mut state, confirm(2, Some(&[name.as_str()])));
    done(&mut state, of_application("shop", "pod/a/shop-b", 9));
    assert_eq!(size(&state), 2, "the free rest of the subnet stays unknown");
    assert_eq!(code(run(&mut state, of_application("shop", "pod/a/shop-c", 9))), Code::PoolExhausted);
    let pools = state.pools.len();
    assert_eq!(code(run(&mut state, of_application("other", "pod/a/other", 1))), Code::EpochUnconfirmed);
    assert_eq!(state.pools.len(), pools);
    done(&mut state, confirm(2, None));
    done(&mut state, of_application("shop", "pod/a/shop-c", 9));
    assert_eq!(size(&state), 9);
    done(&mut state, of_application("other", "pod/a/other", 1));
}

/// Pools that are confirmed and deleted while others wait would let the row grow without bound.
#[test]
fn confirmations_are_deleted_with_their_pools() {
    let mut state = restored();
    let remembered = |state: &State| state.unconfirmed().unwrap().confirmed.len();
    for number in 0..5 {
        let name = format!("new-{number}");
        done(&mut state, pool(&name, "10.1.0.30-10.1.0.39"));
        done(&mut state, confirm(2, Some(&[&name])));
        assert_eq!(remembered(&state), 1);
        let name = Name::new(&name).unwrap();
        let delete =
            Delete { kind: Kind::Pool, name: (&name).into(), expect: Expect::Anything, drain: false };
        done(&mut state, Action::Delete(delete));
    }
    assert_eq!(waiting(&state), ["one", "two"]);
}
