//! The resources as HTTP shows them: flat, with two read-only islands, `meta` and `status`.
//!
//! Everything outside the islands is somebody's spec and can be sent back as it is.

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

use crate::address::{AddressRange, Family};
use crate::name::{InterfaceName, Name, ObjectName};
use crate::request::AttachmentKey;
use crate::time::Timestamp;

pub use application::{Application, ApplicationStanding};
pub use controller::{Controller, ScaleDown};
pub use endpoint::{EndpointKey, EndpointKind};
pub use lease::Lease;
pub use map::{AddressMap, AddressRun, Holders, NamespaceHolds, NetworkMap, SubnetSums};
pub use namespace::{HeldAddresses, Namespace, NamespaceStatus};
pub use node::{Node, NodeStatus};
pub use pool::{Counts, Pool, PoolStatus, Strategy};
pub use pool_size::PoolSize;
pub use prefix::Prefix;
pub use quota::{AddressLimits, ApplicationQuota, Quota};

/// Labels or annotations.
pub type Labels = BTreeMap<String, String>;

/// A resource as it is read: the spec, and the two islands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resource<Spec, Status> {
    /// What somebody wants.
    #[serde(flatten)]
    pub spec: Spec,
    /// Identity and history of the spec.
    pub meta: Meta,
    /// What is the case.
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
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: String,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Who last changed it.
    pub updated_by: String,
}

/// One fact about a resource that may hold or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition {
    /// What it is about; `Ready` on every pool.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word why.
    pub reason: String,
    /// A sentence, or nothing.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

/// An address space in which addresses are unique.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Its name.
    pub name: Name,
    /// A sentence for people.
    #[serde(default)]
    pub description: String,
    /// For selecting.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Who keeps it in another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// What a network has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkStatus {
    /// Its subnets.
    pub subnets: u64,
    /// Addresses held in it.
    pub allocated: u64,
    /// What all of its pools have, added up.
    #[serde(default)]
    pub counts: Counts,
}

/// A route that hosts get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Where to.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub destination: IpNet,
    /// Through whom; inside the subnet.
    pub gateway: IpAddr,
}

/// Name resolution that a subnet's hosts get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dns {
    /// Name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nameservers: Vec<IpAddr>,
    /// The local domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Search list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Resolver options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Rules for automatic pools of a subnet. `{}` allows them anywhere in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AutomaticRules {
    /// Addresses that they may have; all of the subnet if none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<AddressRange>,
    /// Addresses that none of them has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<AddressRange>,
    /// Addresses of one of them at most; 1024 if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u32>,
}

/// A CIDR of a network, from which pools are cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Subnet {
    /// Its name.
    pub name: Name,
    /// The network that it is part of. Can't be changed.
    #[serde(default = "Name::default_name")]
    pub network: Name,
    /// Its addresses. Can't be changed.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::SubnetCidr"))]
    pub cidr: IpNet,
    /// The router's address; never given out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// 802.1Q id, 0 to 4094; 0 and none both mean untagged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// The largest packet of its hosts, in bytes: 68 (IPv6: 1280) to 65535. CNI says it from version 1.1.0 on, of routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Further routes of its hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Name resolution of its hosts.
    #[serde(default)]
    pub dns: Dns,
    /// Automatic pools that may be cut from it; without it none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<AutomaticRules>,
    /// A sentence for people.
    #[serde(default)]
    pub description: String,
    /// For selecting.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Who keeps it in another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// What a subnet has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubnetStatus {
    /// Its family.
    pub family: Family,
    /// Its pools.
    pub pools: u64,
    /// Addresses held in it.
    pub allocated: u64,
    /// What its pools have, added up. Addresses that one of them excludes and another one has count for both.
    #[serde(default)]
    pub counts: Counts,
}

/// Addresses that no pool of a network ever gives out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// Its name.
    pub name: Name,
    /// The network that it is about. Can't be changed.
    #[serde(default = "Name::default_name")]
    pub network: Name,
    /// The addresses; either family.
    pub addresses: Vec<AddressRange>,
    /// A sentence for people.
    #[serde(default)]
    pub description: String,
    /// For selecting.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Who keeps it in another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// What a reservation has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReservationStatus {
    /// Addresses that it covers and that somebody holds nevertheless, from before.
    pub held: u64,
}

/// When an allocation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// With its attachment.
    Attached,
    /// By log time.
    Leased,
    /// When somebody says so; no task ever reclaims it.
    Held,
}

impl std::fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Lifecycle::Attached => "attached",
            Lifecycle::Leased => "leased",
            Lifecycle::Held => "held",
        })
    }
}

/// A workload or machine that holds addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Endpoint {
    /// Which one.
    #[serde(flatten)]
    pub key: EndpointKey,
    /// Its incarnation, as the system that named it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Whether it keeps its addresses when it goes, for when it comes back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sticky: bool,
    /// What makes it and counts it, where it is sticky.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// What becomes of its addresses when its controller no longer wants it; without it each pool says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<ScaleDown>,
}

/// What an endpoint has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndpointStatus {
    /// Its interfaces with their addresses.
    pub interfaces: Vec<Interface>,
    /// `Ready`, while it waits for addresses: `False`, with `PoolExhausted`, `PoolNotReady` or `AllocationFailed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One interface of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interface {
    /// Its name.
    pub name: InterfaceName,
    /// The attachment that has them, if any; of several the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<AttachmentKey>,
    /// Other attachments that have them too: where it was, during a live migration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_attached: Vec<AttachmentKey>,
    /// Whether they wait for the endpoint to come back: it is sticky, and attached nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Whether they wait for the interface's own ADD: another interface of the endpoint is attached, this one isn't yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preallocated: bool,
    /// Its addresses, IPv4 first.
    pub addresses: Vec<GivenAddress>,
}

/// One address that was given, with all that is needed to configure it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GivenAddress {
    /// The address with the prefix length of its subnet.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub address: IpNet,
    /// The router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Whether the router gets no default route.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean_gateway: bool,
    /// Further routes: the subnet's, then the request's. A default route among them stands for the router's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Name resolution.
    #[serde(default)]
    pub dns: Dns,
    /// 802.1Q id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// The largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Where it was taken from.
    pub pool: Name,
    /// The allocation's id.
    pub allocation: u64,
    /// Whether the wire was asked and was silent.
    pub checked: bool,
    /// When it ends, if it is leased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The interface's hardware address, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// What the machine calls itself in DNS, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// One address held by one interface of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allocation {
    /// The revision that created it; never comes back.
    pub id: u64,
    /// The address with the prefix length of its subnet.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub address: IpNet,
    /// Its network.
    pub network: Name,
    /// Its subnet.
    pub subnet: Name,
    /// Its pool.
    pub pool: Name,
    /// Who holds it.
    pub endpoint: EndpointKey,
    /// The interface that has it.
    pub interface: InterfaceName,
    /// The node where it is, if on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<ObjectName>,
    /// When it ends.
    pub lifecycle: Lifecycle,
    /// When its lease ends, if it is leased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The interface's hardware address, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// What the machine calls itself in DNS, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether the wire was asked and was silent.
    pub checked: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
}

/// What is known of one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Its network.
    pub network: Name,
    /// The subnet that it is in, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Name>,
    /// The pool that it is in, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Name>,
    /// `allocated`, `quarantined`, `cooling`, `reserved`, `excluded`, `free`, or `unmanaged` outside all pools.
    pub state: String,
    /// Its allocation, when it is allocated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// The smallest prefix that it is in, if it is in one: it is its owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
    /// For how much log time it still cools, when it is cooling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooling_ms: Option<u64>,
    /// The reservation that covers it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Name>,
    /// The state that this was read from.
    pub revision: u64,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Page<Item> {
    /// The items.
    pub items: Vec<Item>,
    /// The state that they were read from.
    pub revision: u64,
    /// Where the next page begins; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many items there are on all pages, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}
