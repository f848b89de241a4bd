//! Changes of the members of the cluster.

use ipam_api::name::Name;
use serde::{Deserialize, Serialize};

use crate::command::Text;

/// Member in the membership of the Raft log. Founders are in the membership from the first entry on, but in
/// no row; the first change of the members writes a row for each known member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownMember {
    pub id: u64,
    pub name: Name,
    /// The id of its data directory.
    pub disk_id: Text,
    pub peer_address: Text,
    pub client_url: Text,
    /// True if it has a vote.
    pub votes: bool,
}

/// Adds a new member as a learner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinMember {
    pub name: Name,
    /// Id of the member's data directory, which identifies a repeated request.
    pub disk_id: Text,
    pub peer_address: Text,
    pub client_url: Text,
    /// Present members.
    pub known: Vec<KnownMember>,
}

/// Promotes and removes members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeMembers {
    /// Members to promote to voters, by id.
    pub promote: Vec<u64>,
    /// Members to remove, by id.
    pub remove: Vec<u64>,
    /// Voters that the caller saw, by id and in order; the change is refused if the voters differ.
    pub voters: Vec<u64>,
    /// Present members.
    pub known: Vec<KnownMember>,
}
