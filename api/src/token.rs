//! Tokens as HTTP shows them. The secret appears once, in the answer that makes it.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::access::{NodeKey, Role};
use crate::name::Name;
use crate::resource::Meta;
use crate::selector::Selector;
use crate::time::Timestamp;

/// Purpose of a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// For requests.
    #[default]
    Bearer,
    /// To make a node's token with, once: `POST /v1/join`.
    Join,
    /// To join the cluster with as a member, once: `POST /v1/cluster/members`.
    #[serde(rename = "join-member")]
    JoinMember,
}

/// `POST /v1/tokens`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Its name, under which its user appears in history.
    pub name: Name,
    /// Purpose of the token.
    #[serde(default)]
    pub purpose: Purpose,
    /// Role of the token's principal.
    pub role: Role,
    /// The node that it speaks for; required with the role `node`, unless it is for joining.
    pub node: Option<NodeKey>,
    /// True if the node that joins with it loses the tokens that it has; only for joining, and with `node`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// Realms whose endpoints it may serve; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub realms: Vec<Name>,
    /// Lets a token with realms write networks, subnets, pools and reservations, which realms share.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_shared: bool,
    /// Labels of the resources that the token may change, and of the pools that it may use.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub labels: Selector,
    /// TTL in milliseconds of log time; unlimited if absent. Required for join tokens.
    pub ttl_ms: Option<u64>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// Token as it is read.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Token {
    /// Name of the token.
    pub name: Name,
    /// Purpose of the token.
    pub purpose: Purpose,
    /// Role of the token's principal.
    pub role: Role,
    /// The node that it speaks for.
    pub node: Option<NodeKey>,
    /// True if the node that joins with it loses the tokens that it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// Realms whose endpoints it may serve; all if empty.
    #[serde(default)]
    pub realms: Vec<Name>,
    /// Lets a token with realms write networks, subnets, pools and reservations, which realms share.
    #[serde(default)]
    pub allow_shared: bool,
    /// Labels of the resources that the token may change, and of the pools that it may use.
    #[serde(default)]
    pub labels: Selector,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// Identity and history.
    pub meta: Meta,
    /// Status of the token.
    pub status: TokenStatus,
    /// Its secret: only in the answer that makes it, and never again.
    pub secret: Option<String>,
}

/// Status of a token.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenStatus {
    /// Expiry, if any.
    pub expires_at: Option<Timestamp>,
    /// True if a join token has been used.
    pub used: bool,
}

/// `POST /v1/join`, with a join token as the bearer: makes a node's own token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The node that joins.
    pub node: NodeKey,
    /// BLAKE3 hash, in hexadecimal, of the secret that the node has generated and stored. The secret is
    /// `ipamd_` and 64 characters. A repetition of the request gets the same response, and no other party
    /// ever sees the secret.
    pub secret_hash: String,
}
