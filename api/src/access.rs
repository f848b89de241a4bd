//! Roles, and the single table of the verbs that each role may apply to each target.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName};

/// Role of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads everything but tokens and backups.
    Viewer,
    /// Also writes networks, subnets, pools and reservations, and allocates and releases addresses.
    Operator,
    /// Everything.
    Admin,
    /// A node's agent or plugin: allocates and releases addresses of its own node only.
    Node,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Operator, Role::Admin, Role::Node];

    /// Name of the role in JSON and in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
            Role::Node => "node",
        }
    }
}

/// Verb of a permission: the operation. New ones are only ever appended (they travel between members by
/// position).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verb {
    /// Looks at it.
    Read,
    /// Creates or changes it.
    Write,
    /// Removes it.
    Delete,
    /// Allocates addresses.
    Allocate,
    /// Takes addresses back.
    Release,
    /// Lets it live longer.
    Renew,
}

impl Verb {
    /// Name of the verb in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Write => "write",
            Verb::Delete => "delete",
            Verb::Allocate => "allocate",
            Verb::Release => "release",
            Verb::Renew => "renew",
        }
    }
}

/// Target of a permission: the kind of resource. New ones are only ever appended (they travel between members
/// by position).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Target {
    /// Networks.
    Network,
    /// Subnets.
    Subnet,
    /// Pools.
    Pool,
    /// Reservations.
    Reservation,
    /// Endpoints.
    Endpoint,
    /// Attachments.
    Attachment,
    /// Allocations.
    Allocation,
    /// Single addresses and their history.
    Address,
    /// The journal of events.
    Event,
    /// The cluster and its members.
    Cluster,
    /// Tokens.
    Token,
    /// Metrics.
    Metrics,
    /// Backups of everything.
    Backup,
    /// Nodes.
    Node,
    /// Namespaces.
    Namespace,
    /// Delegated prefixes.
    Prefix,
    /// Applications: controllers with their endpoints and automatic pools.
    Application,
}

impl Target {
    /// Name of the target in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Target::Network => "network",
            Target::Subnet => "subnet",
            Target::Pool => "pool",
            Target::Reservation => "reservation",
            Target::Endpoint => "endpoint",
            Target::Attachment => "attachment",
            Target::Allocation => "allocation",
            Target::Address => "address",
            Target::Event => "event",
            Target::Cluster => "cluster",
            Target::Token => "token",
            Target::Metrics => "metrics",
            Target::Backup => "backup",
            Target::Node => "node",
            Target::Namespace => "namespace",
            Target::Prefix => "prefix",
            Target::Application => "application",
        }
    }
}

/// Everything that can be done at all.
pub const DEEDS: &[(Verb, Target)] = &[
    (Verb::Read, Target::Network),
    (Verb::Write, Target::Network),
    (Verb::Delete, Target::Network),
    (Verb::Read, Target::Subnet),
    (Verb::Write, Target::Subnet),
    (Verb::Delete, Target::Subnet),
    (Verb::Read, Target::Pool),
    (Verb::Write, Target::Pool),
    (Verb::Delete, Target::Pool),
    (Verb::Read, Target::Reservation),
    (Verb::Write, Target::Reservation),
    (Verb::Delete, Target::Reservation),
    (Verb::Read, Target::Node),
    (Verb::Write, Target::Node),
    (Verb::Delete, Target::Node),
    (Verb::Read, Target::Namespace),
    (Verb::Write, Target::Namespace),
    (Verb::Delete, Target::Namespace),
    (Verb::Read, Target::Endpoint),
    (Verb::Release, Target::Endpoint),
    (Verb::Release, Target::Application),
    (Verb::Read, Target::Attachment),
    (Verb::Release, Target::Attachment),
    (Verb::Read, Target::Allocation),
    (Verb::Allocate, Target::Allocation),
    (Verb::Release, Target::Allocation),
    (Verb::Read, Target::Prefix),
    (Verb::Allocate, Target::Prefix),
    (Verb::Release, Target::Prefix),
    (Verb::Read, Target::Address),
    (Verb::Read, Target::Event),
    (Verb::Delete, Target::Event),
    (Verb::Read, Target::Cluster),
    (Verb::Write, Target::Cluster),
    (Verb::Read, Target::Token),
    (Verb::Write, Target::Token),
    (Verb::Delete, Target::Token),
    (Verb::Renew, Target::Token),
    (Verb::Read, Target::Metrics),
    (Verb::Read, Target::Backup),
];

/// Returns true if a role may apply a verb to a target. [`effect`] has the limits of tokens.
#[must_use]
pub fn may(role: Role, verb: Verb, target: Target) -> bool {
    let kept = matches!(
        target,
        Target::Network
            | Target::Subnet
            | Target::Pool
            | Target::Reservation
            | Target::Node
            | Target::Namespace
    );
    let reads = verb == Verb::Read && !matches!(target, Target::Token | Target::Backup);
    match role {
        // The lifetime of an administrator's token is fixed at its creation.
        Role::Admin => verb != Verb::Renew,
        Role::Viewer => reads,
        Role::Operator => {
            reads
                || (matches!(verb, Verb::Write | Verb::Delete) && kept)
                || matches!(verb, Verb::Allocate | Verb::Release)
        }
        Role::Node => matches!(
            (verb, target),
            (Verb::Allocate, Target::Allocation)
                | (Verb::Release, Target::Attachment | Target::Allocation | Target::Application)
                | (Verb::Read, Target::Attachment | Target::Cluster)
                | (Verb::Renew, Target::Token)
        ),
    }
}

/// Limits of a token besides its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Realms.
    Realms,
    /// Labels.
    Labels,
    /// The node of a node's token.
    Node,
}

impl Limit {
    /// Every kind of limit.
    pub const ALL: [Limit; 3] = [Limit::Realms, Limit::Labels, Limit::Node];

    /// Name of the kind in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Limit::Realms => "realms",
            Limit::Labels => "labels",
            Limit::Node => "node",
        }
    }
}

/// Effect of a limit on a permission of the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The limit changes nothing.
    Free,
    /// Only what belongs to the token's realms, or to its node.
    Own,
    /// Only with the token's explicit grant of shared resources.
    Shared,
    /// Only if everything that the write affects has the token's labels, before and after it.
    Affected,
    /// Only tokens whose rights lie within the caller's own.
    Within,
    /// Never: it concerns the whole cluster.
    Refused,
}

impl Effect {
    /// Name in `/v1/whoami`'s answer and in the table of roles.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Free => "-",
            Effect::Own => "own",
            Effect::Shared => "shared",
            Effect::Affected => "affected",
            Effect::Within => "within",
            Effect::Refused => "refused",
        }
    }

    /// Its meaning, for the generated table.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Effect::Free => "the limit changes nothing",
            Effect::Own => "only what belongs to the token's realms, or to its node",
            Effect::Shared => "only with the token's explicit grant of shared resources (allow_shared)",
            Effect::Affected => {
                "only if everything that the write affects has the token's labels, before and after it"
            }
            Effect::Within => "only tokens whose rights lie within the caller's own",
            Effect::Refused => "never: it concerns the whole cluster",
        }
    }

    /// Every effect.
    pub const ALL: [Effect; 6] =
        [Effect::Free, Effect::Own, Effect::Shared, Effect::Affected, Effect::Within, Effect::Refused];
}

/// Effect of a limit on a permission: the one table that `apply` and the documentation share.
#[must_use]
pub fn effect(limit: Limit, verb: Verb, target: Target) -> Effect {
    if limit == Limit::Node {
        return if may(Role::Node, verb, target) && target != Target::Cluster {
            Effect::Own
        } else {
            Effect::Free
        };
    }
    if verb == Verb::Read {
        return Effect::Free;
    }
    match (target, limit) {
        (Target::Network | Target::Subnet | Target::Pool | Target::Reservation, Limit::Realms) => {
            Effect::Shared
        }
        (
            Target::Node
            | Target::Namespace
            | Target::Endpoint
            | Target::Attachment
            | Target::Allocation
            | Target::Prefix
            | Target::Application,
            Limit::Realms,
        ) => Effect::Own,
        (Target::Token, _) => Effect::Within,
        (Target::Event | Target::Cluster | Target::Metrics | Target::Backup, _) => Effect::Refused,
        _ => Effect::Affected,
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A host of a realm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NodeKey {
    /// Realm of the node.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Name of the node.
    pub name: ObjectName,
}

/// `realm/name`.
impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.realm, self.name)
    }
}
