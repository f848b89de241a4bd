//! Tokens as HTTP shows them. The secret appears once, in the answer that makes it.

use serde::{Deserialize, Serialize};

use crate::access::{NodeKey, Role};
use crate::name::Name;
use crate::resource::Meta;
use crate::selector::Selector;
use crate::time::Timestamp;

/// What a token is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// To ask with.
    #[default]
    Bearer,
    /// To make a node's token with, once: `POST /v1/join`.
    Join,
    /// To join the cluster with as a member, once: `POST /v1/cluster/members`.
    #[serde(rename = "join-member")]
    JoinMember,
}

/// `POST /v1/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Its name, under which its user appears in history.
    pub name: Name,
    /// What it is for.
    #[serde(default)]
    pub purpose: Purpose,
    /// What it may.
    pub role: Role,
    /// The node that it speaks for; required with the role `node`, unless it is for joining.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeKey>,
    /// True if the node that joins with it loses the tokens that it has; only for joining, and with `node`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// The realms of endpoints that it may give to and take from; all if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub realms: Vec<Name>,
    /// Lets a token with realms write networks, subnets, pools and reservations, which realms share.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_shared: bool,
    /// What resources must be labelled with to be changed, and pools to be taken from.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub labels: Selector,
    /// How long it lives; for ever if it doesn't say. Required for joining.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A token as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Token {
    /// Its name.
    pub name: Name,
    /// What it is for.
    pub purpose: Purpose,
    /// What it may.
    pub role: Role,
    /// The node that it speaks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeKey>,
    /// True if the node that joins with it loses the tokens that it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// The realms of endpoints that it may give to and take from; all if none is named.
    #[serde(default)]
    pub realms: Vec<Name>,
    /// Lets a token with realms write networks, subnets, pools and reservations, which realms share.
    #[serde(default)]
    pub allow_shared: bool,
    /// What resources must be labelled with to be changed, and pools to be taken from.
    #[serde(default)]
    pub labels: Selector,
    /// A sentence for people.
    #[serde(default)]
    pub description: String,
    /// Identity and history.
    pub meta: Meta,
    /// What is the case.
    pub status: TokenStatus,
    /// Its secret: only in the answer that makes it, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// What is the case with a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenStatus {
    /// When it ends, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether it was used, if it is for joining.
    pub used: bool,
}

/// `POST /v1/join`, with a join token as the bearer: makes a node's own token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The node that joins.
    pub node: NodeKey,
    /// The BLAKE3 hash, in hexadecimal, of a secret that the node has made for itself and keeps: `ipamd_` and
    /// 64 characters. The same request again gets the same answer, and nobody else ever sees the secret.
    pub secret_hash: String,
}
