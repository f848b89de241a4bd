//! On which terms somebody asks: with which rights, under which key, in whose management; and what tokens are
//! made of.

use crate::value::Text;
use crate::value::id::TokenId;
use ipam_api::Selector;
use ipam_api::access::{NodeKey, Role};
use ipam_api::name::Name;
use serde::{Deserialize, Serialize};

/// On which terms somebody asks: with which rights, under which key, and in whose management.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// With which rights.
    pub credential: Credential,
    /// Under which key, if the answer shall be kept for a repetition.
    pub idempotency: Option<Idempotency>,
    /// In whose management.
    pub manager: Manager,
}

impl Terms {
    /// No key, no management, and the rights of somebody whom the member knows.
    #[must_use]
    pub fn of(grant: Grant) -> Self {
        Self { credential: Credential::Known(grant), idempotency: None, manager: Manager::Nobody }
    }
}

/// What somebody's rights come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Credential {
    /// The member that took the request knows the caller by itself: a task of its own, a user of its socket, a
    /// certificate, somebody on loopback.
    Known(Grant),
    /// A token. What it may is looked up in `apply`, so that a revoked one can do nothing any more.
    Token {
        /// Its id.
        id: TokenId,
    },
}

/// Rights: a role, and what it is limited to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What the table of roles allows.
    pub role: Role,
    /// The node that it speaks for. Required with [`Role::Node`].
    pub node: Option<NodeKey>,
    /// The realms of endpoints that it may give to and take from; all if none is named.
    pub realms: Vec<Name>,
    /// What resources must be labelled with to be changed, and pools to be taken from.
    pub labels: Selector,
    /// Lets it write networks, subnets, pools and reservations though it has realms.
    pub allow_shared: bool,
}

impl Grant {
    /// All that a role may.
    #[must_use]
    pub fn of(role: Role) -> Self {
        Self { role, node: None, realms: Vec::new(), labels: Selector::default(), allow_shared: false }
    }

    /// What a node may.
    #[must_use]
    pub fn of_node(node: NodeKey) -> Self {
        Self { node: Some(node), ..Self::of(Role::Node) }
    }
}

/// A name that a caller gives to a request, to be answered the same when it repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// The name; unique to the principal.
    pub key: Text,
    /// A hash of the request: another one under the same key is refused.
    pub request: u128,
}

/// In whose management somebody changes resources: those with a `managed_by` are changed by that manager only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manager {
    /// In nobody's.
    #[default]
    Nobody,
    /// In this one's.
    Named(Text),
    /// Whoever manages it: somebody has said that it shall be changed all the same.
    TakeOver,
}

/// What is kept of a secret: its BLAKE3 hash. The secret has 244 random bits, so that nothing slower is needed.
pub type SecretHash = [u8; 32];

/// What is kept of a secret.
#[must_use]
pub fn secret_hash(secret: &str) -> SecretHash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

/// What tells one request from another under the same key: a hash of its parts.
#[must_use]
pub fn request_hash(parts: &[&[u8]]) -> u128 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    for part in parts {
        // With its length, so that nothing can move from one part to the next.
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.digest128()
}

/// Make a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateToken {
    /// Its name, which is also that of the principal who uses it.
    pub name: Name,
    /// What it is for.
    pub purpose: Purpose,
    /// What it may; for a join token, what the tokens made with it may.
    pub grant: Grant,
    /// How long it lives, in log time; for ever if it doesn't say.
    pub ttl_ms: Option<u64>,
    /// A sentence for people.
    pub description: Text,
    /// Hash of its secret.
    pub secret_hash: SecretHash,
    /// True if what joins with it takes the place of the tokens that its node has.
    pub replaces: bool,
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// To ask with.
    Bearer,
    /// To make a node's token with, once.
    Join,
    /// To join the cluster with as a member, once.
    JoinMember,
}
