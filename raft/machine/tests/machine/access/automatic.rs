//! Automatic pools: created with the right to use their subnet, and ended with the right to release.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_api::resource::PoolSize;
use ipam_machine::command::{
    Allocate, AutomaticPool, Controller, EndController, Expect, Kind, Put, ScaleController, SubnetSpec, Text,
};
use ipam_machine::{Action, Grant, Terms};

use crate::access::world::{World, add, admin, labelled, name, node, subnet, with_labels};

fn controller() -> Controller {
    Controller {
        group: Text::given("apps"),
        kind: Text::given("Deployment"),
        name: "web".parse().unwrap(),
        uid: None,
    }
}

/// A subnet for one team only.
fn team_subnet(cidr: &str, team: &str) -> Action {
    let Action::PutSubnet(Put { spec, .. }) = subnet(team, cidr) else { unreachable!("it puts one") };
    let spec = SubnetSpec { metadata: labelled(&[("team", team)]), ..spec };
    Action::PutSubnet(Put { spec, expect: Expect::Anything })
}

fn ask(pod: &str, subnet: &str) -> Action {
    let mut request: Allocate = add("n1", pod, "web");
    request.interfaces[0].pools.ipv4.clear();
    request.interfaces[0].subnets = vec![name(subnet)];
    request.stickiness.controller = Some(controller());
    request.automatic_pool = Some(AutomaticPool { size: PoolSize::Fixed(2), replicas: 1, reclaim: true });
    Action::Allocate(request)
}

fn scale() -> Action {
    let (realm, namespace) = (name("default"), "shop".parse().unwrap());
    Action::ScaleController(ScaleController {
        realm,
        namespace,
        controller: controller(),
        replicas: 1,
        start: 0,
    })
}

fn end() -> Action {
    let (realm, namespace) = (name("default"), "shop".parse().unwrap());
    Action::EndController(EndController { realm, namespace, controller: controller() })
}

#[test]
fn a_node_makes_them_and_ends_those_that_it_alone_holds() {
    let mut world = World::new();
    world.run(admin(), team_subnet("10.77.0.0/28", "blue")).unwrap();
    assert_eq!(world.code(node("n1"), ask("pod/shop/a", "blue")), None);
    for action in [scale(), end()] {
        assert_eq!(world.code(node("n2"), action.clone()), Some(Code::Forbidden));
        assert_eq!(world.code(Terms::of(Grant::of(Role::Viewer)), action), Some(Code::Forbidden));
    }
    let elsewhere = Terms::of(Grant { realms: vec![name("prod")], ..Grant::of(Role::Operator) });
    assert_eq!(world.code(elsewhere, end()), Some(Code::Forbidden));
    assert_eq!(world.code(node("n1"), end()), None);
}

#[test]
fn a_token_of_labels_makes_and_ends_what_its_subnets_have() {
    let mut world = World::new();
    world.run(admin(), team_subnet("10.77.0.0/28", "blue")).unwrap();
    world.run(admin(), team_subnet("10.78.0.0/28", "red")).unwrap();
    let blue = || with_labels(Role::Operator, "team=blue");
    let pools = |world: &World| world.state.count(Kind::Pool);
    let before = pools(&world);
    assert_eq!(world.code(blue(), ask("pod/shop/a", "red")), Some(Code::Forbidden));
    assert_eq!(pools(&world), before, "refused, and not made");
    assert_eq!(world.code(blue(), ask("pod/shop/a", "blue")), None);
    assert_eq!(pools(&world), before + 1);
    // What is another team's isn't left, scaled or ended either.
    let red = || with_labels(Role::Operator, "team=red");
    assert_eq!(
        world.code(red(), ask("pod/shop/b", "red")),
        Some(Code::Forbidden),
        "it would leave the other"
    );
    assert_eq!(world.code(red(), scale()), Some(Code::Forbidden));
    assert_eq!(world.code(red(), end()), Some(Code::Forbidden));
    assert_eq!(pools(&world), before + 1);
    assert_eq!(world.code(blue(), scale()), None);
    assert_eq!(world.code(blue(), end()), None);
}
