//! The complete table of roles: permitted actions are done, others are refused without a change.

use crate::access::world::{
    World, add, delete, hold, host_policy, name, network, pool, put_in_realm, reservation, subnet, token,
    with_labels,
};
use ipam_api::Code;
use ipam_api::access::{DEEDS, Role, Target, Verb, may};
use ipam_api::node_report::Inventory;
use ipam_machine::command::{
    AgentReadiness, AllocateMany, Controller, EndController, EndIncarnation, EndQuarantine, Expect,
    Heartbeat, Kind, Link, Metadata, PrefixSource, ProbeResult, Probing, Purpose, Reclaim, ReclaimReason,
    ReleaseOrphans, ReportPods, ReportProbes, ReportedBoot, ScaleController, SetPrefixes, Text, Transaction,
};
use ipam_machine::{Action, Grant, Outcome, Terms};

/// One action of each permission that goes through the log, possible in a fresh world.
fn actions(world: &mut World) -> Vec<Action> {
    let held = world.run(crate::access::world::admin(), Action::Allocate(add("n1", "pod/web/held", "web")));
    let id = crate::access::world::ids(&held)[0];
    let other = world.run(crate::access::world::admin(), Action::Allocate(add("n1", "pod/web/other", "web")));
    other.unwrap();
    world.run(crate::access::world::admin(), Action::Allocate(hold(None, "host/n1", "web"))).unwrap();
    // The application that ends below: all that it holds is on the node.
    let mut member = add("n1", "pod/web/a-0", "web");
    member.stickiness.controller = Some(application());
    world.run(crate::access::world::admin(), Action::Allocate(member)).unwrap();
    quarantine(world);
    for action in [network("gone"), subnet("gone", "10.9.0.0/24"), reservation("gone")] {
        world.run(crate::access::world::admin(), action).unwrap();
    }
    world.run(crate::access::world::admin(), host_policy("gone", "default")).unwrap();
    for kind in [Kind::Node, Kind::Namespace] {
        world.run(crate::access::world::admin(), put_in_realm(kind, "gone")).unwrap();
    }
    world.run(crate::access::world::admin(), pool("gone", "lan", "10.0.0.100", Metadata::default())).unwrap();
    let old = token("old", Purpose::Bearer, Grant::of(Role::Viewer), None);
    world.run(crate::access::world::admin(), Action::CreateToken(old)).unwrap();
    let held = crate::access::prefixes::delegated(world, crate::access::prefixes::from_pool("held", 32));
    vec![
        crate::access::prefixes::from_pool("new", 32),
        Action::ReleasePrefix { id: held.into() },
        network("new"),
        subnet("new", "10.8.0.0/24"),
        pool("new", "lan", "10.0.0.101", Metadata::default()),
        reservation("new"),
        host_policy("new", "default"),
        delete(Kind::HostPolicy, "gone"),
        delete(Kind::Network, "gone"),
        delete(Kind::Subnet, "gone"),
        delete(Kind::Pool, "gone"),
        delete(Kind::Reservation, "gone"),
        delete(Kind::Token, "old"),
        put_in_realm(Kind::Node, "new"),
        put_in_realm(Kind::Namespace, "new"),
        delete(Kind::Node, "default/gone"),
        delete(Kind::Namespace, "default/gone"),
        Action::Allocate(add("n1", "pod/web/new", "web")),
        Action::ReleaseAllocation { id: id.into() },
        Action::AllocateMany(Box::new(AllocateMany {
            request: hold(Some("n1"), "pod/web/many", "web"),
            others: vec!["more".parse().unwrap()],
        })),
        Action::ReleaseAllocations { ids: vec![id.into()] },
        Action::ReleaseEndpoint { key: "host/n1".parse().unwrap() },
        Action::ScaleController(ScaleController {
            realm: ipam_api::Name::default_name(),
            namespace: "web".parse().unwrap(),
            controller: application(),
            replicas: 0,
            start: 0,
        }),
        Action::EndController(EndController {
            realm: ipam_api::Name::default_name(),
            namespace: "web".parse().unwrap(),
            controller: application(),
        }),
        crate::access::world::del("n1", "other"),
        Action::CreateToken(token("new", Purpose::Bearer, Grant::of(Role::Viewer), None)),
        Action::RotateToken { name: "old".parse().unwrap(), secret_hash: [1; 32], expect: Expect::Anything },
        Action::Heartbeat(Heartbeat {
            node: crate::access::world::node_key("n1"),
            boot: ReportedBoot { id: Text::given("boot"), number: 1 },
            readiness: AgentReadiness { ready: true, problem: None },
            agent_version: Text::given("1.0"),
            links: Vec::new(),
            inventory: Inventory::default(),
        }),
        Action::ReleaseOrphans(ReleaseOrphans {
            node: crate::access::world::node_key("n1"),
            orphans: Vec::new(),
        }),
        Action::ReportProbes(ReportProbes {
            node: crate::access::world::node_key("n1"),
            results: Vec::new(),
        }),
        Action::EndQuarantine(EndQuarantine {
            network: ipam_api::Name::default_name(),
            address: QUARANTINED.parse().unwrap(),
        }),
        Action::Reclaim(Reclaim {
            node: crate::access::world::node_key("gone"),
            reason: ReclaimReason::NodeGone,
            allocations: Vec::new(),
        }),
        Action::EndIncarnation(EndIncarnation {
            endpoint: "host/n1".parse().unwrap(),
            uid: Text::given("u1"),
            allocations: Vec::new(),
        }),
        Action::ReportPods(ReportPods {
            realm: ipam_api::Name::default_name(),
            pods: Vec::new(),
            gone: Vec::new(),
            complete: false,
        }),
        Action::SetPrefixes(SetPrefixes {
            from: PrefixSource::Pool("web".parse().unwrap()),
            realm: ipam_api::Name::default_name(),
            prefixes: Vec::new(),
        }),
        Action::Expire,
        Action::RaiseLevel { level: 1 },
    ]
}

const QUARANTINED: &str = "10.0.0.90";

/// A foreign host uses an address of a pool of its own.
fn quarantine(world: &mut World) {
    let node = crate::access::world::node_key("n1");
    let link = Link { network: ipam_api::Name::default_name(), cidr: "10.0.0.0/24".parse().unwrap() };
    let heartbeat = Action::Heartbeat(Heartbeat {
        node: node.clone(),
        boot: ReportedBoot { id: Text::given("boot"), number: 1 },
        readiness: AgentReadiness { ready: true, problem: None },
        agent_version: Text::given("1.0"),
        links: vec![link],
        inventory: Inventory::default(),
    });
    let probing = Probing { conflicts: Some(true), ..Probing::default() };
    let Action::PutPool(mut put) = pool("probed", "lan", QUARANTINED, Metadata::default()) else {
        unreachable!()
    };
    put.spec.probing = probing;
    let result = ProbeResult {
        network: ipam_api::Name::default_name(),
        address: QUARANTINED.parse().unwrap(),
        macs: vec!["02:00:00:00:00:09".parse().unwrap()],
        allocation: None,
    };
    let report = Action::ReportProbes(ReportProbes { node, results: vec![result] });
    for action in [heartbeat, Action::PutPool(put), report] {
        world.run(crate::access::world::admin(), action).unwrap();
    }
    assert_eq!(world.state.quarantines.len(), 1);
}

fn application() -> Controller {
    Controller {
        group: Text::given("apps"),
        kind: Text::given("StatefulSet"),
        name: "a".parse().unwrap(),
        uid: None,
    }
}

fn grant_of(role: Role) -> Grant {
    match role {
        Role::Node => Grant::of_node(crate::access::world::node_key("n1")),
        role => Grant::of(role),
    }
}

#[test]
fn every_role_may_do_what_the_table_says_and_nothing_else() {
    let mut deeds = Vec::new();
    for role in Role::ALL {
        let count = actions(&mut World::new()).len();
        for number in 0..count {
            let mut world = World::new();
            let action = actions(&mut world).swap_remove(number);
            let (verb, target) = action.permission().unwrap();
            deeds.push((verb, target));
            let before = world.state.clone();
            let outcome = world.run(Terms::of(grant_of(role)), action.clone());
            if may(role, verb, target) {
                assert!(outcome.is_ok(), "{role} {verb} {target}: {outcome:?}");
            } else {
                let refusal = outcome.unwrap_err();
                assert_eq!(refusal.code(), Code::Forbidden, "{role} {verb} {target}: {refusal:?}");
                assert_eq!(world.state.digest(), before.digest(), "{role} {verb} {target}");
                // Wrapped into a transaction it isn't allowed either. The level is raised by an entry of its
                // own.
                if matches!(action, Action::RaiseLevel { .. }) {
                    continue;
                }
                let steps = vec![action];
                let wrapped = Action::Transaction(Transaction { preconditions: Vec::new(), steps });
                let code = world.code(Terms::of(grant_of(role)), wrapped);
                assert_eq!(code, Some(Code::Forbidden), "{role} {verb} {target} in a transaction");
            }
        }
    }
    for (verb, target) in DEEDS {
        // A token is renewed by itself: see the tests of tokens of nodes.
        assert!(
            matches!(verb, Verb::Read | Verb::Renew) || deeds.contains(&(*verb, *target)),
            "{verb} {target} was not tried"
        );
    }
}

#[test]
fn a_role_that_may_write_may_read() {
    for role in [Role::Operator, Role::Admin] {
        for (verb, target) in DEEDS {
            if *verb != Verb::Read && may(role, *verb, *target) && *target != Target::Event {
                assert!(may(role, Verb::Read, *target), "{role} {verb} {target}");
            }
        }
    }
}

#[test]
fn labels_limit_what_is_changed_and_what_is_taken_from() {
    let mut world = World::new();
    let web = || with_labels(Role::Operator, "team=web");
    let labelled = |team: &str| crate::access::world::labelled(&[("team", team)]);
    let refused = |code: Option<Code>| assert_eq!(code, Some(Code::Forbidden));
    // Its own pool, another's, another's with its own label written on it, its own with the label taken off.
    assert_eq!(world.code(web(), pool("web", "lan", "10.0.0.10-10.0.0.15", labelled("web"))), None);
    refused(world.code(web(), pool("db", "lan", "10.0.0.20-10.0.0.25", labelled("db"))));
    refused(world.code(web(), pool("db", "lan", "10.0.0.20-10.0.0.25", labelled("web"))));
    refused(world.code(web(), pool("web", "lan", "10.0.0.10-10.0.0.15", Metadata::default())));
    refused(world.code(web(), delete(Kind::Pool, "db")));
    refused(world.code(web(), network("blue")));
    // Addresses.
    let own = world.run(web(), Action::Allocate(add("n1", "pod/web/a", "web")));
    assert!(own.is_ok());
    refused(world.code(web(), Action::Allocate(add("n1", "pod/web/b", "db"))));
    let foreign = world.run(crate::access::world::admin(), Action::Allocate(add("n1", "pod/web/c", "db")));
    refused(
        world.code(web(), Action::ReleaseAllocation { id: crate::access::world::ids(&foreign)[0].into() }),
    );
    refused(world.code(web(), Action::ReleaseEndpoint { key: "pod/web/c".parse().unwrap() }));
    refused(world.code(web(), crate::access::world::del("n1", "c")));
    assert_eq!(world.code(web(), crate::access::world::del("n1", "a")), None);
}

#[test]
fn a_token_of_a_realm_writes_host_policies_of_that_realm_only() {
    let mut world = World::new();
    let of = |realm: &str| Terms::of(Grant { realms: vec![name(realm)], ..Grant::of(Role::Operator) });
    let code = |outcome: Outcome| outcome.err().map(|refusal| refusal.code());
    assert_eq!(code(world.run(of("prod"), host_policy("static-ip", "default"))), Some(Code::Forbidden));
    assert_eq!(code(world.run(of("prod"), host_policy("static-ip", "prod"))), None);
    // The name leads to a policy of another realm.
    assert_eq!(code(world.run(of("default"), host_policy("static-ip", "default"))), Some(Code::Forbidden));
    assert_eq!(code(world.run(of("default"), delete(Kind::HostPolicy, "static-ip"))), Some(Code::Forbidden));
    assert_eq!(code(world.run(of("prod"), delete(Kind::HostPolicy, "static-ip"))), None);
}

#[test]
fn realms_limit_whose_endpoints_are_touched() {
    let mut world = World::new();
    let grant = Grant { realms: vec!["prod".parse().unwrap()], ..Grant::of(Role::Operator) };
    let prod = || Terms::of(grant.clone());
    let hold = |endpoint: &str| Action::Allocate(hold(None, endpoint, "web"));
    assert_eq!(world.code(prod(), hold("pod/prod/web/a")), None);
    assert_eq!(world.code(prod(), hold("pod/test/web/a")), Some(Code::Forbidden));
    let foreign = world.run(crate::access::world::admin(), hold("pod/test/web/a"));
    let id = crate::access::world::ids(&foreign)[0];
    assert_eq!(world.code(prod(), Action::ReleaseAllocation { id: id.into() }), Some(Code::Forbidden));
    // Of several allocations none is released if one of them is another realm's.
    let own = world.run(prod(), hold("pod/prod/web/b"));
    let own = crate::access::world::ids(&own)[0];
    let refused = world.run(prod(), Action::ReleaseAllocations { ids: vec![own.into(), id.into()] });
    let refusal = refused.unwrap_err();
    assert_eq!((refusal.code(), refusal.step), (Code::Forbidden, Some(1)));
    assert!(world.state.allocations.get(own.into()).is_some(), "released before the refusal");
    assert_eq!(world.code(prod(), Action::ReleaseAllocations { ids: vec![own.into()] }), None);
    let key = "pod/test/web/a".parse().unwrap();
    assert_eq!(world.code(prod(), Action::ReleaseEndpoint { key }), Some(Code::Forbidden));
    assert_eq!(
        world.code(prod(), crate::access::world::del("n1", "a")),
        Some(Code::Forbidden),
        "realm default"
    );
    let key = "pod/prod/web/a".parse().unwrap();
    assert_eq!(world.code(prod(), Action::ReleaseEndpoint { key }), None);
}
