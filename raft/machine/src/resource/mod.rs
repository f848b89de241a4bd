//! Resources that operators write: networks, subnets, pools, reservations, nodes and namespaces.

pub(crate) mod described;
pub(crate) mod gateway;
pub(crate) mod namespace;
pub(crate) mod network;
pub(crate) mod pool;
pub(crate) mod pool_split;
pub(crate) mod reservation;
pub(crate) mod subnet;
