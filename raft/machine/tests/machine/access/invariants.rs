//! Rows that contradict each other stop the machine, with the name of the invariant.

use ipam_machine::model::{Allocation, Endpoint, Pool, Source};
use ipam_machine::{Action, Broken, Id, invariant};

use crate::access::world::{World, admin, hold, ids, labelled, node_key, pool};

/// Gives an address, lets `spoil` change the rows, and takes the address back.
fn found(spoil: impl FnOnce(&mut World, Id<Allocation>)) -> Broken {
    let mut world = World::new();
    world.run(admin(), pool("new", "lan", "10.0.0.50", labelled(&[]))).unwrap();
    let given = world.run(admin(), Action::Allocate(hold(None, "host/a", "new")));
    let id = Id::new(ids(&given)[0]);
    spoil(&mut world, id);
    Broken::catch(|| world.run(admin(), Action::ReleaseAllocation { id })).unwrap_err()
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
