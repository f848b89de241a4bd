//! Resources that operators write: networks, subnets, pools, reservations, nodes,
//! namespaces and host policies.

pub(crate) mod described;
pub(crate) mod gateway;
pub(crate) mod host_policy;
pub(crate) mod namespace;
pub(crate) mod network;
pub(crate) mod pool;
pub(crate) mod pool_split;
pub(crate) mod reservation;
pub(crate) mod subnet;
