//! Garbage collection: tasks of the leader, reports of what may be reclaimed, and reclaims by id.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::access::NodeKey;
use crate::name::Name;
use crate::resource::EndpointKey;
use crate::time::Timestamp;

crate::named_enum! {
/// Reason for which addresses of a node are reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReclaimReason {
    /// The orchestrator or an operator states that the node is gone.
    NodeGone = "node-gone",
    /// The node is silent, and probes of its addresses have had no answer for several rounds.
    NodeSilent = "node-silent",
}
}

/// `POST /v1/nodes/{realm}/{name}/reclaim`: releases attached allocations of a node that is gone or silent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReclaimRequest {
    /// Reason. `node-gone` is refused while the agent of the node is heard.
    pub reason: ReclaimReason,
    /// Ids of the observed allocations, at most 256. Allocations that changed meanwhile are left alone.
    pub allocations: Vec<u64>,
}

/// Answer to a reclaim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reclaimed {
    /// Released addresses. Kept ones are only detached, and not among them.
    pub addresses: Vec<IpAddr>,
    /// Number of allocations that were left alone: they are gone, held, not attached on the node, or not
    /// proved to be unused.
    pub stale: u64,
    /// Revision after the request.
    pub revision: u64,
}

/// Item of `GET /v1/gc`: a suspect allocation, whose node is silent, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GcLine {
    /// Id of the allocation.
    pub allocation: u64,
    /// Network of the address.
    pub network: Name,
    /// The address.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::IpAddress"))]
    pub address: IpAddr,
    /// Pool of the address.
    pub pool: Name,
    /// Endpoint that holds the address.
    pub endpoint: EndpointKey,
    /// Silent node.
    pub node: NodeKey,
    /// Time of the newest heartbeat of the node.
    pub heard_at: Timestamp,
    /// Number of nodes that live and that heard the address before.
    pub witnesses: u64,
    /// Number of silent rounds on which all of them agree, at most 3.
    pub silent_rounds: u64,
    /// True if the next round of garbage collection reclaims the allocation.
    pub due: bool,
}

/// `GET /v1/tasks`: tasks of the leader, as the answering member ran them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tasks {
    /// Name of the member that answers.
    pub member: String,
    /// True if this member leads, and runs the tasks now.
    pub leads: bool,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// Task of the leader.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// Name of the task.
    pub name: String,
    /// Purpose of the task.
    pub purpose: String,
    /// Time between two runs, in milliseconds.
    pub interval_ms: u64,
    /// Number of runs on this member since its start.
    pub runs: u64,
    /// Number of runs that did not complete.
    pub failures: u64,
    /// Number of addresses and records that the task freed.
    pub reclaimed: u64,
    /// Begin of the newest run.
    pub started_at: Option<Timestamp>,
    /// End of the newest run that completed.
    pub succeeded_at: Option<Timestamp>,
    /// Duration of the newest run, in microseconds.
    pub duration_us: Option<u64>,
}
