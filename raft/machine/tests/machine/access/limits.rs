//! Limits by labels and realms hold for everything that a write affects.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_api::node_report::Inventory;
use ipam_machine::command::{
    AgentReadiness, ConfirmEpoch, Expect, Heartbeat, Kind, Link, Metadata, NamespaceSpec, PoolSpec, Put,
    Quota, ReportProbes, ReportedBoot, ReservationSpec, SplitPool, SubnetSpec, Text, Transaction,
};
use ipam_machine::{Action, Grant, Terms};

use crate::access::world::{
    World, add, admin, delete, labelled, name, network, node, node_key, pool, put_in_realm, reservation,
    subnet, with_labels,
};

const FORBIDDEN: Option<Code> = Some(Code::Forbidden);

fn web() -> Terms {
    with_labels(Role::Operator, "team=web")
}

fn team(team: &str) -> Metadata {
    labelled(&[("team", team)])
}

fn reserve(name: &str, range: &str, metadata: Metadata) -> Action {
    let Action::PutReservation(put) = reservation(name) else { unreachable!("it puts one") };
    let spec = ReservationSpec { addresses: vec![range.parse().unwrap()], metadata, ..put.spec };
    Action::PutReservation(Put { spec, ..put })
}

fn with_subnet(action: Action, change: impl FnOnce(&mut SubnetSpec)) -> Action {
    let Action::PutSubnet(mut put) = action else { unreachable!("it puts one") };
    change(&mut put.spec);
    Action::PutSubnet(put)
}

fn with_pool(action: Action, change: impl FnOnce(&mut PoolSpec)) -> Action {
    let Action::PutPool(mut put) = action else { unreachable!("it puts one") };
    change(&mut put.spec);
    Action::PutPool(put)
}

fn labelled_network(name: &str, metadata: Metadata) -> Action {
    let Action::PutNetwork(mut put) = network(name) else { unreachable!("it puts one") };
    put.spec.metadata = metadata;
    Action::PutNetwork(put)
}

/// A network and a subnet of the team, beside the subnet `lan` that is none of theirs.
fn world() -> World {
    let mut world = World::new();
    for action in [
        labelled_network("web-net", team("web")),
        with_subnet(subnet("web-lan", "10.1.0.0/24"), |subnet| {
            subnet.network = name("web-net");
            subnet.metadata = team("web");
        }),
        with_subnet(subnet("shared-lan", "10.2.0.0/24"), |subnet| subnet.metadata = team("web")),
    ] {
        world.run(admin(), action).unwrap();
    }
    world
}

/// Refused, with nothing changed, alone and as a step.
fn refused(world: &mut World, terms: &Terms, action: Action) {
    let before = world.state.digest();
    let outcome = world.run(terms.clone(), action.clone());
    assert_eq!(outcome.err().map(|refusal| refusal.code()), FORBIDDEN, "{action:?}");
    let steps = vec![action.clone()];
    let wrapped = Action::Transaction(Transaction { preconditions: Vec::new(), steps });
    assert_eq!(world.code(terms.clone(), wrapped), FORBIDDEN, "{action:?} in a transaction");
    assert_eq!(world.state.digest(), before, "{action:?}");
}

#[test]
fn red_team_a_label_reserves_addresses_of_foreign_pools() {
    let mut world = world();
    for range in ["10.0.0.0/24", "10.0.0.10-10.0.0.20", "10.0.0.25", "10.0.0.0-10.0.0.12", "0.0.0.0/1"] {
        refused(&mut world, &web(), reserve("attack", range, team("web")));
    }
    // Addresses of no pool in a foreign subnet, and of no subnet in a foreign network.
    refused(&mut world, &web(), reserve("attack", "10.0.0.100", team("web")));
    refused(&mut world, &web(), reserve("attack", "10.9.0.0/24", team("web")));
    let given = world.run(admin(), Action::Allocate(add("n1", "pod/web/a", "db")));
    assert!(given.is_ok(), "{given:?}");
}

#[test]
fn a_label_reserves_addresses_of_its_pools_and_subnets() {
    let mut world = world();
    for range in ["10.0.0.12", "10.0.0.10-10.0.0.19", "10.2.0.0/24"] {
        assert_eq!(world.code(web(), reserve("own", range, team("web"))), None, "{range}");
    }
    refused(&mut world, &web(), reserve("own", "10.2.0.0/24", team("db")));
    assert_eq!(world.code(web(), delete(Kind::Reservation, "own")), None);
}

#[test]
fn a_label_neither_moves_nor_deletes_reservations_of_foreign_addresses() {
    let mut world = world();
    world.run(admin(), reserve("gift", "10.0.0.15-10.0.0.25", team("web"))).unwrap();
    refused(&mut world, &web(), delete(Kind::Reservation, "gift"));
    refused(&mut world, &web(), reserve("gift", "10.0.0.15", team("web")));
    refused(&mut world, &web(), reserve("gift", "10.0.0.16-10.0.0.26", team("web")));
    // What stays reserved is not affected.
    assert_eq!(world.code(web(), reserve("gift", "10.0.0.16-10.0.0.25", team("web"))), None);
}

#[test]
fn a_label_makes_and_widens_pools_inside_its_subnets_only() {
    let mut world = world();
    refused(&mut world, &web(), pool("new", "lan", "10.0.0.100", team("web")));
    assert_eq!(world.code(web(), pool("new", "shared-lan", "10.2.0.100", team("web"))), None);
    refused(&mut world, &web(), pool("web", "lan", "10.0.0.10-10.0.0.30", team("web")));
    refused(&mut world, &web(), pool("web", "lan", "10.0.0.30-10.0.0.31", team("web")));
    let excluding = with_pool(pool("web", "lan", "10.0.0.0/24", team("web")), |pool| {
        pool.exclude = vec!["10.0.0.0-10.0.0.9".parse().unwrap(), "10.0.0.20-10.0.0.255".parse().unwrap()];
    });
    refused(&mut world, &web(), excluding);
    let gateway = with_pool(pool("web", "lan", "10.0.0.10-10.0.0.19", team("web")), |pool| {
        pool.gateway = Some("10.0.0.200".parse().unwrap());
    });
    refused(&mut world, &web(), gateway);
    // Its own may shrink, and be described.
    assert_eq!(world.code(web(), pool("web", "lan", "10.0.0.10-10.0.0.15", team("web"))), None);
    let (from, into) = (name("web"), name("web-2"));
    let ranges = vec!["10.0.0.10".parse().unwrap()];
    let split = Action::SplitPool(SplitPool { name: from, into, ranges, expect: Expect::Anything });
    refused(&mut world, &web(), split);
}

#[test]
fn a_label_drains_from_and_to_its_own_pools_only() {
    let mut world = world();
    let drain = |to: Option<&str>| {
        with_pool(pool("web", "lan", "10.0.0.10-10.0.0.19", team("web")), |pool| {
            pool.drains_to = to.map(name);
        })
    };
    refused(&mut world, &web(), drain(Some("db")));
    world.run(admin(), drain(Some("db"))).unwrap();
    refused(&mut world, &web(), drain(None));
    world.run(admin(), drain(None)).unwrap();
    world.run(admin(), pool("web-2", "lan", "10.0.0.40", team("web"))).unwrap();
    assert_eq!(world.code(web(), drain(Some("web-2"))), None);
}

#[test]
fn a_label_writes_subnets_inside_its_networks_only() {
    let mut world = world();
    let own = |change: fn(&mut SubnetSpec)| {
        with_subnet(subnet("web-lan", "10.1.0.0/24"), |subnet| {
            (subnet.network, subnet.metadata) = (name("web-net"), team("web"));
            change(subnet);
        })
    };
    assert_eq!(world.code(web(), own(|subnet| subnet.gateway = Some("10.1.0.1".parse().unwrap()))), None);
    refused(&mut world, &web(), own(|subnet| subnet.metadata = team("db")));
    let foreign = with_subnet(subnet("new", "10.7.0.0/24"), |subnet| subnet.metadata = team("web"));
    refused(&mut world, &web(), foreign);
    let rerouted = with_subnet(subnet("shared-lan", "10.2.0.0/24"), |subnet| {
        (subnet.gateway, subnet.metadata) = (Some("10.2.0.1".parse().unwrap()), team("web"));
    });
    refused(&mut world, &web(), rerouted);
    refused(&mut world, &web(), delete(Kind::Subnet, "shared-lan"));
    refused(&mut world, &web(), delete(Kind::Subnet, "lan"));
    // Hosts of a foreign pool would be told something else.
    let guest = pool("guest", "web-lan", "10.1.0.100", team("db"));
    world.run(admin(), guest).unwrap();
    refused(&mut world, &web(), own(|subnet| subnet.mtu = Some(1400)));
    world.run(admin(), delete(Kind::Pool, "guest")).unwrap();
    assert_eq!(world.code(web(), delete(Kind::Subnet, "web-lan")), None);
    assert_eq!(world.code(web(), delete(Kind::Network, "web-net")), None);
}

#[test]
fn a_label_changes_of_nodes_and_namespaces_what_concerns_nothing_else() {
    let mut world = world();
    let namespace = |change: &dyn Fn(&mut NamespaceSpec)| {
        let Action::PutNamespace(mut put) = put_in_realm(Kind::Namespace, "shop") else {
            unreachable!("it puts one")
        };
        put.spec.metadata = team("web");
        change(&mut put.spec);
        Action::PutNamespace(put)
    };
    refused(&mut world, &web(), namespace(&|_| ()));
    world.run(admin(), namespace(&|_| ())).unwrap();
    let pools = |names: &'static str| {
        move |namespace: &mut NamespaceSpec| {
            namespace.default_pools.ipv4 = vec![names.parse().unwrap()];
        }
    };
    assert_eq!(world.code(web(), namespace(&pools("web"))), None);
    for names in ["db", "d*", "later"] {
        refused(&mut world, &web(), namespace(&pools(names)));
    }
    let quota = |namespace: &mut NamespaceSpec| {
        let mut quota = Quota::default();
        quota.whole.ipv4 = Some(0);
        namespace.quota = quota;
    };
    refused(&mut world, &web(), namespace(&quota));
    let relabelled = |namespace: &mut NamespaceSpec| {
        namespace.metadata = labelled(&[("team", "web"), ("zone", "db")]);
    };
    refused(&mut world, &web(), namespace(&relabelled));
    refused(&mut world, &web(), delete(Kind::Namespace, "default/shop"));
    let described = |namespace: &mut NamespaceSpec| {
        namespace.metadata.description = Text::given("the shop");
    };
    assert_eq!(world.code(web(), namespace(&described)), None);
    refused(&mut world, &web(), put_in_realm(Kind::Node, "n1"));
}

#[test]
fn red_team_a_realm_writes_what_realms_share() {
    let mut world = World::new();
    let prod = Grant { realms: vec![name("prod")], ..Grant::of(Role::Operator) };
    let shared = Terms::of(Grant { allow_shared: true, ..prod.clone() });
    world.run(admin(), reservation("kept")).unwrap();
    for action in [
        delete(Kind::Pool, "web"),
        pool("new", "lan", "10.0.0.100", Metadata::default()),
        pool("db", "lan", "10.0.0.20-10.0.0.22", Metadata::default()),
        Action::SplitPool(SplitPool {
            name: name("db"),
            into: name("db-2"),
            ranges: vec!["10.0.0.20".parse().unwrap()],
            expect: Expect::Anything,
        }),
        subnet("new", "10.8.0.0/24"),
        network("new"),
        reservation("new"),
        delete(Kind::Reservation, "kept"),
    ] {
        refused(&mut world, &Terms::of(prod.clone()), action.clone());
        assert_eq!(world.code(shared.clone(), action.clone()), None, "{action:?}");
    }
    // Its own realm's nodes and namespaces take no grant; those of another are none of its.
    let in_realm = |realm: &str| {
        let Action::PutNamespace(mut put) = put_in_realm(Kind::Namespace, "shop") else {
            unreachable!("it puts one")
        };
        put.spec.realm = name(realm);
        Action::PutNamespace(put)
    };
    assert_eq!(world.code(Terms::of(prod.clone()), in_realm("prod")), None);
    refused(&mut world, &shared, in_realm("default"));
}

#[test]
fn limited_administrators_leave_the_cluster_alone() {
    let mut world = World::new();
    let realm = Grant { realms: vec![name("prod")], allow_shared: true, ..Grant::of(Role::Admin) };
    let label = Grant { labels: "team=web".parse().unwrap(), ..Grant::of(Role::Admin) };
    for grant in [realm, label] {
        for action in [
            Action::RaiseLevel { level: 1 },
            Action::Expire,
            Action::SealJournal,
            Action::TrimJournal { through: 0 },
            Action::ConfirmEpoch(ConfirmEpoch { epoch: 0, pools: None }),
            Action::ConfirmEpoch(ConfirmEpoch { epoch: 0, pools: Some(vec![name("web")]) }),
        ] {
            assert_eq!(world.code(Terms::of(grant.clone()), action.clone()), FORBIDDEN, "{action:?}");
        }
    }
}

/// Results and links concern addresses of all pools and realms.
#[test]
fn limited_operators_report_no_probes_and_no_links() {
    let mut world = world();
    let realm = || Terms::of(Grant { realms: vec![name("default")], ..Grant::of(Role::Operator) });
    let results = Vec::new();
    let report = Action::ReportProbes(ReportProbes { node: node_key("n1"), results });
    let heartbeat = |links: Vec<Link>| {
        Action::Heartbeat(Heartbeat {
            node: node_key("n1"),
            boot: ReportedBoot { id: Text::given("boot"), number: 1 },
            readiness: AgentReadiness { ready: true, problem: None },
            agent_version: Text::given("1.0"),
            links,
            inventory: Inventory::default(),
        })
    };
    let links = vec![Link { network: name("default"), cidr: "10.0.0.0/24".parse().unwrap() }];
    for limited in [web(), realm()] {
        assert_eq!(world.code(limited.clone(), report.clone()), FORBIDDEN);
        assert_eq!(world.code(limited, heartbeat(links.clone())), FORBIDDEN);
    }
    assert_eq!(world.code(realm(), heartbeat(Vec::new())), None);
    for all in [admin(), Terms::of(Grant::of(Role::Operator)), node("n1")] {
        assert_eq!(world.code(all.clone(), heartbeat(links.clone())), None);
        assert_eq!(world.code(all, report.clone()), None);
    }
}
