//! Limits of automatic pools: the rules of their subnet, and the rights of the requesting node.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_api::limits::{AUTOMATIC_MAX_SIZE_DEFAULT, AUTOMATIC_POOLS_PER_NODE_MAX};
use ipam_api::resource::PoolSize;
use ipam_machine::command::{
    Allocate, AutomaticPool, AutomaticRules, Controller, EndController, Kind, PoolSpec, ScaleController, Text,
};
use ipam_machine::model::AutomaticStanding;
use ipam_machine::{Action, Grant, Terms};

use crate::access::world::{World, add, admin, attachment, del, labelled, name, node, subnet, with_labels};

fn controller(name: &str, uid: Option<&str>) -> Controller {
    Controller {
        group: Text::given("apps"),
        kind: Text::given("Deployment"),
        name: name.parse().unwrap(),
        uid: uid.map(Text::given),
    }
}

fn operator() -> Terms {
    Terms::of(Grant::of(Role::Operator))
}

/// A subnet with these rules.
fn ruled(name: &str, cidr: &str, rules: Option<AutomaticRules>) -> Action {
    let Action::PutSubnet(mut put) = subnet(name, cidr) else { unreachable!("it puts one") };
    put.spec.automatic = rules;
    Action::PutSubnet(put)
}

fn rules(ranges: &[&str], exclude: &[&str], max_size: Option<u32>) -> Option<AutomaticRules> {
    let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Some(AutomaticRules { ranges: parse(ranges), exclude: parse(exclude), max_size })
}

/// A pod of the application `web` asks on a node.
fn ask(on: &str, pod: &str, subnet: &str, size: u32) -> Allocate {
    let mut request = add(on, &format!("pod/shop/{pod}"), "web");
    request.interfaces[0].pools.ipv4.clear();
    request.interfaces[0].subnets = vec![name(subnet)];
    request.stickiness.controller = Some(controller("web", Some("u1")));
    request.automatic_pool = Some(AutomaticPool { size: PoolSize::Fixed(size), replicas: 1, reclaim: true });
    request
}

fn with(mut request: Allocate, change: impl FnOnce(&mut Allocate)) -> Action {
    change(&mut request);
    Action::Allocate(request)
}

fn end(application: &str) -> Action {
    Action::EndController(EndController {
        realm: name("default"),
        namespace: "shop".parse().unwrap(),
        controller: controller(application, None),
    })
}

fn scale(application: &str, replicas: u32) -> Action {
    Action::ScaleController(ScaleController {
        realm: name("default"),
        namespace: "shop".parse().unwrap(),
        controller: controller(application, None),
        replicas,
        start: 0,
    })
}

fn own(request: Allocate) -> Action {
    Action::Allocate(request)
}

/// The automatic pools of a subnet, the oldest first.
fn pools(world: &World, subnet: &str) -> Vec<PoolSpec> {
    let rows = world.state.pools.iter().map(|(_, row)| row);
    let rows = rows.filter(|row| row.automatic.is_some() && row.spec.subnet.as_str() == subnet);
    rows.map(|row| row.spec.clone()).collect()
}

fn ranges(world: &World, subnet: &str) -> Vec<String> {
    pools(world, subnet).iter().flat_map(|pool| pool.ranges.iter().map(ToString::to_string)).collect()
}

#[test]
fn a_subnet_gives_automatic_pools_what_its_rules_allow() {
    let mut world = World::new();
    let cidr = "10.77.0.0/24";
    world.run(admin(), ruled("own", cidr, None)).unwrap();
    let refusal = world.run(operator(), own(ask("n1", "a", "own", 2))).unwrap_err();
    assert_eq!(refusal.code(), Code::Forbidden);
    assert_eq!(refusal.detail(), "subnet own does not allow automatic pools");
    world
        .run(admin(), ruled("own", cidr, rules(&["10.77.0.8-10.77.0.15"], &["10.77.0.9"], Some(4))))
        .unwrap();
    let too_large = world.run(operator(), own(ask("n1", "a", "own", 5))).unwrap_err();
    assert_eq!(too_large.code(), Code::LimitExceeded);
    world.run(operator(), own(ask("n1", "a", "own", 2))).unwrap();
    assert_eq!(ranges(&world, "own"), ["10.77.0.8", "10.77.0.10"]);
    // It grows as far as its subnet says; what is there stays when the rules go, and shrinks.
    world.run(operator(), own(ask("n1", "b", "own", 6))).unwrap();
    assert_eq!(ranges(&world, "own"), ["10.77.0.8", "10.77.0.10-10.77.0.12"]);
    world.run(admin(), ruled("own", cidr, rules(&["10.77.0.200"], &[], Some(4)))).unwrap();
    world.run(operator(), own(ask("n1", "c", "own", 3))).unwrap();
    assert_eq!(ranges(&world, "own"), ["10.77.0.8", "10.77.0.10-10.77.0.11"]);
    world.run(admin(), ruled("own", cidr, None)).unwrap();
    assert_eq!(world.code(operator(), own(ask("n1", "d", "own", 4))), Some(Code::PoolExhausted));
    assert_eq!(ranges(&world, "own"), ["10.77.0.8", "10.77.0.10-10.77.0.11"], "it grows no more");
}

#[test]
fn rules_outside_their_subnet_are_refused() {
    let mut world = World::new();
    for (rules, code) in [
        (rules(&["10.78.0.1"], &[], None), Code::OutsideSubnet),
        (rules(&[], &["10.78.0.1"], None), Code::OutsideSubnet),
        (rules(&["2001:db8::1"], &[], None), Code::FamilyMismatch),
        (rules(&[], &[], Some(0)), Code::InvalidField),
        (rules(&[], &[], Some(65_537)), Code::LimitExceeded),
    ] {
        assert_eq!(world.code(admin(), ruled("own", "10.77.0.0/24", rules.clone())), Some(code), "{rules:?}");
    }
}

#[test]
fn red_team_a_node_makes_pools_without_end() {
    let mut world = World::new();
    world.run(admin(), ruled("own", "10.64.0.0/12", rules(&[], &[], None))).unwrap();
    let before = world.state.digest();
    let large = own(ask("n1", "a", "own", AUTOMATIC_MAX_SIZE_DEFAULT + 1));
    assert_eq!(world.code(node("n1"), large), Some(Code::LimitExceeded));
    let kept =
        with(ask("n1", "a", "own", 1), |request| request.automatic_pool.as_mut().unwrap().reclaim = false);
    assert_eq!(world.code(node("n1"), kept.clone()), Some(Code::Forbidden));
    assert_eq!(world.state.digest(), before);
    let of = |on: &str, number: usize| {
        with(ask(on, &format!("{on}-{number}"), "own", 1), |request| {
            request.stickiness.controller = Some(controller(&format!("{on}-app-{number}"), None));
        })
    };
    for number in 0..AUTOMATIC_POOLS_PER_NODE_MAX {
        assert_eq!(world.code(node("n1"), of("n1", number)), None, "{number}");
    }
    let before = world.state.digest();
    let more = of("n1", AUTOMATIC_POOLS_PER_NODE_MAX);
    assert_eq!(world.code(node("n1"), more.clone()), Some(Code::LimitExceeded));
    assert_eq!(world.state.digest(), before);
    // Neither another node nor an operator is bound by that; and what ends makes room.
    assert_eq!(world.code(node("n2"), of("n2", 0)), None);
    assert_eq!(world.code(operator(), kept), None);
    world.run(node("n1"), del("n1", "n1-0")).unwrap();
    world.run(operator(), end("n1-app-0")).unwrap();
    assert_eq!(world.code(node("n1"), more), None);
}

#[test]
fn red_team_a_node_names_the_application_of_others() {
    let mut world = World::new();
    for (name, cidr) in [("own", "10.77.0.0/24"), ("other", "10.78.0.0/24")] {
        world.run(admin(), ruled(name, cidr, rules(&[], &[], None))).unwrap();
    }
    world.run(node("n1"), own(ask("n1", "a", "own", 4))).unwrap();
    let row = |world: &World| {
        let mut rows = world.state.pools.iter().map(|(_, row)| row);
        rows.find(|row| row.automatic.is_some() && row.spec.subnet.as_str() == "own").cloned().unwrap()
    };
    let before = row(&world);
    // Another subnet, fewer addresses, another incarnation: each is given an address, and the pool stays.
    world.run(node("n2"), own(ask("n2", "b", "other", 1))).unwrap();
    assert_eq!(row(&world), before);
    let smaller = with(ask("n2", "c", "own", 1), |request| {
        request.stickiness.controller = Some(controller("web", Some("stolen")));
        request.automatic_pool =
            Some(AutomaticPool { size: PoolSize::Fixed(1), replicas: 0, reclaim: false });
    });
    world.run(node("n2"), smaller).unwrap();
    assert_eq!(row(&world), before);
    for action in [end("web"), scale("web", 0)] {
        assert_eq!(world.code(node("n2"), action), Some(Code::Forbidden));
    }
    // It may have more, as an ADD may, and an operator decides everything.
    world.run(node("n2"), own(ask("n2", "d", "own", 6))).unwrap();
    assert_eq!(ranges(&world, "own"), ["10.77.0.1-10.77.0.6"]);
    world.run(operator(), own(ask("n2", "e", "other", 2))).unwrap();
    assert_eq!(row(&world).automatic.unwrap().standing, AutomaticStanding::Elsewhere);
}

#[test]
fn a_node_moves_an_application_that_is_all_on_it() {
    let mut world = World::new();
    for (name, cidr) in [("own", "10.77.0.0/24"), ("other", "10.78.0.0/24")] {
        world.run(admin(), ruled(name, cidr, rules(&[], &[], None))).unwrap();
    }
    world.run(node("n1"), own(ask("n1", "a", "own", 4))).unwrap();
    world.run(node("n1"), own(ask("n1", "b", "own", 2))).unwrap();
    assert_eq!(ranges(&world, "own"), ["10.77.0.1-10.77.0.2"], "it shrinks");
    world.run(node("n1"), own(ask("n1", "c", "other", 2))).unwrap();
    assert!(pools(&world, "own")[0].terminating, "it leaves");
    for pod in ["a", "b"] {
        world.run(node("n1"), del("n1", pod)).unwrap();
    }
    assert!(pools(&world, "own").is_empty());
    assert_eq!(world.state.count(Kind::Pool), 3);
}

#[test]
fn red_team_a_node_drops_the_empty_pool_that_others_come_back_to() {
    let mut world = World::new();
    for (name, cidr) in [("own", "10.77.0.0/24"), ("other", "10.78.0.0/24")] {
        world.run(admin(), ruled(name, cidr, rules(&[], &[], None))).unwrap();
    }
    world.run(node("n1"), own(ask("n1", "a", "own", 4))).unwrap();
    world.run(node("n1"), del("n1", "a")).unwrap();
    world.run(node("n2"), own(ask("n2", "b", "other", 1))).unwrap();
    assert_eq!(ranges(&world, "own"), ["10.77.0.1-10.77.0.4"]);
    // The node that made it may.
    world.run(node("n1"), own(ask("n1", "c", "other", 2))).unwrap();
    assert!(pools(&world, "own").is_empty());
}

/// An interface that has addresses already gets none from the pool that the request would make for it.
#[test]
fn a_limited_operator_makes_no_pool_in_a_subnet_of_others() {
    let mut world = World::new();
    for (subnet, cidr, team) in [("ours", "10.77.0.0/24", "web"), ("theirs", "10.78.0.0/24", "db")] {
        let Action::PutSubnet(mut put) = ruled(subnet, cidr, rules(&[], &[], None)) else { unreachable!() };
        put.spec.metadata = labelled(&[("team", team)]);
        world.run(admin(), Action::PutSubnet(put)).unwrap();
    }
    let web = || with_labels(Role::Operator, "team=web");
    let second = "eth1".parse().unwrap();
    let first_add = with(ask("n1", "a", "ours", 2), |request| {
        request.interfaces[0].name = Clone::clone(&second);
        request.attachment.as_mut().unwrap().interface = Clone::clone(&second);
    });
    let second_add = |subnet: &str| {
        with(ask("n1", "a", "ours", 2), |request| {
            let mut known = request.interfaces[0].clone();
            known.name = Clone::clone(&second);
            known.subnets = vec![name(subnet)];
            request.interfaces.push(known);
        })
    };
    world.run(web(), first_add).unwrap();
    assert_eq!(world.code(web(), second_add("theirs")), Some(Code::Forbidden));
    assert_eq!(pools(&world, "theirs"), []);
    world.run(web(), second_add("ours")).unwrap();
}

#[test]
fn the_node_with_the_last_allocation_scales_and_ends_its_application() {
    let mut world = World::new();
    world.run(admin(), ruled("own", "10.77.0.0/24", rules(&[], &[], None))).unwrap();
    let two_each = |on: &str, pod: &str| {
        with(ask(on, pod, "own", 1), |request| {
            request.automatic_pool =
                Some(AutomaticPool { size: PoolSize::Flexible(1), replicas: 3, reclaim: true });
        })
    };
    world.run(node("n1"), two_each("n1", "a")).unwrap();
    world.run(node("n2"), two_each("n2", "b")).unwrap();
    assert_eq!(ranges(&world, "own"), ["10.77.0.1-10.77.0.4"]);
    for on in ["n1", "n2", "n3"] {
        for action in [scale("web", 1), end("web")] {
            assert_eq!(world.code(node(on), action), Some(Code::Forbidden), "{on}: two nodes hold addresses");
        }
    }
    world.run(node("n2"), del("n2", "b")).unwrap();
    for action in [scale("web", 1), end("web")] {
        assert_eq!(world.code(node("n2"), action), Some(Code::Forbidden), "the other node holds the last");
    }
    world.run(node("n1"), scale("web", 1)).unwrap();
    assert_eq!(ranges(&world, "own"), ["10.77.0.1-10.77.0.2"], "the pool follows the replicas");
    world.run(node("n1"), end("web")).unwrap();
    assert!(pools(&world, "own")[0].terminating);
    world.run(node("n1"), del("n1", "a")).unwrap();
    assert_eq!(pools(&world, "own"), []);
    // Without an allocation no node has the last one.
    assert_eq!(world.code(node("n1"), end("web")), Some(Code::Forbidden));
}

#[test]
fn red_team_a_node_ends_an_application_with_kept_addresses() {
    let mut world = World::new();
    let member = |on: &str, pod: &str| {
        with(add(on, &format!("pod/shop/{pod}"), "web"), |request| {
            request.stickiness.controller =
                Some(Controller { kind: Text::given("StatefulSet"), ..controller("db", None) });
        })
    };
    let kind = |action: Action| match action {
        Action::EndController(mut end) => {
            end.controller.kind = Text::given("StatefulSet");
            Action::EndController(end)
        }
        other => other,
    };
    world.run(node("n1"), member("n1", "db-0")).unwrap();
    world.run(node("n1"), member("n1", "db-1")).unwrap();
    world.run(node("n1"), del("n1", "db-1")).unwrap();
    let before = world.state.digest();
    assert_eq!(world.code(node("n1"), kind(end("db"))), Some(Code::Forbidden), "db-1 keeps its address");
    assert_eq!(world.state.digest(), before);
    let Action::Allocate(mut back) = member("n1", "db-1") else { unreachable!() };
    back.attachment = Some(attachment("n1", "again"));
    world.run(node("n1"), Action::Allocate(back)).unwrap();
    world.run(node("n1"), kind(end("db"))).unwrap();
    world.run(node("n1"), del("n1", "again")).unwrap();
    assert_eq!(world.state.allocations.iter().count(), 1, "its address is kept no longer");
}
