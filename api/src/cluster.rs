//! The cluster as `GET /v1/cluster` shows it, from the member that was asked.

use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::resource::Counts;
use crate::time::Timestamp;

/// What a member knows of its cluster.
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
    /// The member that leads, as far as this one knows.
    pub leader: Option<String>,
    /// The Raft term.
    pub term: u64,
    /// The state of the member that answers.
    pub revision: u64,
    /// The digest of that state.
    pub digest: String,
    /// The last log index applied by the member that answers.
    pub applied: u64,
    /// How long ago, in milliseconds, the member last knew of a working leader; 0 if there is one now.
    pub stale_ms: u64,
    /// The members.
    pub members: Vec<Member>,
    /// Addresses of all pools.
    pub addresses: Counts,
    /// How many pools there are.
    pub pools: u64,
    /// Free bytes on the disk of the member that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
    /// What that is room for: `enough`, `little` (releases and deletions only) or `nothing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_room: Option<String>,
}

/// One member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Member {
    /// Its id; never used again once it is gone.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// `leader`, `voter` or `learner`.
    pub role: String,
    /// Where it answers clients.
    pub client_url: String,
    /// Where it answers peers.
    pub peer_address: String,
    /// Log entries that it still lacks; known to the leader only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Why it serves nobody, if its state is quarantined: it differs from the others', or may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
    /// The version of its program; absent while it doesn't answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The highest feature level that its program knows; absent while it doesn't answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// How long ago, in milliseconds, it last answered; known to the leader only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<u64>,
    /// Whether it answers the leader; known to the leader only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<bool>,
}

/// `GET /v1/cluster/members`: the members as the leader sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Members {
    /// The member that leads, if one does.
    pub leader: Option<String>,
    /// How many members have a vote.
    pub voters: u64,
    /// How many of them must agree.
    pub needed: u64,
    /// How many of those that answer may fail before nothing can be changed any more.
    pub can_lose: u64,
    /// The members, by id.
    pub items: Vec<Member>,
}

/// `POST /v1/cluster/transfer-leader`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// The voter that shall lead; the best one if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Name>,
}

/// `POST /v1/cluster/members`: a member that is new asks to be taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinMemberRequest {
    /// Its name.
    pub name: Name,
    /// The id of its data directory; the same again gets the same answer.
    pub disk_id: String,
    /// Where it answers peers.
    pub peer_address: String,
    /// Where it answers clients.
    pub client_url: String,
    /// The highest feature level that it knows.
    pub level: u32,
}

/// What a member that was taken in is told.
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

/// How much a change of the members may hurt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Danger {
    /// Nobody notices.
    Mild,
    /// It can't be taken back as it was.
    Moderate,
    /// Fewer members can fail afterwards.
    Severe,
}

/// What a change of the members does, or with `dry_run` would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberChange {
    /// False if it is so already and there is nothing to do.
    pub changes: bool,
    /// Whether it has come about; what was decided and has not goes on by itself.
    pub done: bool,
    /// What happens, one sentence a step.
    pub steps: Vec<String>,
    /// Who has a vote before.
    pub voters_before: Vec<String>,
    /// Who has one after it.
    pub voters_after: Vec<String>,
    /// How many of those that answer may fail before.
    pub can_lose_before: u64,
    /// How many may fail after it.
    pub can_lose_after: u64,
    /// How much it may hurt.
    pub danger: Danger,
}

/// What a restore has begun, and which pools wait to be confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Epoch {
    /// Its number; 1 for a cluster that was never restored.
    pub epoch: u64,
    /// Whether all pools may give.
    pub confirmed: bool,
    /// The revision of the state that was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_revision: Option<u64>,
    /// When it was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When somebody said that all pools may give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Timestamp>,
    /// The pools that give nothing until they are confirmed.
    pub waiting: Vec<Name>,
}

/// `POST /v1/cluster/epoch/confirm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    /// Which epoch is meant.
    pub epoch: u64,
    /// Which pools; all, and those that are still to come, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pools: Option<Vec<Name>>,
}

/// `GET /version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version {
    /// The product.
    pub product: String,
    /// Its version.
    pub version: String,
    /// The highest feature level that this build knows.
    pub level: u32,
}
