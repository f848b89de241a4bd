//! Probes for an ADD or for the cluster, on the links of this node. `probe/` sends and receives them.

pub mod add;
pub mod jobs;
pub mod link_report;
pub mod links;
pub(crate) mod report;
pub mod wire;
