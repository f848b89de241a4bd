//! Reports of agents and orchestrators, and their consequences: quarantines, suspects and reclaims.

pub(super) mod agent;
pub(super) mod pod;
pub(super) mod probe;
pub(super) mod quarantine;
pub(super) mod reclaim;
pub(super) mod workload;
