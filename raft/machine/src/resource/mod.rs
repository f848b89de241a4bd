//! Resources that operators write: networks, subnets, pools, reservations, nodes and namespaces.

pub(crate) mod gateway;
pub(crate) mod namespace;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod pool;
pub(crate) mod pool_drain;
pub(crate) mod pool_split;
pub(crate) mod reservation;
pub(crate) mod subnet;
