//! Rows that contradict each other stop the machine, with the name of the invariant.

use ipam_machine::command::{Allocate, Kind, PrefixSource};
use ipam_machine::model::{Allocation, Endpoint, Pool, Prefix, Source, Subnet};
use ipam_machine::{Action, Broken, Id, invariant};

use crate::access::prefixes::{delegate, delegated, from_pool};
use crate::access::world::{World, admin, hold, ids, labelled, network, node_key, pool, subnet};

/// Gives an address, lets `spoil` change the rows, and takes the address back.
fn found(spoil: impl FnOnce(&mut World, Id<Allocation>)) -> Broken {
    let mut world = World::new();
    world.run(admin(), pool("new", "lan", "10.0.0.50", labelled(&[]))).unwrap();
    let given = world.run(admin(), Action::Allocate(hold(None, "host/a", "new")));
    let id = Id::new(ids(&given)[0]);
    spoil(&mut world, id);
    stopped(&mut world, Action::ReleaseAllocation { id })
}

/// The invariant that an action finds broken.
fn stopped(world: &mut World, action: Action) -> Broken {
    Broken::catch(|| world.run(admin(), action)).unwrap_err()
}

#[test]
fn the_pool_of_an_allocation_is_a_row() {
    let broken = found(|world, id| {
        let pool = world.state.allocations.get(id).unwrap().pool;
        world.state.spoil_without::<Pool>(pool);
    });
    assert_eq!(broken.invariant, invariant::ROW_OF_ID);
    assert!(broken.detail.starts_with("pool "), "{}", broken.detail);
}

#[test]
fn the_endpoint_of_an_allocation_is_a_row() {
    let broken = found(|world, id| {
        let endpoint = world.state.allocations.get(id).unwrap().endpoint;
        world.state.spoil_without::<Endpoint>(endpoint);
    });
    assert_eq!(broken.invariant, invariant::ROW_OF_ID);
    assert!(broken.detail.starts_with("endpoint "), "{}", broken.detail);
}

#[test]
fn the_use_of_a_node_never_falls_below_zero() {
    let broken = found(|world, id| {
        let row = world.state.allocations.get(id).unwrap().clone();
        world.state.spoil_row(id, Allocation { source: Source::Node(node_key("n9")), ..row });
    });
    assert_eq!(broken.invariant, invariant::COUNT);
}

/// The free set of a pool and the addresses of its network are two parts of the index.
#[test]
fn a_promised_address_is_free_in_its_network() {
    let mut world = World::new();
    world.run(admin(), network("blue")).unwrap();
    let Action::PutSubnet(mut put) = subnet("far", "10.0.0.0/24") else { unreachable!() };
    put.spec.network = "blue".parse().unwrap();
    world.run(admin(), Action::PutSubnet(put)).unwrap();
    world.run(admin(), pool("there", "far", "10.0.0.50", labelled(&[]))).unwrap();
    world.run(admin(), pool("here", "lan", "10.0.0.50", labelled(&[]))).unwrap();
    world.run(admin(), Action::Allocate(hold(None, "host/a", "there"))).unwrap();
    let id = |name: &str| {
        Id::<Subnet>::new(world.state.id_of(Kind::Subnet, &name.parse::<ipam_api::Name>().unwrap()).unwrap())
    };
    let (here, there) = (id("lan"), id("far"));
    let elsewhere = world.state.subnets.get(there).unwrap().network;
    let row = world.state.subnets.get(here).unwrap().clone();
    world.state.spoil_row(here, Subnet { network: elsewhere, ..row });
    let broken = stopped(&mut world, Action::Allocate(hold(None, "host/b", "here")));
    assert_eq!(broken.invariant, invariant::PROMISED_ADDRESS);
    assert!(broken.detail.starts_with("10.0.0.50 is held by allocation "), "{}", broken.detail);
}

#[test]
fn each_pool_has_a_space() {
    let broken = found(|world, id| {
        let row = world.state.allocations.get(id).unwrap().clone();
        let pool = world.state.pools.get(row.pool).unwrap().clone();
        world.state.spoil_row::<Pool>(999.into(), pool);
        world.state.spoil_row(id, Allocation { pool: 999.into(), ..row });
    });
    assert_eq!(broken.invariant, invariant::SPACE_OF_POOL);
    assert_eq!(broken.detail, "pool 999");
}

#[test]
fn a_prefix_from_which_others_are_cut_has_a_division() {
    let mut world = World::new();
    let (one, other) =
        (delegated(&mut world, from_pool("n1", 31)), delegated(&mut world, from_pool("n2", 31)));
    let row = world.state.prefixes.get(one.into()).unwrap().clone();
    world.state.spoil_row::<Prefix>(one.into(), Prefix { parent: other.into(), ..row });
    let broken = stopped(&mut world, Action::ReleasePrefix { id: one.into() });
    assert_eq!(broken.invariant, invariant::DIVISION_OF_PARENT);
    assert_eq!(broken.detail, format!("prefix {other}"));
    // Nothing is spoilt in a block that is cut from another one.
    let mut sound = World::new();
    let parent = delegated(&mut sound, from_pool("n1", 31));
    let below = delegated(&mut sound, delegate(PrefixSource::Prefix(parent.into()), "default", "c1", 32));
    sound.run(admin(), Action::ReleasePrefix { id: below.into() }).unwrap();
}

/// The place of a claim is in its row: a withdrawn claim with the place of another takes that with it.
#[test]
fn the_head_of_a_waiting_line_is_the_place_of_a_claim() {
    let mut world = World::new();
    world.run(admin(), pool("new", "lan", "10.0.0.50", labelled(&[]))).unwrap();
    let given = world.run(admin(), Action::Allocate(hold(None, "host/a", "new")));
    let claim = |endpoint: &str| {
        let mut request: Allocate = hold(None, endpoint, "new");
        request.options.wait = true;
        Action::Allocate(request)
    };
    world.run(admin(), claim("host/b")).unwrap();
    world.run(admin(), claim("host/c")).unwrap();
    let id_of = |endpoint: &str| world.state.incarnations(&endpoint.parse().unwrap()).next().unwrap();
    let (first, second) = (id_of("host/b"), id_of("host/c"));
    let order = world.state.endpoints.get(first).unwrap().waiting.as_ref().unwrap().order;
    let mut row = world.state.endpoints.get(second).unwrap().clone();
    row.waiting.as_mut().unwrap().order = order;
    row.waiting.as_mut().unwrap().missing.clear();
    world.state.spoil_row::<Endpoint>(second, row);
    world.events(admin(), Action::ReleaseEndpoint { key: "host/c".parse().unwrap() });
    let broken = stopped(&mut world, Action::ReleaseAllocation { id: ids(&given)[0].into() });
    assert_eq!(broken.invariant, invariant::CLAIM_OF_WAITER);
    assert_eq!(broken.detail, format!("place {order}"));
}
