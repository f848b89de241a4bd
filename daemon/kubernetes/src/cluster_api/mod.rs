//! Contract of Cluster API: claims, addresses and pools as a management cluster shows them, and the next step
//! for each.

mod address;
mod claim;
mod claim_status;
mod cluster;
mod json;
mod kind;
mod metadata;
mod plan;
mod pool;
mod pool_status;
mod resources;
mod step;

pub(crate) use self::address::{ADDRESS, AddressFacts, AddressSpec, CLAIM, CONTRACT_GROUP, object, owners};
pub(crate) use self::claim::ClaimFacts;
pub(crate) use self::claim_status::{
    ALLOCATION_FAILED, POOL_EXHAUSTED, POOL_NOT_READY, Shown, status as claim_status,
};
pub(crate) use self::cluster::ClusterFacts;
pub(crate) use self::kind::{PoolKey, PoolKind};
pub(crate) use self::metadata::{Key, Metadata, is_selected};
pub(crate) use self::plan::{
    Plan, number_of_blocks, of_addresses, of_prefixes, reference_of_addresses, reference_of_prefixes,
};
pub(crate) use self::pool::{PoolFacts, PoolSpec};
pub(crate) use self::pool_status::{PoolCounts, status as pool_status};
pub(crate) use self::resources::{
    Names, claim_of_prefix, foreign_name, names, network, network_of_namespace, owner_of_prefix,
    pool as pool_resource, subnet, subnet_name,
};
pub(crate) use self::step::{ClusterState, Readiness, Scene, Step, step};
