//! Changes of the members of the cluster.

use ipam_api::name::Name;
use serde::{Deserialize, Serialize};

use crate::command::Text;

/// A member as the log's membership has it. Founders are in the membership from the first entry on and in no
/// row; with the first change of the members all that are known become rows.
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

/// Take a new member in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinMember {
    pub name: Name,
    /// The id of its data directory, by which it is known again when it repeats itself.
    pub disk_id: Text,
    pub peer_address: Text,
    pub client_url: Text,
    /// Present members.
    pub known: Vec<KnownMember>,
}

/// Promotes and removes members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeMembers {
    /// Members that get a vote, by id.
    pub promote: Vec<u64>,
    /// Members that go, by id.
    pub remove: Vec<u64>,
    /// Voters that the caller saw, by id and in order; with others it isn't done.
    pub voters: Vec<u64>,
    /// Present members.
    pub known: Vec<KnownMember>,
}
