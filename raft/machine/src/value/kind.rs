//! Kinds of named resources, and preconditions on their revisions.

use serde::{Deserialize, Serialize};

use crate::value::words::words;

/// Precondition of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// No precondition.
    Anything,
    /// The resource doesn't exist.
    Absent,
    /// The resource exists in this revision.
    Revision(u64),
}

words! {
    /// The kinds of named resources.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Kind {
        /// A network.
        Network = "network",
        /// A subnet.
        Subnet = "subnet",
        /// A pool.
        Pool = "pool",
        /// A reservation.
        Reservation = "reservation",
        /// A token.
        Token = "token",
        /// A node.
        Node = "node",
        /// A namespace.
        Namespace = "namespace",
        /// A host policy.
        HostPolicy = "host-policy",
    }
}

impl Kind {
    /// Returns true for kinds that another system names, within its realm.
    #[must_use]
    pub fn is_in_realm(self) -> bool {
        matches!(self, Kind::Node | Kind::Namespace)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
