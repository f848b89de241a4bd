//! Roles, and the single table of the verbs that each role may apply to each target.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName};
use crate::resource::{EndpointKey, EndpointKind};

crate::named_enum! {
/// Role of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads everything but tokens and backups.
    Viewer = "viewer",
    /// Also writes networks, subnets, pools, reservations and host policies, and allocates and releases
    /// addresses.
    Operator = "operator",
    /// Everything.
    Admin = "admin",
    /// A node's agent or plugin: allocates and releases addresses of its own node only.
    Node = "node",
}
}

crate::named_enum! {
/// Verb of a permission: the operation. New ones are only ever appended (they travel between members by
/// position).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verb {
    /// Looks at it.
    Read = "read",
    /// Creates or changes it.
    Write = "write",
    /// Removes it.
    Delete = "delete",
    /// Allocates addresses.
    Allocate = "allocate",
    /// Takes addresses back.
    Release = "release",
    /// Lets it live longer.
    Renew = "renew",
    /// Reports its state.
    Report = "report",
    /// Frees the addresses of a node that is gone.
    Reclaim = "reclaim",
}
}

crate::named_enum! {
/// Target of a permission: the kind of resource. New ones are only ever appended (they travel between members
/// by position).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Target {
    /// Networks.
    Network = "network",
    /// Subnets.
    Subnet = "subnet",
    /// Pools.
    Pool = "pool",
    /// Reservations.
    Reservation = "reservation",
    /// Endpoints.
    Endpoint = "endpoint",
    /// Attachments.
    Attachment = "attachment",
    /// Allocations.
    Allocation = "allocation",
    /// Single addresses and their history.
    Address = "address",
    /// The journal of events.
    Event = "event",
    /// The cluster and its members.
    Cluster = "cluster",
    /// Tokens.
    Token = "token",
    /// Metrics.
    Metrics = "metrics",
    /// Backups of everything.
    Backup = "backup",
    /// Nodes.
    Node = "node",
    /// Namespaces.
    Namespace = "namespace",
    /// Delegated prefixes.
    Prefix = "prefix",
    /// Applications: controllers with their endpoints and automatic pools.
    Application = "application",
    /// Addresses that foreign hosts use.
    Quarantine = "quarantine",
    /// Host policies.
    HostPolicy = "host-policy",
}
}

/// Lists the verbs of each target.
macro_rules! deeds {
    ($($target:ident: $($verb:ident)+;)+) => { &[$($((Verb::$verb, Target::$target),)+)+] };
}

/// All pairs of a verb and a target that exist.
pub const DEEDS: &[(Verb, Target)] = deeds! {
    Network: Read Write Delete;
    Subnet: Read Write Delete;
    Pool: Read Write Delete;
    Reservation: Read Write Delete;
    Node: Read Write Delete Report Reclaim;
    Namespace: Read Write Delete;
    HostPolicy: Read Write Delete;
    Endpoint: Read Release Report;
    Application: Release;
    Attachment: Read Release;
    Allocation: Read Allocate Release;
    Prefix: Read Allocate Release;
    Address: Read;
    Quarantine: Read Release;
    Event: Read Delete;
    Cluster: Read Write;
    Token: Read Write Delete Renew;
    Metrics: Read;
    Backup: Read;
};

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
            | Target::HostPolicy
    );
    let reads = verb == Verb::Read && !matches!(target, Target::Token | Target::Backup);
    match role {
        // The lifetime of an administrator's token is fixed at its creation.
        Role::Admin => verb != Verb::Renew,
        Role::Viewer => reads,
        Role::Operator => {
            reads
                || (matches!(verb, Verb::Write | Verb::Delete) && kept)
                || matches!(verb, Verb::Allocate | Verb::Release | Verb::Report | Verb::Reclaim)
        }
        Role::Node => matches!(
            (verb, target),
            (Verb::Allocate, Target::Allocation)
                | (
                    Verb::Release,
                    Target::Attachment | Target::Allocation | Target::Application | Target::Endpoint
                )
                | (Verb::Read, Target::Attachment | Target::Endpoint | Target::Cluster)
                | (Verb::Renew, Target::Token)
                | (Verb::Report, Target::Node)
        ),
    }
}

crate::named_enum! {
/// Limits of a token besides its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Realms.
    Realms = "realms",
    /// Labels.
    Labels = "labels",
    /// The node of a node's token.
    Node = "node",
}
}

crate::named_enum! {
/// Effect of a limit on a permission of the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The limit changes nothing.
    Free = "-",
    /// Only what belongs to the token's realms, or to its node.
    Own = "own",
    /// Only with the token's explicit grant of shared resources.
    Shared = "shared",
    /// Only if everything that the write affects has the token's labels, before and after it.
    Affected = "affected",
    /// Only tokens whose rights lie within the caller's own.
    Within = "within",
    /// Never: it concerns the whole cluster.
    Refused = "refused",
}
}

impl Effect {
    /// Meaning of the effect, for the generated table.
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
        (
            Target::Network | Target::Subnet | Target::Pool | Target::Reservation | Target::Quarantine,
            Limit::Realms,
        ) => Effect::Shared,
        (
            Target::Node
            | Target::Namespace
            | Target::HostPolicy
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

impl NodeKey {
    /// Endpoint that represents the node as a host. The node's own token may use it.
    #[must_use]
    pub fn host(&self) -> EndpointKey {
        EndpointKey {
            realm: self.realm.clone(),
            kind: EndpointKind::Host,
            namespace: ObjectName::default_name(),
            name: self.name.clone(),
        }
    }
}

/// Formats as `realm/name`.
impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.realm, self.name)
    }
}
