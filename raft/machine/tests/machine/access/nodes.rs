//! A node may change only its own allocations, whatever its request claims.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_api::limits::ALLOCATIONS_PER_HOST_MAX;
use ipam_api::name::Name;
use ipam_machine::Action;
use ipam_machine::command::{Allocate, Controller, ScaleController, Stickiness, Text};

use crate::access::world::{World, add, admin, del, hold, ids, labelled, node, pool, with_labels};

const FOREIGN: Option<Code> = Some(Code::ForeignNode);

#[test]
fn a_node_serves_its_own_containers() {
    let mut world = World::new();
    let given = world.run(node("n1"), Action::Allocate(add("n1", "pod/web/a", "web")));
    assert_eq!(ids(&given).len(), 1);
    assert_eq!(world.code(node("n1"), del("n1", "a")), None);
    let held = world.run(node("n1"), Action::Allocate(hold(Some("n1"), "host/n1", "web")));
    assert_eq!(world.code(node("n1"), Action::ReleaseAllocation { id: ids(&held)[0].into() }), None);
}

#[test]
fn red_team_a_node_asks_for_another_nodes_container() {
    let mut world = World::new();
    assert_eq!(world.code(node("n1"), Action::Allocate(add("n2", "pod/web/a", "web"))), FOREIGN);
    // The attachment is its own, but the addresses shall be elsewhere.
    let elsewhere = Allocate { node: Some("n2".parse().unwrap()), ..add("n1", "pod/web/a", "web") };
    assert_eq!(world.code(node("n1"), Action::Allocate(elsewhere)), FOREIGN);
}

#[test]
fn red_team_a_node_releases_what_is_on_another_node() {
    let mut world = World::new();
    let given = world.run(admin(), Action::Allocate(add("n2", "pod/web/a", "web")));
    let held = world.run(admin(), Action::Allocate(hold(Some("n2"), "host/n2", "web")));
    let nowhere = world.run(admin(), Action::Allocate(hold(None, "host/printer", "web")));
    let before = world.state.allocations.len();
    assert_eq!(world.code(node("n1"), del("n2", "a")), FOREIGN);
    for outcome in [given, held, nowhere] {
        assert_eq!(
            world.code(node("n1"), Action::ReleaseAllocation { id: ids(&outcome)[0].into() }),
            FOREIGN
        );
    }
    let key = "pod/web/a".parse().unwrap();
    assert_eq!(world.code(node("n1"), Action::ReleaseEndpoint { key }), FOREIGN);
    assert_eq!(world.state.allocations.len(), before);
}

#[test]
fn red_team_a_node_holds_addresses_without_saying_where() {
    let mut world = World::new();
    assert_eq!(world.code(node("n1"), Action::Allocate(hold(None, "host/n1", "web"))), FOREIGN);
    assert_eq!(world.code(node("n1"), Action::Allocate(hold(Some("n2"), "host/n1", "web"))), FOREIGN);
}

#[test]
fn red_team_a_node_takes_over_another_nodes_held_endpoint() {
    let mut world = World::new();
    world.run(admin(), Action::Allocate(hold(Some("n2"), "host/db-07", "web"))).unwrap();
    assert_eq!(world.code(node("n1"), Action::Allocate(hold(Some("n1"), "host/db-07", "web"))), FOREIGN);
}

#[test]
fn red_team_a_node_speaks_for_a_namesake_of_another_realm() {
    let mut world = World::new();
    let realm: Name = "prod".parse().unwrap();
    let mut request = add("n1", "pod/prod/web/a", "web");
    assert_eq!(world.code(node("n1"), Action::Allocate(request.clone())), FOREIGN, "the endpoint's realm");
    request.endpoint = "pod/web/a".parse().unwrap();
    request.attachment.as_mut().unwrap().realm = realm.clone();
    assert_eq!(world.code(node("n1"), Action::Allocate(request)), FOREIGN, "the attachment's realm");
    // What is on prod's n1 is not on default's.
    let mut theirs = add("n1", "pod/prod/web/b", "web");
    theirs.attachment.as_mut().unwrap().realm = realm;
    let given = world.run(admin(), Action::Allocate(theirs));
    assert_eq!(world.code(node("n1"), Action::ReleaseAllocation { id: ids(&given)[0].into() }), FOREIGN);
}

#[test]
fn a_sticky_endpoint_goes_to_another_node_and_neither_frees_what_the_other_has() {
    let mut world = World::new();
    let on = |name: &str| Action::Allocate(sticky(add(name, "pod/web/a-0", "web")));
    let given = world.run(node("n1"), on("n1"));
    let shared = world.run(node("n2"), on("n2"));
    assert_eq!(ids(&given), ids(&shared));
    let release = || Action::ReleaseAllocation { id: ids(&given)[0].into() };
    assert_eq!(world.code(node("n1"), release()), FOREIGN);
    assert_eq!(world.code(node("n2"), release()), FOREIGN);
    assert_eq!(world.code(node("n1"), del("n1", "a-0")), None);
    assert_eq!(world.code(node("n1"), release()), FOREIGN, "it is on n2 alone");
    assert_eq!(world.code(node("n2"), del("n2", "a-0")), None);
    assert_eq!(world.code(node("n2"), release()), FOREIGN, "kept for whichever node is next");
    assert_eq!(world.state.allocations.len(), 1);
    assert_eq!(world.code(node("n1"), scale(0)), Some(Code::Forbidden));
    assert_eq!(world.code(admin(), scale(0)), None);
    assert_eq!(world.state.allocations.len(), 0);
}

#[test]
fn red_team_a_node_makes_sticky_what_is_on_another_node() {
    let mut world = World::new();
    world.run(admin(), Action::Allocate(add("n2", "pod/web/a-0", "web"))).unwrap();
    world.run(admin(), Action::Allocate(hold(Some("n2"), "host/db-07", "web"))).unwrap();
    for endpoint in ["pod/web/a-0", "host/db-07"] {
        let request = sticky(add("n1", endpoint, "web"));
        assert_eq!(world.code(node("n1"), Action::Allocate(request)), FOREIGN, "{endpoint}");
    }
    let claim = sticky(hold(Some("n1"), "host/db-07", "web"));
    assert_eq!(world.code(node("n1"), Action::Allocate(claim)), FOREIGN);
    assert_eq!(world.state.allocations.len(), 2);
}

fn sticky(request: Allocate) -> Allocate {
    let stickiness = Stickiness { controller: Some(controller()), ..Stickiness::default() };
    Allocate { stickiness, ..request }
}

fn controller() -> Controller {
    let name = "a".parse().unwrap();
    Controller { group: Text::given("apps"), kind: Text::given("StatefulSet"), name, uid: None }
}

fn scale(replicas: u32) -> Action {
    Action::ScaleController(ScaleController {
        realm: Name::default_name(),
        namespace: "web".parse().unwrap(),
        controller: controller(),
        replicas,
        start: 0,
    })
}

#[test]
fn a_node_requests_and_releases_the_addresses_of_its_own_host() {
    let mut world = World::new();
    let own = || Action::Allocate(hold(Some("n1"), "host/n1", "web"));
    let release = |key: &str| Action::ReleaseEndpoint { key: key.parse().unwrap() };
    assert_eq!(world.code(node("n1"), own()), None);
    assert_eq!(world.code(node("n1"), release("host/n1")), None);
    // Also what an operator has given it, with or without the node's name.
    let given = world.run(admin(), Action::Allocate(hold(None, "host/n1", "web")));
    assert_eq!(ids(&world.run(node("n1"), own())), ids(&given));
    assert_eq!(world.code(node("n1"), Action::ReleaseAllocation { id: ids(&given)[0].into() }), None);
    // Another machine with its token says that it takes over.
    let machine = |uid: &str, take_over| {
        let mut request = hold(Some("n1"), "host/n1", "web");
        request.uid = Some(Text::given(uid));
        request.options.take_over = take_over;
        Action::Allocate(request)
    };
    assert_eq!(world.code(node("n1"), machine("m1", false)), None);
    assert_eq!(world.code(node("n1"), machine("m2", false)), Some(Code::HostReinstalled));
    assert_eq!(world.code(node("n1"), machine("m2", true)), None);
    assert_eq!(world.state.allocations.len(), 1);
}

#[test]
fn red_team_a_limited_token_takes_a_host_over_whose_addresses_it_may_not_release() {
    let mut world = World::new();
    let machine = |uid: &str| {
        let mut request = hold(None, "host/db", "web");
        (request.uid, request.options.take_over) = (Some(Text::given(uid)), true);
        Action::Allocate(request)
    };
    assert_eq!(world.code(admin(), machine("m1")), None);
    let before = world.state.digest();
    let limited = with_labels(Role::Operator, "team=other");
    assert_eq!(world.code(limited, machine("m2")), Some(Code::Forbidden));
    assert_eq!(world.state.digest(), before);
    assert_eq!(world.code(with_labels(Role::Operator, ""), machine("m2")), None);
}

#[test]
fn red_team_a_node_requests_or_releases_the_addresses_of_another_host() {
    let mut world = World::new();
    let others = ["host/n2", "host/other/n1", "host/free", "host/prod/default/n1"];
    for key in ["host/n2", "host/other/n1", "host/prod/default/n1"] {
        world.run(admin(), Action::Allocate(hold(None, key, "web"))).unwrap();
    }
    let before = world.state.digest();
    for key in others {
        let mut request = hold(Some("n1"), key, "web");
        assert_eq!(world.code(node("n1"), Action::Allocate(request.clone())), FOREIGN, "{key}");
        (request.uid, request.options.take_over) = (Some(Text::given("m1")), true);
        assert_eq!(world.code(node("n1"), Action::Allocate(request)), FOREIGN, "{key}");
        let key = key.parse().unwrap();
        assert_eq!(world.code(node("n1"), Action::ReleaseEndpoint { key }), FOREIGN);
    }
    assert_eq!(world.state.digest(), before);
}

#[test]
fn red_team_a_node_ends_what_another_node_has_attached_to_its_host() {
    let mut world = World::new();
    world.run(admin(), Action::Allocate(add("n2", "host/n1", "web"))).unwrap();
    let before = world.state.digest();
    let key = "host/n1".parse().unwrap();
    assert_eq!(world.code(node("n1"), Action::ReleaseEndpoint { key }), FOREIGN);
    assert_eq!(world.code(node("n1"), Action::Allocate(hold(Some("n1"), "host/n1", "web"))), FOREIGN);
    assert_eq!(world.state.digest(), before);
}

#[test]
fn red_team_a_node_takes_more_addresses_for_its_host_than_a_host_needs() {
    let mut world = World::new();
    world.run(admin(), pool("wide", "lan", "10.0.0.30-10.0.0.250", labelled(&[]))).unwrap();
    let request = |number: usize| {
        let mut request = hold(Some("n1"), "host/n1", "wide");
        request.interfaces[0].name = format!("eth{number}").parse().unwrap();
        Action::Allocate(request)
    };
    for number in 0..ALLOCATIONS_PER_HOST_MAX {
        assert_eq!(world.code_unchecked(node("n1"), request(number)), None, "{number}");
    }
    assert_eq!(world.code(node("n1"), request(ALLOCATIONS_PER_HOST_MAX)), Some(Code::LimitExceeded));
    assert_eq!(world.code(node("n1"), request(0)), None, "a repetition takes nothing");
    assert_eq!(world.code(admin(), request(ALLOCATIONS_PER_HOST_MAX)), None, "an operator knows why");
}
