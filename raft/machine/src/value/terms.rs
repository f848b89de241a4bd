//! Terms of a request: its rights, its idempotency key and its manager; and the parts of tokens.

use crate::value::Text;
use crate::value::id::TokenId;
use ipam_api::Selector;
use ipam_api::access::{NodeKey, Role};
use ipam_api::name::Name;
use serde::{Deserialize, Serialize};

/// Terms of a request: its rights, its idempotency key and its manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Credential whose rights apply.
    pub credential: Credential,
    /// Idempotency key, if the answer is kept for a repetition.
    pub idempotency: Option<Idempotency>,
    pub manager: Manager,
}

impl Terms {
    /// Returns terms without key and manager, for a caller that the member itself has identified.
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
    /// Node on whose behalf the caller acts. Required with [`Role::Node`].
    pub node: Option<NodeKey>,
    /// Realms whose endpoints the caller may serve; all if empty.
    pub realms: Vec<Name>,
    /// Labels of the resources that may be changed, and of the pools that may be used.
    pub labels: Selector,
    /// True if the caller may write networks, subnets, pools and reservations although it has realms.
    pub allow_shared: bool,
}

impl Grant {
    /// Returns all rights of a role.
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
    /// The key, unique per principal.
    pub key: Text,
    /// Hash of the request: a different request with the same key is refused.
    pub request: u128,
}

/// Manager that changes resources: those with a `managed_by` are changed by that manager only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manager {
    /// No manager.
    #[default]
    Nobody,
    /// Manager with this name.
    Named(Text),
    /// Any manager: the caller takes the resource over.
    TakeOver,
}

/// BLAKE3 hash of a secret. The secret has 244 random bits, so that nothing slower is needed.
pub type SecretHash = [u8; 32];

#[must_use]
pub fn secret_hash(secret: &str) -> SecretHash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

/// Hash of a request's parts, which distinguishes requests with the same key.
#[must_use]
pub fn request_hash(parts: &[&[u8]]) -> u128 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    for part in parts {
        // The length is hashed, too, so that bytes can't move from one part to the next.
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.digest128()
}

/// Creation of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateToken {
    /// Name of the token and of its principal.
    pub name: Name,
    pub purpose: Purpose,
    /// Rights of the token; for a join token, those of the tokens created with it.
    pub grant: Grant,
    /// TTL in log time; none for a token that never expires.
    pub ttl_ms: Option<u64>,
    pub description: Text,
    pub secret_hash: SecretHash,
    /// True if a node token created with this join token replaces the node's present tokens.
    pub replaces: bool,
}

/// Purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// Authenticates requests.
    Bearer,
    /// Exchanged for a node token, once.
    Join,
    /// Lets a member join the cluster, once.
    JoinMember,
}
