//! Parts of causes: small closed sets and typed names. Variants are only ever appended.

use crate::value::Text;
use crate::value::counts::Counts;
use crate::value::id::PrefixId;
use crate::value::prefix::PrefixOwner;
use crate::value::words::words;
use ipam_api::name::{InterfaceName, Name, ObjectName, shown};
use ipam_api::resource::EndpointKey;
use ipam_api::{Code, Family};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

words! {
    /// Reason for which a pool rejects a request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RejectReason {
        /// It has no free address.
        Exhausted = "exhausted",
        /// It names other nodes.
        OtherNodes = "for other nodes",
        /// Its node selector doesn't match.
        NodeLabels = "for nodes with other labels",
        /// It has a node selector, and nothing is known of the node.
        NodeUnknown = "for nodes with certain labels, and this node has no description",
        /// It names other namespaces.
        OtherNamespaces = "for other namespaces",
        /// Its namespace selector doesn't match.
        NamespaceLabels = "for namespaces with other labels",
        /// It has a namespace selector, and nothing is known of the namespace.
        NamespaceUnknown = "for namespaces with certain labels, and this namespace has no description",
        /// Its endpoint selector doesn't match.
        EndpointLabels = "for endpoints with other labels",
        /// It names other realms.
        OtherRealms = "for other realms",
        /// It names other network attachments.
        OtherAttachments = "for other network attachments",
        /// It was made for another application.
        OtherApplication = "for endpoints of its application only",
        /// It selects endpoints, and a prefix has none.
        EndpointsOnly = "for certain endpoints only, and prefixes have none",
        /// It is being deleted.
        Terminating = "terminating",
        /// It is disabled.
        Disabled = "disabled",
        /// Another pool stands in for it.
        Drained = "drained to another pool",
        /// It is not confirmed since a restore.
        Unconfirmed = "not confirmed since the restore",
        /// The token demands other labels.
        TokenLabels = "without the labels required by the token",
        /// It is of the other family.
        OtherFamily = "of the other family",
        /// Its subnet has no address of the host's interface.
        OtherLink = "in a subnet without an address of the host's interface",
    }
}

impl RejectReason {
    /// The code of a refusal with this reason alone.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::Exhausted => Code::PoolExhausted,
            Self::Terminating => Code::Terminating,
            Self::Disabled | Self::Drained => Code::PoolDisabled,
            Self::Unconfirmed => Code::EpochUnconfirmed,
            Self::TokenLabels => Code::Forbidden,
            Self::OtherFamily => Code::FamilyMismatch,
            Self::OtherNodes
            | Self::NodeLabels
            | Self::NodeUnknown
            | Self::OtherNamespaces
            | Self::NamespaceLabels
            | Self::NamespaceUnknown
            | Self::EndpointLabels
            | Self::OtherRealms
            | Self::OtherAttachments
            | Self::OtherApplication
            | Self::EndpointsOnly
            | Self::OtherLink => Code::NoPoolFits,
        }
    }
}

impl From<Closed> for RejectReason {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Terminating => Self::Terminating,
            Closed::Disabled => Self::Disabled,
            Closed::Drained => Self::Drained,
            Closed::Unconfirmed => Self::Unconfirmed,
        }
    }
}

/// The reason why a pool allocates nothing, and the counts of its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The pool.
    pub pool: Name,
    /// The reason.
    pub why: RejectReason,
    /// Counts of the pool's addresses by state.
    pub counts: Counts,
}

/// Interface without an address of a family, and its candidate pools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unserved {
    /// The interface.
    pub interface: InterfaceName,
    /// The family.
    pub family: Family,
    /// Milliseconds of log time until the first cooling of these pools ends.
    pub next_free_ms: Option<u64>,
    /// Verdicts on the first candidate pools.
    pub pools: Vec<Verdict>,
    /// Number of all candidate pools.
    pub count: u64,
}

words! {
    /// Reason for which a pool is closed for waiting claims.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Closed {
        /// It is being deleted.
        Terminating = "is being deleted",
        /// It is disabled.
        Disabled = "is disabled",
        /// Another pool stands in for it.
        Drained = "is drained",
        /// It is not confirmed since a restore.
        Unconfirmed = "is not confirmed",
    }
}

words! {
    /// Reason for which a pool never allocates an address of its ranges.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum NeverGiven {
        /// A reservation has it.
        Reserved = "reserved",
        /// It is a gateway.
        Gateway = "the gateway",
        /// It is an edge of the subnet.
        Edge = "an edge address",
        /// The pool excludes it.
        Excluded = "excluded",
    }
}

/// A prefix by its addresses, its owner and its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPrefix {
    /// Id of the prefix.
    pub id: PrefixId,
    /// CIDR of the prefix.
    pub cidr: IpNet,
    /// Owner of the prefix.
    pub owner: PrefixOwner,
}

/// The holder of an address; none if its row no longer exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy(pub Option<EndpointKey>);

/// The use of an address that keeps it from becoming a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsedBy {
    /// An endpoint holds the address.
    Endpoint(HeldBy),
    /// The address belongs to a prefix.
    Prefix(NamedPrefix),
}

/// An address and the endpoint that holds it.
pub type Example = (IpAddr, EndpointKey);

/// The value of a field that never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Constant {
    /// The network.
    Network(Name),
    /// The subnet.
    Subnet(Name),
    /// The CIDR.
    Cidr(IpNet),
    /// The realm.
    Realm(Name),
}

/// The controller of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedController {
    /// Kind of the object, e.g. `StatefulSet`.
    pub kind: Text,
    /// Name of the object in its namespace.
    pub name: ObjectName,
}

impl NamedController {
    pub(crate) fn of(controller: &crate::value::Controller) -> Self {
        Self { kind: controller.kind.clone(), name: controller.name.clone() }
    }
}

words! {
    /// The use of addresses that no host can have.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SpecialUse {
        /// 0.0.0.0/8.
        ThisNetwork = "\"this network\"",
        /// 127.0.0.0/8.
        Loopback = "loopback interfaces",
        /// 224.0.0.0/4, ff00::/8.
        Multicast = "multicast groups",
        /// ::/16.
        SpecialPurpose = "special purposes",
    }
}

words! {
    /// A field with text of a request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum TextField {
        /// `manager`.
        Manager = "manager",
        /// `disk_id`.
        DiskId = "disk_id",
        /// `peer_address`.
        PeerAddress = "peer_address",
        /// `client_url`.
        ClientUrl = "client_url",
        /// `description`.
        Description = "description",
        /// `managed_by`.
        ManagedBy = "managed_by",
        /// A domain of `dns`.
        DnsDomain = "a DNS domain",
        /// An option of `dns`.
        ResolverOption = "a resolver option",
        /// `uid`.
        Uid = "uid",
        /// `controller.uid`.
        ControllerUid = "the uid of a controller",
    }
}

words! {
    /// A field with keys and values.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum KeyedField {
        /// `labels`.
        Labels = "labels",
        /// `annotations`.
        Annotations = "annotations",
    }
}

/// Declares [`Counted`] with the words of each variant: a format string over its field.
macro_rules! counted {
    ($($(#[$note:meta])* $variant:ident $(($field:ident: $type:ty))? = $words:literal,)*) => {
        /// Objects with a limited number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Counted {
            $($(#[$note])* $variant $(($type))?,)*
        }

        impl Counted {
            pub(crate) fn words(self) -> String {
                match self {
                    $(Self::$variant $(($field))? => format!($words),)*
                }
            }
        }
    };
}

counted! {
    /// Steps of a transaction.
    Steps = "steps of a transaction",
    /// Preconditions of a transaction.
    Preconditions = "preconditions",
    /// Members of the cluster.
    Members = "members",
    /// Bytes of an idempotency key.
    KeyBytes = "bytes of an idempotency key",
    /// Name servers.
    NameServers = "name servers",
    /// Search domains.
    SearchDomains = "search domains",
    /// Resolver options.
    ResolverOptions = "resolver options",
    /// Ranges.
    Ranges = "ranges",
    /// Exclusions.
    Exclusions = "exclusions",
    /// Routes.
    Routes = "routes",
    /// Realms of a pool.
    PoolRealms = "realms of a pool",
    /// Nodes of a pool.
    PoolNodes = "nodes of a pool",
    /// Namespaces of a pool.
    PoolNamespaces = "namespaces of a pool",
    /// Network attachments of a pool.
    PoolAttachments = "network attachments of a pool",
    /// Default pools of a namespace, of a family.
    NamespacePools(family: Family) = "{family} default pools of a namespace",
    /// Addresses of a reservation.
    Addresses = "addresses",
    /// Interfaces.
    Interfaces = "interfaces",
    /// Subnets of an interface.
    InterfaceSubnets = "subnets of an interface",
    /// Pools of an interface, of a family.
    InterfacePools(family: Family) = "{family} pools of an interface",
    /// Default pools of an interface, of a family.
    InterfaceDefaultPools(family: Family) = "{family} default pools of an interface",
    /// Requested addresses.
    RequestedAddresses = "requested addresses",
    /// Keys of labels or annotations.
    Keys(field: KeyedField) = "{field}",
    /// Realms of a token.
    TokenRealms = "realms of a token",
    /// Levels of prefixes.
    PrefixLevels = "levels of prefixes",
    /// Pools to confirm.
    PoolsToConfirm = "pools to confirm",
    /// Applications of a quota.
    QuotaApplications = "applications of a quota",
    /// Ranges of the part of a pool that remains.
    RemainingRanges = "ranges of what is left",
    /// Exclusions of the part of a pool that remains.
    RemainingExclusions = "exclusions of what is left",
    /// Waiting claims.
    WaitingClaims = "waiting claims",
    /// Allocations made with a node's grant.
    NodeAllocations = "allocations",
    /// Attachments on a node.
    NodeAttachments = "attachments",
    /// Orphans in one report.
    Orphans = "orphans",
    /// Allocations that an agent observed on one orphan.
    ObservedAllocations = "allocations of an orphan",
    /// Links of a node.
    Links = "links of a node",
    /// Results of probes.
    ProbeResults = "results of probes",
    /// Stations of one result.
    ProbeMacs = "MAC addresses of a result",
    /// Allocations of a reclaim.
    ReclaimedAllocations = "allocations of a reclaim",
    /// Cooling addresses that a pool keeps.
    CoolingReserve = "cooling addresses in reserve",
    /// Addresses of the host's interface.
    LinkAddresses = "addresses of the host's interface",
    /// Pods of one report.
    ReportedPods = "pods of a report",
    /// Uids of one report.
    GonePods = "pods of a report that are gone",
    /// Controllers of one pod.
    PodControllers = "controllers of a pod",
    /// Prefixes of one list.
    ListedPrefixes = "prefixes of a list",
    /// Allocations of a host.
    HostAllocations = "allocations of a host that its own token requests",
    /// Bytes of the desired state of a host policy.
    DesiredStateBytes = "bytes of a desired state",
    /// Captures of a host policy.
    Captures = "captures",
    /// Bytes of the name or the expression of a capture.
    CaptureBytes = "bytes of a capture",
    /// Addresses that a reservation records for an endpoint.
    RecordedAddresses = "addresses of a reservation with an endpoint",
    /// Host policies.
    HostPolicies = "host policies",
    /// Endpoints of a bulk.
    BulkEndpoints = "endpoints of one request",
    /// Allocations of a bulk.
    BulkAllocations = "allocations of one request",
}

/// False claim of a node about an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claimed {
    /// There is no uid, so nothing can be verified.
    Uid,
    /// The pod is on another node.
    Node,
    /// The pod has another name, namespace or kind.
    Name,
    /// The pod does not have this label with this value.
    Label { key: Text },
    /// Another controller controls the pod.
    Controller,
    /// An endpoint that is no pod claims a namespace.
    Namespace,
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid => f.write_str("no uid"),
            Self::Node => f.write_str("a node"),
            Self::Name => f.write_str("a name"),
            Self::Label { key } => write!(f, "a label {}", shown(key)),
            Self::Controller => f.write_str("a controller"),
            Self::Namespace => f.write_str("a namespace"),
        }
    }
}

words! {
    /// Rule that made pools candidates.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Rule {
        /// The request names their subnets.
        Subnets = "subnets",
        /// They were made for the application, in subnets that the request names.
        Automatic = "automatic",
        /// The request names them.
        Request = "request",
        /// They are the namespace's default pools.
        Namespace = "namespace",
        /// The CNI configuration names them.
        Configuration = "configuration",
        /// They are marked as default.
        Default = "default",
    }
}
