//! Terms of a request: its rights, its key and its management; and what tokens are
//! made of.

use crate::value::Text;
use crate::value::id::TokenId;
use ipam_api::Selector;
use ipam_api::access::{NodeKey, Role};
use ipam_api::name::Name;
use serde::{Deserialize, Serialize};

/// Terms of a request: its rights, its key and its management.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// With which rights.
    pub credential: Credential,
    /// Idempotency key, if the answer is kept for a repetition.
    pub idempotency: Option<Idempotency>,
    pub manager: Manager,
}

impl Terms {
    /// No key, no management, and the rights of a caller that the member knows.
    #[must_use]
    pub fn of(grant: Grant) -> Self {
        Self { credential: Credential::Known(grant), idempotency: None, manager: Manager::Nobody }
    }
}

/// Source of a caller's rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Credential {
    /// Caller that the member itself identifies. A task, a user of its socket, a certificate, or a loopback
    /// client.
    Known(Grant),
    /// A token. `apply` looks up its rights, so that a revoked token has none.
    Token { id: TokenId },
}

/// Rights: a role and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub role: Role,
    /// The node that it speaks for. Required with [`Role::Node`].
    pub node: Option<NodeKey>,
    /// Realms of the endpoints that it may serve; all if empty.
    pub realms: Vec<Name>,
    /// Labels of the resources that may be changed, and of the pools that may be used.
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

    /// Rights of a node.
    #[must_use]
    pub fn of_node(node: NodeKey) -> Self {
        Self { node: Some(node), ..Self::of(Role::Node) }
    }
}

/// Idempotency key of a request, for the same answer to a repetition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// The name; unique to the principal.
    pub key: Text,
    /// A hash of the request: another one under the same key is refused.
    pub request: u128,
}

/// Manager that changes resources: those with a `managed_by` are changed by that manager only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manager {
    /// No manager.
    #[default]
    Nobody,
    /// In this one's.
    Named(Text),
    /// In any management: the caller takes the resource over.
    TakeOver,
}

/// BLAKE3 hash of a secret. The secret has 244 random bits, so that nothing slower is needed.
pub type SecretHash = [u8; 32];

#[must_use]
pub fn secret_hash(secret: &str) -> SecretHash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

/// Hash of a request's parts, which tells it from another one under the same key.
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
    /// Name of the token and of its principal.
    pub name: Name,
    pub purpose: Purpose,
    /// Rights of the token; for a join token, those of the tokens created with it.
    pub grant: Grant,
    /// Its lifetime, in log time; for ever without one.
    pub ttl_ms: Option<u64>,
    pub description: Text,
    pub secret_hash: SecretHash,
    /// True if what joins with it takes the place of the tokens that its node has.
    pub replaces: bool,
}

/// Purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// For requests.
    Bearer,
    /// To make a node's token with, once.
    Join,
    /// To join the cluster with as a member, once.
    JoinMember,
}
