//! The cluster as `GET /v1/cluster` shows it, from the member that was asked.

use serde::{Deserialize, Serialize};

use crate::resource::Counts;

/// What a member knows of its cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cluster {
    /// The cluster's id; empty while it is being founded.
    pub id: String,
    /// Rises with every restore and forced recovery.
    pub generation: u64,
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
