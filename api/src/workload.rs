//! States of workloads as their orchestrator reports them, and the verdict on the addresses of each.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::name::{Name, ObjectName};
use crate::resource::EndpointKind;
use crate::time::Timestamp;

/// `POST /v1/workloads`: observed states of workloads of one realm. Addresses of those that are gone are
/// released.
///
/// A repeated request is harmless: a uid without addresses is unknown. So an idempotency key has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadsRequest {
    /// Realm of the workloads.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Observed workloads, at most 256, each once.
    pub workloads: Vec<Workload>,
}

/// Observed state of one workload. Addresses are released only for facts that it states.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name of the workload.
    pub endpoint: WorkloadName,
    /// Uid of the workload. Another workload of the same name is not affected.
    pub uid: String,
    /// Phase of the workload.
    #[serde(default)]
    pub phase: WorkloadPhase,
    /// True if the workload uses the network of its node, and so has no address of its own.
    #[serde(default)]
    pub host_network: bool,
    /// True if the orchestrator shows addresses of the workload, or if that was not observed.
    #[serde(default = "yes")]
    pub has_addresses: bool,
    /// End of the grace of a workload that terminates: `deletionTimestamp` of Kubernetes, which contains the
    /// grace already.
    pub deletion_due_at: Option<Timestamp>,
    /// End of the last container, if all containers have ended.
    pub finished_at: Option<Timestamp>,
    /// Node of the workload, if it has one.
    pub node: Option<WorkloadNode>,
    /// Evidence that the workload is gone.
    #[serde(default)]
    pub gone: WorkloadGone,
    /// Time of the observation, by the clock of its observer.
    pub observed_at: Timestamp,
}

fn yes() -> bool {
    true
}

/// Name of a workload in its realm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadName {
    /// Kind of the endpoint.
    #[serde(default = "pod")]
    pub kind: EndpointKind,
    /// Namespace of the endpoint.
    #[serde(default = "ObjectName::default_name")]
    pub namespace: ObjectName,
    /// Name of the endpoint.
    pub name: ObjectName,
}

fn pod() -> EndpointKind {
    EndpointKind::Pod
}

/// Node of a workload, as the orchestrator shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadNode {
    /// Name of the node.
    pub name: ObjectName,
    /// State of the node.
    pub state: WorkloadNodeState,
}

crate::named_enum! {
/// Phase of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadPhase {
    /// Its containers have not all started.
    Pending = "pending",
    /// At least one of its containers runs.
    Running = "running",
    /// All containers have ended, without an error.
    Succeeded = "succeeded",
    /// All containers have ended, at least one with an error; evicted workloads among them.
    Failed = "failed",
    /// The phase was not observed: the node does not report it.
    #[default]
    Unknown = "unknown",
}
}

crate::named_enum! {
/// State of a workload's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadNodeState {
    /// The node reports that it is ready.
    Ready = "ready",
    /// The node is not ready, or does not report.
    NotReady = "not-ready",
    /// The orchestrator has no such node any more.
    Gone = "gone",
    /// An operator has declared that the node is shut down, such as by the taint `out-of-service`.
    OutOfService = "out-of-service",
}
}

crate::named_enum! {
/// Evidence that a workload is gone. A list without the workload is no evidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadGone {
    /// There is no evidence.
    #[default]
    None = "none",
    /// A watch reported the deletion of this uid.
    Deleted = "deleted",
    /// Two scans one interval apart did not find it, and then a quorum read answered 404 or another uid.
    Absent = "absent",
}
}

/// Answer to observed states of workloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadsAnswer {
    /// Results in the order of the request.
    pub results: Vec<WorkloadResult>,
    /// Revision after the request.
    pub revision: u64,
}

/// Verdict on one workload.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadResult {
    /// Uid of the workload.
    pub uid: String,
    /// Verdict on its addresses.
    pub verdict: WorkloadVerdict,
    /// Reason of the verdict.
    pub reason: WorkloadReason,
    /// Earliest time at which the addresses are reclaimed, for `later`.
    pub due_at: Option<Timestamp>,
    /// Released addresses.
    pub addresses: Vec<IpAddr>,
    /// Number of allocations that a workload keeps although it is gone: they are held or leased, or of a
    /// sticky endpoint that is wanted.
    pub kept: u64,
}

crate::named_enum! {
/// Verdict on the addresses of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadVerdict {
    /// The workload keeps its addresses.
    Keep = "keep",
    /// The workload keeps its addresses until `due_at`.
    Later = "later",
    /// The addresses of the workload are released.
    Reclaim = "reclaim",
    /// No endpoint of this name has this uid.
    Unknown = "unknown",
}
}

crate::named_enum! {
/// Reason of a verdict on a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadReason {
    /// It uses the network of its node.
    HostNetwork = "host-network",
    /// Its sticky endpoint is wanted by its controller, or kept by the policy for fewer replicas.
    StickyWanted = "sticky-wanted",
    /// Its addresses have several attachments: a live migration.
    Migrating = "migrating",
    /// A watch reported its deletion.
    Deleted = "deleted",
    /// It was absent in two scans and in a quorum read.
    Absent = "absent",
    /// It is pending.
    Pending = "pending",
    /// It is running.
    Running = "running",
    /// It is running, and has no addresses.
    RunningWithoutAddresses = "running-without-addresses",
    /// All containers have ended.
    Finished = "finished",
    /// All containers have ended, but the time of their end is unknown.
    EndUnknown = "end-unknown",
    /// Its phase is unknown, and nothing shows that it is gone.
    NoEvidence = "no-evidence",
    /// It terminates, and its grace is not over.
    Terminating = "terminating",
    /// Its grace is over, and its node is ready.
    TerminatingOnReadyNode = "terminating-on-ready-node",
    /// Its grace is over. Its node is not ready, and silent to the servers and to probes of its addresses.
    TerminatingOnSilentNode = "terminating-on-silent-node",
    /// Its grace is over, and its node is gone or out of service.
    TerminatingOnGoneNode = "terminating-on-gone-node",
    /// Its node is not ready, but nothing shows that the node is gone.
    NodeNotReady = "node-not-ready",
    /// Its node is said to be gone, but the agent of the node was heard lately.
    NodeHeard = "node-heard",
    /// Its node was not stated.
    NodeUnknown = "node-unknown",
    /// Its addresses are on another node than the stated one.
    NodeElsewhere = "node-elsewhere",
    /// A switch of the configuration keeps addresses in its state.
    SwitchedOff = "switched-off",
    /// The observation is too old, or its clock differs too much from that of the member.
    ObservationStale = "observation-stale",
    /// No endpoint of this name has this uid.
    UidUnknown = "uid-unknown",
}
}
