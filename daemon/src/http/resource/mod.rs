//! Named resources, and maps of their addresses.

pub(super) mod host_policy;
pub(super) mod host_policy_use;
pub(super) mod map;
pub(super) mod named;
pub(super) mod namespace;
pub(super) mod network;
pub(super) mod node;
pub(super) mod pool;
pub(super) mod pool_change;
pub(super) mod reservation;
pub(super) mod subnet;
