//! What clients ask for beyond plain resources: allocations and their attachments.

mod automatic;
mod prefix;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::address::{AddressRange, Family};
use crate::name::{InterfaceName, Name, NamePattern, NetworkAttachment, ObjectName};
use crate::resource::{
    Allocation, Condition, Controller, EndpointKey, Interface, Labels, Lease, Lifecycle, Route, ScaleDown,
};

pub use automatic::{AutomaticPool, EndRequest};
pub use prefix::{DelegateRequest, Delegated, PrefixLevel, PrefixReleased};

/// What CNI calls an attachment, on a node of a realm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AttachmentKey {
    /// The node's realm.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// The node's name.
    pub node: ObjectName,
    /// `name` of the network configuration.
    pub config: ObjectName,
    /// The container's id.
    pub container_id: ObjectName,
    /// The interface's name.
    pub interface: InterfaceName,
}

impl std::fmt::Display for AttachmentKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}/{}/{}", self.realm, self.node, self.config, self.container_id, self.interface)
    }
}

/// When the asking process began, on a clock that only its machine has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// `/proc/sys/kernel/random/boot_id` of the machine.
    pub boot_id: String,
    /// `CLOCK_BOOTTIME` as the process read it first, in microseconds.
    pub at_us: u64,
    /// The kernel's start time of the process: field 22 of `/proc/self/stat`, in ticks of 10 ms since boot. It decides
    /// where two processes of one boot have different ticks; otherwise `at_us` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
}

/// One interface of an allocation request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InterfaceRequest {
    /// Its name.
    pub name: InterfaceName,
    /// Subnets to take from, in this order where their pools are equally specific. What else names pools doesn't
    /// count then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Name>,
    /// IPv4 pools to try, in this order where they are equally specific. Names may have wildcards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv4_pools: Vec<NamePattern>,
    /// IPv6 pools to try, in the same way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6_pools: Vec<NamePattern>,
    /// IPv4 pools to try where neither this request nor the endpoint's namespace names any of either family: those of
    /// a node's configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_ipv4_pools: Vec<NamePattern>,
    /// IPv6 pools to try, in the same case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_ipv6_pools: Vec<NamePattern>,
    /// Families of which it needs an address; without any, those of which the pools that apply have some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<Family>,
    /// Addresses asked for by value; the rest is chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// The interface's hardware address, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The network attachment that it is made by; without it the attachment's `config`, on its own interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_attachment: Option<NetworkAttachment>,
    /// Whether its routers get no default route.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean_gateway: bool,
}

impl InterfaceRequest {
    /// An interface of which nothing is said.
    #[must_use]
    pub fn blank(name: InterfaceName) -> Self {
        Self {
            name,
            subnets: Vec::new(),
            ipv4_pools: Vec::new(),
            ipv6_pools: Vec::new(),
            default_ipv4_pools: Vec::new(),
            default_ipv6_pools: Vec::new(),
            families: Vec::new(),
            addresses: Vec::new(),
            mac: None,
            network_attachment: None,
            clean_gateway: false,
        }
    }
}

/// `POST /v1/allocations`: addresses for one endpoint, all or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AllocateRequest {
    /// Who gets them.
    pub endpoint: EndpointKey,
    /// The endpoint's incarnation, as the system that named it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The endpoint's labels, by which pools select.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The node where they will be, if on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<ObjectName>,
    /// The attachment that they belong to; makes them `attached`. Its interface must be among the interfaces; the
    /// others are allocated with it, all or none, and wait *preallocated* for their own. The whole list may be repeated
    /// with each: what the endpoint has already isn't asked for again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<AttachmentKey>,
    /// What makes the endpoint and counts it. Endpoints of a `StatefulSet`, `VirtualMachine` or
    /// `VirtualMachineInstance` are sticky: they keep their addresses when they go, for when they come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// How many endpoints the controller wants, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Whether the endpoint is sticky, where its controller doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky: Option<bool>,
    /// What becomes of a sticky endpoint's addresses when its controller no longer wants it; without it each pool
    /// says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<ScaleDown>,
    /// When they end; `attached` with an attachment, else `held`.
    /// When they end; `attached` with an attachment, `leased` with `ttl_ms`, else `held`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// The interfaces that need addresses.
    pub interfaces: Vec<InterfaceRequest>,
    /// The pools that the endpoint's application has for itself, in subnets that interfaces name. Needs `controller`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic_pool: Option<AutomaticPool>,
    /// Further routes, default routes among them. Each is of the interface in whose subnet its gateway is, the first
    /// that is named here, and stands for any of the subnet's to the same destination. Kept with the addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The one of the interfaces whose routers get a default route; without it those of each, unless it says
    /// `clean_gateway`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_route_interface: Option<InterfaceName>,
    /// Annotations of Spiderpool, as they stand on a pod: they mean what the other fields say in our own words, and may
    /// not contradict them. Those of others are left alone.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    /// When the asking process began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Started>,
    /// How long a lease lasts without being renewed, in log time; the same request again renews it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Whether the interfaces have these addresses already, and they are only recorded. Skips selectors, disabled
    /// pools, reservations and cooling; never takes what somebody holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    /// Whether to wait while pools can't give: the endpoint stays in line, and is given what it asked for as soon
    /// as that is possible. Not with an attachment or an address by value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// What the machine calls itself in DNS. Like the description kept from the request that was given something;
    /// a repetition changes neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The answer to an allocation request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allocated {
    /// Who got them.
    pub endpoint: EndpointKey,
    /// What each interface got.
    pub interfaces: Vec<Interface>,
    /// Whether an earlier request had already got them and this one changed nothing.
    pub repeated: bool,
    /// Why it waits, if it was given nothing and waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Condition>,
    /// The state in which they were given.
    pub revision: u64,
}

/// `POST /v1/attachments/release`: what CNI DEL asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseAttachmentRequest {
    /// Which attachment.
    pub attachment: AttachmentKey,
    /// When the asking process began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Started>,
}

/// Some ranges of a pool shall be a pool of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SplitRequest {
    /// The new pool's name.
    pub into: Name,
    /// What of the old one's ranges is the new one's.
    pub ranges: Vec<AddressRange>,
}

/// Another pool shall stand in for a pool, which gives nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// The other pool.
    pub to: Name,
}

/// The answer to draining a pool: whom it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drained {
    /// The pool that gives nothing more.
    pub pool: Name,
    /// The one that stands in for it.
    pub to: Name,
    /// Addresses that are still held in it.
    pub held: u64,
    /// Who holds them, the lowest addresses first, 1000 at most: each moves when it asks anew.
    pub affected: Vec<Allocation>,
    /// The state after it.
    pub revision: u64,
}

/// `POST /v1/controllers/scale`: how many endpoints a controller wants from now on. Sticky ones that it no longer
/// wants lose their addresses, unless they are to be kept; those that still live lose them when they go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScaleRequest {
    /// Its realm.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Its namespace.
    #[serde(default = "ObjectName::default_name")]
    pub namespace: ObjectName,
    /// Which one. With a uid, endpoints of another incarnation of it are left alone.
    pub controller: Controller,
    /// How many endpoints it wants; of one that doesn't number them, any number but 0 means all.
    pub replicas: u32,
    /// The first number behind their names.
    #[serde(default)]
    pub start: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The answer to a release: which addresses are free of their holder now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Released {
    /// The addresses; none if there was nothing to release. At most 65,536 of them.
    pub addresses: Vec<IpAddr>,
    /// Number of released addresses beyond those listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// True if nothing was released because the request came late: the attachment's ADD began after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The state after it.
    pub revision: u64,
}

/// `POST …/renew` of an allocation or an endpoint. Without a body each lease lasts as long again as before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// How long from now, in log time; as before without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Renewed {
    /// Each lease as it stands now, the oldest first. At most 65,536 of them.
    pub leases: Vec<RenewedLease>,
    /// Number of renewed leases beyond those listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// The state after it.
    pub revision: u64,
}

/// A lease that was renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenewedLease {
    /// The allocation's id.
    pub allocation: u64,
    /// Its address.
    pub address: IpAddr,
    /// When it ends now.
    pub lease: Lease,
}

/// `GET /v1/attachments/{realm}/{node}/{config}/{container id}/{interface}`: what CNI CHECK asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attachment {
    /// Which attachment.
    pub attachment: AttachmentKey,
    /// Who holds its addresses.
    pub endpoint: EndpointKey,
    /// The interface with its addresses.
    pub interface: Interface,
    /// The state that this was read from.
    pub revision: u64,
}
