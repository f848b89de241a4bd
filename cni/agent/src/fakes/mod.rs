//! Cluster and wire of the tests.

mod cluster;
mod wire;

pub(crate) use self::cluster::{FakeCluster, body, key};
pub(crate) use self::wire::{FOREIGN, FakeWire, OWN};
