//! Cluster as `GET /v1/cluster` shows it, in the view of the answering member.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::name::Name;
use crate::resource::Counts;
use crate::time::Timestamp;

/// Cluster, as one member knows it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cluster {
    /// The cluster's id; empty while it is being founded.
    pub id: String,
    /// Rises with every restore and forced recovery.
    pub epoch: u64,
    /// The feature level by which the machine behaves.
    pub level: u32,
    /// The member that answers.
    pub answered_by: String,
    /// Name of the leader, as far as the answering member knows it.
    #[serialize_always]
    pub leader: Option<String>,
    /// The Raft term.
    pub term: u64,
    /// The state of the member that answers.
    pub revision: u64,
    /// The digest of that state.
    pub digest: String,
    /// The last log index applied by the member that answers.
    pub applied: u64,
    /// Milliseconds since the member last knew of a working leader; 0 if there is one now.
    pub stale_ms: u64,
    /// The members.
    pub members: Vec<Member>,
    /// Addresses of all pools.
    pub addresses: Counts,
    /// Number of pools.
    pub pools: u64,
    /// Free bytes on the disk of the member that answers.
    pub disk_free_bytes: Option<u64>,
    /// Requests that the disks have space for. `enough`: all; `little`: releases and deletions only;
    /// `nothing`: none.
    pub disk_room: Option<String>,
}

/// One member of the cluster.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Member {
    /// Id of the member, never reused.
    pub id: u64,
    /// Name of the member.
    pub name: String,
    /// `leader`, `voter` or `learner`.
    pub role: String,
    /// URL for clients.
    pub client_url: String,
    /// Address for peers.
    pub peer_address: String,
    /// Number of missing log entries; known to the leader only.
    pub behind: Option<u64>,
    /// Reason for which the member serves no requests: its state differs, or may differ, from the others'.
    pub quarantined: Option<String>,
    /// The version of its program; absent while it doesn't answer.
    pub version: Option<String>,
    /// The highest feature level that its program knows; absent while it doesn't answer.
    pub level: Option<u32>,
    /// Milliseconds since the member last answered; known to the leader only.
    pub silent_ms: Option<u64>,
    /// True if the member answers the leader; known to the leader only.
    pub answers: Option<bool>,
}

/// `GET /v1/cluster/members`: the members as the leader sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Members {
    /// The member that leads, if one does.
    pub leader: Option<String>,
    /// Number of voters.
    pub voters: u64,
    /// Number of voters in a majority.
    pub needed: u64,
    /// Number of answering voters that may fail before the cluster loses its majority.
    pub can_lose: u64,
    /// The members, by id.
    pub items: Vec<Member>,
}

/// `POST /v1/cluster/transfer-leader`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// Voter that becomes the leader; without it the best one.
    pub to: Option<Name>,
}

/// `POST /v1/cluster/members`: request of a new member to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinMemberRequest {
    /// Name of the member.
    pub name: Name,
    /// The id of its data directory; the same again gets the same answer.
    pub disk_id: String,
    /// Address for peers.
    pub peer_address: String,
    /// URL for clients.
    pub client_url: String,
    /// The highest feature level that it knows.
    pub level: u32,
}

/// Response to a member that has joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberJoined {
    /// The cluster's id.
    pub cluster_id: String,
    /// The member's id in it.
    pub id: u64,
    /// The feature level by which the machine behaves.
    pub level: u32,
    /// The members before it.
    pub members: Vec<Member>,
}

/// `POST /v1/cluster/members/{name}/replace`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReplaceRequest {
    /// The member that takes its place; it has joined already.
    pub with: Name,
}

/// Danger of a membership change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Danger {
    /// No effect on clients.
    Mild,
    /// The change can't be undone exactly.
    Moderate,
    /// Fewer members can fail afterwards.
    Severe,
}

/// Effect of a membership change, done or with `dry_run` planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberChange {
    /// False if the requested state exists already.
    pub changes: bool,
    /// True if the change is complete; a decided change continues in the background.
    pub done: bool,
    /// Steps of the change, one sentence each.
    pub steps: Vec<String>,
    /// Voters before the change.
    pub voters_before: Vec<String>,
    /// Voters after the change.
    pub voters_after: Vec<String>,
    /// Number of answering voters that may fail before the change.
    pub can_lose_before: u64,
    /// Number of answering voters that may fail after the change.
    pub can_lose_after: u64,
    /// Danger of the change.
    pub danger: Danger,
}

/// Epoch that a restore has started, and the pools that wait for confirmation.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Epoch {
    /// Its number; 1 for a cluster that was never restored.
    pub epoch: u64,
    /// True if all pools are confirmed and may allocate.
    pub confirmed: bool,
    /// The revision of the state that was restored.
    pub from_revision: Option<u64>,
    /// Time of the restore.
    pub since: Option<Timestamp>,
    /// Time of the confirmation of all pools.
    pub confirmed_at: Option<Timestamp>,
    /// Pools that allocate nothing until they are confirmed.
    pub waiting: Vec<Name>,
}

/// `POST /v1/cluster/epoch/confirm`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    /// Number of the epoch.
    pub epoch: u64,
    /// Pools to confirm; without it all pools, future ones included.
    pub pools: Option<Vec<Name>>,
}

/// `GET /version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version {
    /// The product.
    pub product: String,
    /// Version of the binary.
    pub version: String,
    /// The highest feature level that this build knows.
    pub level: u32,
}
