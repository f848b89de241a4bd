//! Rights of a stolen node token: it detaches and frees its own allocations, and its usage is limited.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_api::limits::{
    ATTACHMENTS_PER_ALLOCATION_AND_NODE_MAX, ATTACHMENTS_PER_ALLOCATION_MAX, EVENTS_PER_NODE_MAX,
    EVENTS_PER_NODE_WINDOW_MS, WAITING_PER_NODE_MAX,
};
use ipam_api::resource::{Lifecycle, ScaleDown};
use ipam_machine::Action;
use ipam_machine::command::{
    Allocate, AllocateOptions, Expect, InterfaceRequest, Kind, Leases, Precondition, ReleaseAttachment,
    Renew, Started, Stickiness, Text, Transaction,
};

use crate::access::world::{
    World, add, admin, attachment, del, del_of, delete, hold, ids, labelled, name, node, pool, started,
    with_labels,
};

const FOREIGN: Option<Code> = Some(Code::ForeignNode);

fn sticky(request: Allocate) -> Allocate {
    Allocate { stickiness: Stickiness { sticky: Some(true), ..Stickiness::default() }, ..request }
}

/// An ADD of a named container, so that one endpoint may have several.
fn sandbox(node: &str, container: &str, endpoint: &str) -> Allocate {
    Allocate { attachment: Some(attachment(node, container)), ..sticky(add(node, endpoint, "web")) }
}

fn release(id: u64) -> Action {
    Action::ReleaseAllocation { id: id.into() }
}

#[test]
fn red_team_a_node_attaches_what_an_operator_pinned_and_frees_it() {
    let mut world = World::new();
    let pinned = sticky(Allocate { node: None, ..hold(None, "vm/db", "web") });
    let pinned = ids(&world.run(admin(), Action::Allocate(pinned)));
    let attached = ids(&world.run(node("n2"), Action::Allocate(sticky(add("n2", "vm/db", "web")))));
    assert_eq!(attached, pinned);
    assert_eq!(world.code(node("n2"), release(pinned[0])), FOREIGN);
    assert_eq!(world.code(node("n2"), del("n2", "db")), None);
    assert_eq!(world.code(node("n2"), release(pinned[0])), FOREIGN);
    assert!(
        world.state.allocations.get(pinned[0].into()).is_some_and(|row| row.lifecycle == Lifecycle::Held)
    );
}

#[test]
fn red_team_a_node_moves_a_pinned_endpoint_to_another_address() {
    let mut world = World::new();
    let pinned = sticky(hold(None, "vm/db", "web"));
    let pinned = ids(&world.run(admin(), Action::Allocate(pinned)));
    let elsewhere = sticky(add("n2", "vm/db", "db"));
    assert_eq!(world.code(node("n2"), Action::Allocate(elsewhere)), FOREIGN);
    assert!(world.state.allocations.get(pinned[0].into()).is_some());
}

#[test]
fn a_live_migration_is_an_event_and_grants_no_right_to_release() {
    let mut world = World::new();
    let given = ids(&world.run(node("n1"), Action::Allocate(sticky(add("n1", "vm/a", "web")))));
    let before = world.state.endpoints.iter().next().unwrap().1.clone();
    let uid = Some(Text::given("forged"));
    let scale_down = Some(ScaleDown::Release);
    let mut request = sticky(add("n2", "vm/a", "web"));
    request.uid = uid;
    request.stickiness.scale_down = scale_down;
    let (outcome, events) = world.run_with_events(node("n2"), Action::Allocate(request));
    assert_eq!(ids(&outcome), given);
    assert!(events.iter().any(|event| format!("{event:?}").contains("Migrated")), "{events:?}");
    let after = world.state.endpoints.iter().next().unwrap().1.clone();
    assert_eq!((&after.uid, &after.sticky), (&before.uid, &before.sticky), "the endpoint is n1's");
    assert_eq!(world.code(node("n2"), release(given[0])), FOREIGN);
    assert_eq!(world.code(node("n2"), del("n2", "a")), None);
    assert!(world.state.attachment(&attachment("n1", "a")).is_some());
}

#[test]
fn red_team_a_node_replaces_the_address_of_an_endpoint_that_lives_elsewhere() {
    let mut world = World::new();
    world.run(node("n1"), Action::Allocate(sticky(add("n1", "vm/a", "web")))).unwrap();
    assert_eq!(world.code(node("n2"), Action::Allocate(sticky(add("n2", "vm/a", "db")))), FOREIGN);
}

#[test]
fn a_kept_address_survives_a_request_for_another_one() {
    let mut world = World::new();
    let kept = ids(&world.run(node("n1"), Action::Allocate(sticky(add("n1", "vm/a", "web")))));
    world.run(node("n1"), del("n1", "a")).unwrap();
    let mut request = sticky(add("n2", "vm/a", "db"));
    request.started = Some(started(3));
    let other = ids(&world.run(node("n2"), Action::Allocate(request)));
    assert_ne!(kept, other);
    assert!(world.state.allocations.get(kept[0].into()).is_some(), "no node frees what an endpoint keeps");
    // An operator's request moves the endpoint and frees what is left.
    let mut request = sticky(add("n3", "vm/b", "web"));
    let first = ids(&world.run(admin(), Action::Allocate(request.clone())));
    world.run(admin(), del("n3", "b")).unwrap();
    request.started = Some(started(3));
    request.interfaces[0].pools.ipv4 = vec![(&name("db")).into()];
    world.run(admin(), Action::Allocate(request)).unwrap();
    assert!(world.state.allocations.get(first[0].into()).is_none());
}

#[test]
fn red_team_a_node_fills_the_attachments_of_another_nodes_pod() {
    let mut world = World::new();
    let given = ids(&world.run(node("n1"), Action::Allocate(sandbox("n1", "c0", "vm/a"))));
    for number in 0..3 * ATTACHMENTS_PER_ALLOCATION_MAX {
        let request = sandbox("n2", &format!("x{number}"), "vm/a");
        assert_eq!(ids(&world.run(node("n2"), Action::Allocate(request))), given);
    }
    let attached = |world: &World, node: &str| {
        world.state.attachments.iter().filter(|(_, row)| row.key.node.as_str() == node).count()
    };
    assert_eq!(attached(&world, "n2"), ATTACHMENTS_PER_ALLOCATION_AND_NODE_MAX);
    assert!(world.state.attachment(&attachment("n2", "x0")).is_none(), "the oldest is detached");
    // The owner's next sandboxes are served; at the bound its own oldest goes, never another node's.
    for number in 1..4 {
        let request = sandbox("n1", &format!("c{number}"), "vm/a");
        assert_eq!(ids(&world.run(node("n1"), Action::Allocate(request))), given);
    }
    assert_eq!(attached(&world, "n1"), ATTACHMENTS_PER_ALLOCATION_AND_NODE_MAX);
    assert_eq!(attached(&world, "n2"), ATTACHMENTS_PER_ALLOCATION_AND_NODE_MAX);
    assert!(world.state.attachment(&attachment("n1", "c3")).is_some());
}

#[test]
fn at_the_bound_of_all_nodes_a_node_gives_its_oldest_attachment_for_a_new_one() {
    let mut world = World::new();
    for number in 0..ATTACHMENTS_PER_ALLOCATION_MAX {
        let request = sandbox(&format!("n{number}"), "c", "vm/a");
        world.run(node(&format!("n{number}")), Action::Allocate(request)).unwrap();
    }
    let stranger = sandbox("other", "c", "vm/a");
    assert_eq!(world.code(node("other"), Action::Allocate(stranger)), Some(Code::LimitExceeded));
    assert_eq!(world.code(node("n0"), Action::Allocate(sandbox("n0", "d", "vm/a"))), None);
    assert!(world.state.attachment(&attachment("n0", "c")).is_none());
    assert!(world.state.attachment(&attachment("n0", "d")).is_some());
    assert_eq!(world.state.attachments.len(), ATTACHMENTS_PER_ALLOCATION_MAX);
}

#[test]
fn a_node_frees_what_was_adopted_for_its_pod_by_uid() {
    let mut world = World::new();
    let adopted = |endpoint: &str, uid: Option<&str>, node: &str| {
        let mut request = hold(Some(node), endpoint, "web");
        request.uid = uid.map(Text::given);
        request.options = AllocateOptions { adopt: true, ..AllocateOptions::default() };
        request
    };
    let mut next = 10..;
    let mut adopt = |world: &mut World, mut request: Allocate| {
        request.interfaces[0].addresses = vec![format!("10.0.0.{}", next.next().unwrap()).parse().unwrap()];
        ids(&world.run(admin(), Action::Allocate(request)))[0]
    };
    let own = adopt(&mut world, adopted("pod/web/a", Some("u1"), "n1"));
    let unnamed = adopt(&mut world, adopted("pod/web/b", None, "n1"));
    let elsewhere = adopt(&mut world, adopted("pod/web/c", Some("u2"), "n2"));
    assert_eq!(world.code(node("n1"), release(own)), None);
    for id in [unnamed, elsewhere] {
        assert_eq!(world.code(node("n1"), release(id)), FOREIGN);
    }
}

#[test]
fn red_team_a_node_names_adopted_endpoints_of_others_in_its_del() {
    let mut world = World::new();
    let mut adopt = |endpoint: &str, node: &str, uid: Option<&str>, address: &str| {
        let mut request = hold(Some(node), endpoint, "web");
        request.uid = uid.map(Text::given);
        request.options = AllocateOptions { adopt: true, ..AllocateOptions::default() };
        request.interfaces[0].addresses = vec![address.parse().unwrap()];
        ids(&world.run(admin(), Action::Allocate(request)))[0]
    };
    let kept = [
        adopt("pod/web/a", "n1", Some("u1"), "10.0.0.10"),
        adopt("pod/web/b", "n2", None, "10.0.0.11"),
        adopt("pod/prod/web/c", "n2", Some("u1"), "10.0.0.12"),
    ];
    let own = adopt("pod/web/d", "n2", Some("u1"), "10.0.0.13");
    let operators = Allocate { uid: Some(Text::given("u2")), ..hold(Some("n2"), "pod/web/e", "web") };
    let operators = ids(&world.run(admin(), Action::Allocate(operators)))[0];
    for (number, endpoint) in
        ["pod/web/a", "pod/web/b", "pod/prod/web/c", "pod/web/d", "pod/web/e"].iter().enumerate()
    {
        for uid in ["u1", "u2", "u9"] {
            let of = |node| del_of(node, &format!("x{number}{uid}"), endpoint, uid);
            assert_eq!(world.code(node("n2"), of("n1")), FOREIGN, "another node's attachment");
            assert_eq!(world.code(node("n2"), of("n2")), None);
        }
    }
    assert!(world.state.allocations.get(own.into()).is_none());
    for id in kept.into_iter().chain([operators]) {
        assert!(world.state.allocations.get(id.into()).is_some(), "{id}");
    }
}

#[test]
fn labels_limit_what_a_del_frees_of_an_adopted_endpoint() {
    let mut world = World::new();
    let mut request = hold(Some("n1"), "pod/web/a", "web");
    request.uid = Some(Text::given("u1"));
    request.options = AllocateOptions { adopt: true, ..AllocateOptions::default() };
    request.interfaces[0].addresses = vec!["10.0.0.10".parse().unwrap()];
    let id = ids(&world.run(admin(), Action::Allocate(request)))[0];
    let release = del_of("n1", "a", "pod/web/a", "u1");
    let db = with_labels(Role::Operator, "team=db");
    assert_eq!(world.code(db, release.clone()), Some(Code::Forbidden));
    assert!(world.state.allocations.get(id.into()).is_some());
    assert_eq!(world.code(with_labels(Role::Operator, "team=web"), release), None);
    assert!(world.state.allocations.get(id.into()).is_none());
}

#[test]
fn red_team_a_node_ends_an_operators_lease_by_renewing_it_for_less() {
    let mut world = World::new();
    let mut request = hold(Some("n1"), "machine/n1", "web");
    request.lifecycle = Lifecycle::Leased;
    request.options.ttl_ms = Some(86_400_000);
    let leased = ids(&world.run(admin(), Action::Allocate(request.clone())))[0];
    let renew = |ttl_ms| Action::Renew(Renew { which: Leases::Allocation(leased.into()), ttl_ms });
    assert_eq!(world.code(node("n1"), renew(None)), None);
    assert_eq!(world.code(node("n1"), renew(Some(60_000))), FOREIGN);
    request.options.ttl_ms = Some(60_000);
    assert_eq!(world.code(node("n1"), Action::Allocate(request)), FOREIGN, "a repeated claim renews, too");
}

#[test]
fn red_team_a_node_fills_an_endpoint_that_lives_elsewhere() {
    let mut world = World::new();
    world.run(admin(), pool("wide", "lan", "10.0.0.30-10.0.0.250", labelled(&[]))).unwrap();
    world.run(node("n1"), Action::Allocate(add("n1", "pod/web/a", "wide"))).unwrap();
    let mut refused = None;
    for number in 0..200 {
        let mut request = add("n2", "pod/web/a", "wide");
        request.attachment = Some(attachment("n2", &format!("x{number}")));
        refused = world.code(node("n2"), Action::Allocate(request));
        if refused.is_some() {
            break;
        }
    }
    assert_eq!(refused, Some(Code::LimitExceeded));
    let mut again = add("n1", "pod/web/a", "wide");
    again.attachment = Some(attachment("n1", "next"));
    assert_eq!(world.code(node("n1"), Action::Allocate(again)), None, "the owner's next sandbox");
}

#[test]
fn red_team_a_node_fills_the_queue_of_waiting_claims() {
    let mut world = World::new();
    let claim = |number: usize| {
        let mut request = hold(Some("n2"), &format!("machine/h{number}"), "web");
        request.options.wait = true;
        Action::Allocate(request)
    };
    world.run(admin(), pool("web", "lan", "10.0.0.10", labelled(&[]))).unwrap();
    world.run(node("n2"), claim(0)).unwrap();
    for number in 1..=WAITING_PER_NODE_MAX {
        assert_eq!(world.code_unchecked(node("n2"), claim(number)), None);
    }
    assert_eq!(world.code(node("n2"), claim(9_999)), Some(Code::LimitExceeded));
    let mut other = hold(Some("n1"), "machine/other", "web");
    other.options.wait = true;
    assert_eq!(world.code(node("n1"), Action::Allocate(other)), None, "another node may wait");
}

#[test]
fn red_team_a_node_floods_the_journal() {
    let mut world = World::new();
    let mut at_us = 10;
    let mut round = |world: &mut World| {
        at_us += 10;
        let start = |at_us| Some(Started { at_us, ..started(0) });
        let mut request = add("n2", "pod/web/a", "web");
        request.started = start(at_us);
        let interface = request.interfaces[0].clone();
        request.interfaces.extend((1..9).map(|number| InterfaceRequest {
            name: format!("net{number}").parse().unwrap(),
            ..interface.clone()
        }));
        let refused = world.code_unchecked(node("n2"), Action::Allocate(request));
        let release = ReleaseAttachment { key: attachment("n2", "a"), started: start(at_us + 1).unwrap() };
        assert_eq!(world.code_unchecked(node("n2"), Action::ReleaseAttachment(release)), None);
        refused
    };
    let rounds = (0..=EVENTS_PER_NODE_MAX).position(|_| round(&mut world).is_some()).unwrap();
    assert!(rounds as u64 <= EVENTS_PER_NODE_MAX);
    assert_eq!(round(&mut world), Some(Code::TooManyRequests));
    assert_eq!(world.code(node("n1"), Action::Allocate(add("n1", "pod/web/b", "web"))), None);
    world.log_time_ms += EVENTS_PER_NODE_WINDOW_MS + 1;
    assert_eq!(round(&mut world), None, "the next window has a budget of its own");
}

#[test]
fn red_team_a_node_reads_names_and_revisions_by_preconditions() {
    let mut world = World::new();
    let ask = |kind, name: &str, expect| {
        let preconditions = vec![Precondition { kind, name: name.parse().unwrap(), expect }];
        Action::Transaction(Transaction { preconditions, steps: Vec::new() })
    };
    for (kind, name) in [(Kind::Pool, "web"), (Kind::Pool, "missing"), (Kind::Namespace, "default/web")] {
        for expect in [Expect::Absent, Expect::Revision(7), Expect::Anything] {
            assert_eq!(world.code(node("n2"), ask(kind, name, expect)), Some(Code::Forbidden));
        }
    }
    assert_eq!(world.code(admin(), ask(Kind::Pool, "missing", Expect::Absent)), None);
}

#[test]
fn red_team_a_nodes_transaction_has_only_what_the_node_may_do_singly() {
    let mut world = World::new();
    let foreign = ids(&world.run(node("n1"), Action::Allocate(add("n1", "pod/web/a", "web"))));
    for step in [delete(Kind::Pool, "web"), release(foreign[0]), del("n1", "a"), Action::Expire] {
        let own = Action::Allocate(add("n2", "pod/web/b", "web"));
        let transaction = Transaction { preconditions: Vec::new(), steps: vec![own, step] };
        let before = world.state.digest();
        assert!(world.code(node("n2"), Action::Transaction(transaction)).is_some());
        assert_eq!(world.state.digest(), before);
    }
}

#[test]
fn red_team_a_node_touches_another_realm() {
    let mut world = World::new();
    let mut theirs = hold(Some("n2"), "host/h", "web");
    theirs.endpoint.realm = name("prod");
    let key = Leases::Endpoint(theirs.endpoint.clone());
    let theirs = ids(&world.run(admin(), Action::Allocate(theirs)));
    assert_eq!(world.code(node("n2"), release(theirs[0])), FOREIGN);
    assert_eq!(world.code(node("n2"), Action::Renew(Renew { which: key, ttl_ms: None })), FOREIGN);
    let mut by_value = add("n2", "pod/web/a", "web");
    by_value.interfaces[0].addresses = vec!["10.0.0.10".parse().unwrap()];
    let refusal = world.run(node("n2"), Action::Allocate(by_value)).unwrap_err();
    assert_eq!(refusal.code(), Code::AddressTaken);
    assert!(!refusal.cause.detail().contains("prod"), "{}", refusal.cause.detail());
}
