//! Resources as HTTP shows them: flat, with two read-only objects, `meta` and `status`.
//!
//! All other fields are the spec and can be sent back unchanged.

mod application;
mod controller;
mod endpoint;
mod lease;
mod map;
mod namespace;
mod node;
mod pool;
mod pool_size;
mod prefix;
mod quota;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::address::{AddressRange, Family};
use crate::mac::MacAddress;
use crate::name::{InterfaceName, Name, ObjectName};
use crate::probe::{NeededProbes, Probing};
use crate::request::AttachmentKey;
use crate::time::Timestamp;

pub use application::{Application, ApplicationStanding};
pub use controller::{Controller, ScaleDown};
pub use endpoint::{EndpointKey, EndpointKind};
pub use lease::Lease;
pub use map::{AddressMap, AddressRun, Holders, NamespaceHolds, NetworkMap, SubnetSums};
pub use namespace::{HeldAddresses, Namespace, NamespaceStatus};
pub use node::{Node, NodeStatus};
pub use pool::{COLLISION_MEANING, Counts, IP_COLLISION, Pool, PoolStatus, Strategy, TWO_STATIONS};
pub use pool_size::PoolSize;
pub use prefix::Prefix;
pub use quota::{AddressLimits, ApplicationQuota, Quota};

/// Labels or annotations.
pub type Labels = BTreeMap<String, String>;

/// Resource as it is read: the spec, `meta` and `status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resource<Spec, Status> {
    /// Desired state.
    #[serde(flatten)]
    pub spec: Spec,
    /// Identity and history of the spec.
    pub meta: Meta,
    /// Observed state.
    pub status: Status,
}

/// Identity and history of a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Meta {
    /// Tells a resource from its namesakes before and after it.
    pub id: u64,
    /// Moves when the spec changes, and only then; the `ETag`.
    pub revision: u64,
    /// Creation time.
    pub created_at: Timestamp,
    /// Principal that created the resource.
    pub created_by: String,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Principal of the last change.
    pub updated_by: String,
}

/// One fact about a resource that may hold or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition {
    /// Type of the condition; every pool has `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason in CamelCase, for programs.
    pub reason: String,
    /// A sentence, or nothing.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

/// An address space in which addresses are unique.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Name of the network.
    pub name: Name,
    /// Probes that its addresses need, as far as subnets and pools don't specify others.
    #[serde(default, skip_serializing_if = "Probing::is_empty")]
    pub probing: Probing,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// For selecting.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Name of the external system that manages the resource.
    pub managed_by: Option<String>,
}

/// Status of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkStatus {
    /// Number of subnets.
    pub subnets: u64,
    /// Addresses held in it.
    pub allocated: u64,
    /// Sums over its pools.
    #[serde(default)]
    pub counts: Counts,
}

/// A route that hosts get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Destination of the route.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub destination: IpNet,
    /// Gateway of the route, inside the subnet.
    pub gateway: IpAddr,
}

/// Name resolution that a subnet's hosts get.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dns {
    /// Name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nameservers: Vec<IpAddr>,
    /// The local domain.
    pub domain: Option<String>,
    /// Search list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Resolver options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Rules for automatic pools of a subnet. `{}` allows them anywhere in it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AutomaticRules {
    /// Addresses that they may have; all of the subnet if none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<AddressRange>,
    /// Addresses that no automatic pool contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<AddressRange>,
    /// Maximum number of addresses of one automatic pool; 1024 by default.
    pub max_size: Option<u32>,
}

/// A CIDR of a network, from which pools are cut.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Subnet {
    /// Name of the subnet.
    pub name: Name,
    /// The network that it is part of. Can't be changed.
    #[serde(default = "Name::default_name")]
    pub network: Name,
    /// Its addresses. Can't be changed.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::SubnetCidr"))]
    pub cidr: IpNet,
    /// Address of the router; never allocated.
    pub gateway: Option<IpAddr>,
    /// 802.1Q id, 0 to 4094; 0 and none both mean untagged.
    pub vlan: Option<u16>,
    /// MTU of the subnet's hosts, in bytes: 68 (IPv6: 1280) to 65535. CNI reports it for routes, from version
    /// 1.1.0 on.
    pub mtu: Option<u32>,
    /// Further routes of its hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Name resolution of its hosts.
    #[serde(default)]
    pub dns: Dns,
    /// Automatic pools that may be cut from it; without it none are.
    pub automatic: Option<AutomaticRules>,
    /// Probes that its addresses need, as far as pools don't specify others.
    #[serde(default, skip_serializing_if = "Probing::is_empty")]
    pub probing: Probing,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// For selecting.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Name of the external system that manages the resource.
    pub managed_by: Option<String>,
}

/// Status of a subnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubnetStatus {
    /// Address family of the subnet.
    pub family: Family,
    /// Number of pools.
    pub pools: u64,
    /// Addresses held in it.
    pub allocated: u64,
    /// Sums over its pools. An address that one pool excludes and another contains counts for both.
    #[serde(default)]
    pub counts: Counts,
}

/// Addresses of a network that no pool allocates.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// Name of the reservation.
    pub name: Name,
    /// The network that it is about. Can't be changed.
    #[serde(default = "Name::default_name")]
    pub network: Name,
    /// The addresses; either family.
    pub addresses: Vec<AddressRange>,
    /// Endpoint that uses the addresses, in a pool or outside all pools: a record, by which nothing is
    /// allocated.
    pub endpoint: Option<EndpointKey>,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// For selecting.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Name of the external system that manages the resource.
    pub managed_by: Option<String>,
}

/// Status of a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReservationStatus {
    /// Covered addresses that endpoints still hold from before.
    pub held: u64,
    /// Addresses that are recorded for one endpoint and held by another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<IpAddr>,
}

crate::named_enum! {
/// Lifecycle of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// With its attachment.
    Attached = "attached",
    /// By log time.
    Leased = "leased",
    /// Ends on explicit release; no task ever reclaims it.
    Held = "held",
}
}

/// A workload or machine that holds addresses.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Endpoint {
    /// Key of the endpoint.
    #[serde(flatten)]
    pub key: EndpointKey,
    /// Uid of the incarnation in the external system.
    pub uid: Option<String>,
    /// True if the endpoint keeps its addresses for its return.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sticky: bool,
    /// Controller of a sticky endpoint.
    pub controller: Option<Controller>,
    /// Policy for its addresses after a scale-down; without it the pool's policy applies.
    pub scale_down: Option<ScaleDown>,
}

/// Status of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndpointStatus {
    /// Its interfaces with their addresses.
    pub interfaces: Vec<Interface>,
    /// `Ready`, with status `False` while it waits. Reasons: `PoolExhausted`, `PoolNotReady` or
    /// `AllocationFailed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Reservations that record further addresses of it, the oldest first; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<Recorded>,
}

/// Reservation that records addresses of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorded {
    /// Name of the reservation.
    pub reservation: Name,
    /// Network of the addresses.
    pub network: Name,
    /// The addresses.
    pub addresses: Vec<AddressRange>,
}

/// One interface of an endpoint.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interface {
    /// Name of the interface.
    pub name: InterfaceName,
    /// The attachment that has them, if any; of several the newest.
    pub attachment: Option<AttachmentKey>,
    /// Other attachments that have them too: where it was, during a live migration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_attached: Vec<AttachmentKey>,
    /// True if the addresses wait for a sticky endpoint that is attached nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// True if the addresses wait for the interface's own ADD, while another interface is attached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preallocated: bool,
    /// Its addresses, IPv4 first.
    pub addresses: Vec<GivenAddress>,
}

/// Allocated address with its configuration.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GivenAddress {
    /// The address with the prefix length of its subnet.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub address: IpNet,
    /// The router.
    pub gateway: Option<IpAddr>,
    /// True if the router gets no default route.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean_gateway: bool,
    /// Further routes: the subnet's, then the request's. A default route among them stands for the router's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Name resolution.
    #[serde(default)]
    pub dns: Dns,
    /// 802.1Q id.
    pub vlan: Option<u16>,
    /// The largest packet, in bytes.
    pub mtu: Option<u32>,
    /// Pool of the address.
    pub pool: Name,
    /// The allocation's id.
    pub allocation: u64,
    /// True if a probe found the address unused on the wire.
    pub checked: bool,
    /// Probes that the agent makes before the address is used.
    #[serde(default, skip_serializing_if = "NeededProbes::is_none")]
    pub probes: NeededProbes,
    /// End of the lease, if it is leased.
    pub lease: Option<Lease>,
    /// MAC address of the interface, if known.
    pub mac: Option<String>,
    /// Host name in DNS, if given.
    pub hostname: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// One address held by one interface of one endpoint.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allocation {
    /// Revision that created the allocation; never reused.
    pub id: u64,
    /// The address with the prefix length of its subnet.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub address: IpNet,
    /// Network of the address.
    pub network: Name,
    /// Subnet of the address.
    pub subnet: Name,
    /// Pool of the address.
    pub pool: Name,
    /// Endpoint that holds the address.
    pub endpoint: EndpointKey,
    /// The interface that has it.
    pub interface: InterfaceName,
    /// The node where it is, if on one.
    pub node: Option<ObjectName>,
    /// Lifecycle of the allocation.
    pub lifecycle: Lifecycle,
    /// End of the lease, if it is leased.
    pub lease: Option<Lease>,
    /// MAC address of the interface, if known.
    pub mac: Option<String>,
    /// Host name in DNS, if given.
    pub hostname: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// True if a probe found the address unused on the wire.
    pub checked: bool,
    /// Station that answers probes of the address.
    pub station: Option<MacAddress>,
    /// Another station that answers for the address, too: a collision.
    pub colliding: Option<MacAddress>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Principal that requested it.
    pub created_by: String,
}

/// State of one address.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Network of the address.
    pub network: Name,
    /// The subnet that it is in, if any.
    pub subnet: Option<Name>,
    /// The pool that it is in, if any.
    pub pool: Option<Name>,
    /// State: `allocated`, `quarantined`, `cooling`, `reserved`, `excluded`, `free` or `unmanaged`.
    /// `unmanaged` addresses are outside all pools.
    pub state: String,
    /// Its allocation, when it is allocated.
    pub allocation: Option<Allocation>,
    /// The smallest prefix that it is in, if it is in one: it is its owner's.
    pub prefix: Option<Prefix>,
    /// For how much log time it still cools, when it is cooling.
    pub cooling_ms: Option<u64>,
    /// The reservation that covers it, if any; of several one that records it for an endpoint.
    pub reservation: Option<Name>,
    /// Endpoint that the reservation records it for.
    pub recorded_for: Option<EndpointKey>,
    /// The state that this was read from.
    pub revision: u64,
}

/// One page of a list.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Page<Item> {
    /// The items.
    pub items: Vec<Item>,
    /// The state that they were read from.
    pub revision: u64,
    /// Cursor of the next page; absent on the last.
    pub next: Option<String>,
    /// Number of items on all pages, if requested.
    pub count: Option<u64>,
}
