//! openraft's type parameters, chosen once. The only place where the crate's types and openraft's meet.

use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::machine::Outcome;

openraft::declare_raft_types!(
    pub(crate) Types:
        D = Batch,
        R = Outcomes,
        NodeId = u64,
        Node = Member,
);

/// What became of the commands of one entry.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcomes {
    /// In the order of the commands; empty for entries that carry none.
    pub(crate) all: Vec<Outcome>,
    /// How long this member took to apply them.
    pub(crate) took: std::time::Duration,
}

/// What the log's membership says of a member. Its addresses here are those of its founding or joining; the
/// environment may have changed them since, which is why members are looked up by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, as in everybody's configuration.
    pub name: String,
    /// Ties the member to its data directory: made at random with the directory, never reused.
    pub disk_id: String,
    /// Where it answered peers.
    pub peer_address: String,
    /// Where it answered clients.
    pub client_url: String,
}

pub(crate) type LogId = openraft::type_config::alias::LogIdOf<Types>;
pub(crate) type Vote = openraft::type_config::alias::VoteOf<Types>;
pub(crate) type Entry = openraft::type_config::alias::EntryOf<Types>;
pub(crate) type StoredMembership = openraft::type_config::alias::StoredMembershipOf<Types>;
