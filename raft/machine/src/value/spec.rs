//! Specs of resources, and requests to allocate and release addresses.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::address::AddressRange;
use ipam_api::name::{InterfaceName, Name, NamePattern, NetworkAttachment, ObjectName, ResourceName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, Lifecycle, Route, ScaleDown, Strategy};
use ipam_api::{Family, Selector};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::value::{
    AllocateOptions, AutomaticPool, AutomaticRules, Probing, Quota, Routing, Stickiness, Text,
};

/// Metadata that each resource can have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    pub description: Text,
    /// Labels for selectors.
    pub labels: BTreeMap<Text, Text>,
    /// Annotations for other programs.
    pub annotations: BTreeMap<Text, Text>,
    /// Name of the external manager of the resource.
    pub managed_by: Option<Text>,
}

/// Desired state of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSpec {
    pub name: Name,
    /// Probes that its addresses need.
    pub probing: Probing,
    /// Metadata of operators.
    pub metadata: Metadata,
}

/// Desired state of a subnet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetSpec {
    pub name: Name,
    pub network: Name,
    /// CIDR of the subnet.
    pub cidr: IpNet,
    /// The router's address.
    pub gateway: Option<IpAddr>,
    /// 802.1Q id.
    pub vlan: Option<u16>,
    /// The largest packet of its hosts, in bytes.
    pub mtu: Option<u32>,
    /// Further routes of its hosts.
    pub routes: Vec<Route>,
    /// Name resolution of its hosts.
    pub dns: Dns,
    /// Rules for automatic pools of the subnet; without them no automatic pool is created.
    pub automatic: Option<AutomaticRules>,
    /// Probes that addresses need; they override the network's.
    pub probing: Probing,
    /// Metadata of operators.
    pub metadata: Metadata,
}

/// Name resolution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    /// Name servers.
    pub nameservers: Vec<IpAddr>,
    /// The local domain.
    pub domain: Option<Text>,
    /// Search list.
    pub search: Vec<Text>,
    /// Resolver options.
    pub options: Vec<Text>,
}

/// Desired state of a pool. The default has all addresses of its subnet, and no cooling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own that people set by name")]
pub struct PoolSpec {
    pub name: Name,
    pub subnet: Name,
    /// Network of the pool, if the caller named one: it must be the subnet's.
    pub network: Option<Name>,
    /// Addresses of the pool; empty for all of the subnet.
    pub ranges: Vec<AddressRange>,
    /// Addresses that the pool doesn't allocate.
    pub exclude: Vec<AddressRange>,
    /// Strategy for the choice of an address.
    pub strategy: Strategy,
    /// Cooling time of a freed address, in log time.
    pub cooling_ms: u64,
    /// True if cooling addresses aren't allocated even when no other is free.
    pub strict_cooling: bool,
    /// Number of cooling addresses that stay cooling when no other address is free.
    pub cooling_reserve: u64,
    /// True if the subnet's edge addresses may be allocated.
    pub allow_edges: bool,
    /// The router's address, in place of the subnet's.
    pub gateway: Option<IpAddr>,
    /// Further routes; they override the subnet's.
    pub routes: Vec<Route>,
    /// True if requests that name no pool may use this one.
    pub default: bool,
    /// Selectors of the requests that it serves.
    pub selectors: PoolSelectors,
    /// Policy for addresses of endpoints that were scaled down, unless the endpoint has its own policy.
    pub scale_down: ScaleDown,
    /// True if the pool allocates nothing for now.
    pub disabled: bool,
    /// True if the pool is deleted once it is empty.
    pub terminating: bool,
    /// Pool that replaces this one. This pool allocates nothing more, and its requesters use the replacement.
    pub drains_to: Option<Name>,
    /// True if the pool is deleted with its application. Automatic pools only.
    pub reclaim: Option<bool>,
    /// Probes that addresses need; they override the subnet's.
    pub probing: Probing,
    /// Metadata of operators.
    pub metadata: Metadata,
}

/// Selectors of a pool: a request matches all of them. An empty one matches every request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSelectors {
    /// Realms of endpoints.
    pub realms: Vec<Name>,
    /// Nodes where endpoints are.
    pub node_names: Vec<ObjectName>,
    /// Labels of nodes; used if no nodes are named.
    pub node_selector: Selector,
    /// Namespaces of endpoints.
    pub namespaces: Vec<ObjectName>,
    /// Labels of namespaces; used if no namespaces are named.
    pub namespace_selector: Selector,
    /// Labels of endpoints.
    pub endpoint_selector: Selector,
    /// Network attachments of their interfaces.
    pub network_attachments: Vec<NetworkAttachment>,
}

/// Desired state of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    pub realm: Name,
    pub name: ObjectName,
    /// Metadata of operators. Pools select nodes by its labels.
    pub metadata: Metadata,
}

impl NodeSpec {
    /// Name of the resource, unique among nodes.
    #[must_use]
    pub fn resource_name(&self) -> ResourceName {
        ResourceName::in_realm(&self.realm, &self.name)
    }
}

/// Desired state of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceSpec {
    pub realm: Name,
    pub name: ObjectName,
    /// Default pools of its endpoints, for requests without pools.
    pub default_pools: PoolPatterns,
    /// Limits of the addresses that it and its applications may have.
    pub quota: Quota,
    /// Metadata of operators. Pools select namespaces by its labels.
    pub metadata: Metadata,
}

impl NamespaceSpec {
    /// Name of the resource, unique among namespaces.
    #[must_use]
    pub fn resource_name(&self) -> ResourceName {
        ResourceName::in_realm(&self.realm, &self.name)
    }
}

/// Pools by their names, which may have wildcards, in the order in which they are tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolPatterns {
    /// IPv4 pools.
    pub ipv4: Vec<NamePattern>,
    /// IPv6 pools.
    pub ipv6: Vec<NamePattern>,
}

impl PoolPatterns {
    /// Returns true if no pool is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ipv4.is_empty() && self.ipv6.is_empty()
    }

    /// Patterns of a family.
    #[must_use]
    pub fn of(&self, family: Family) -> &[NamePattern] {
        match family {
            Family::V4 => &self.ipv4,
            Family::V6 => &self.ipv6,
        }
    }
}

/// Desired state of a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationSpec {
    pub name: Name,
    pub network: Name,
    /// Addresses that are never allocated.
    pub addresses: Vec<AddressRange>,
    /// Endpoint that uses the addresses without an allocation.
    pub endpoint: Option<EndpointKey>,
    /// Metadata of operators.
    pub metadata: Metadata,
}

/// Allocation request of one endpoint: all addresses, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocate {
    /// Endpoint that requests the addresses.
    pub endpoint: EndpointKey,
    /// Uid of its incarnation, if its external system has one.
    pub uid: Option<Text>,
    /// The endpoint's labels.
    pub labels: BTreeMap<Text, Text>,
    /// Node where the addresses will be used.
    pub node: Option<ObjectName>,
    /// Attachment that the addresses belong to.
    pub attachment: Option<AttachmentKey>,
    /// Stickiness of the endpoint.
    pub stickiness: Stickiness,
    /// Lifecycle of the allocations.
    pub lifecycle: Lifecycle,
    /// The interfaces that need addresses.
    pub interfaces: Vec<InterfaceRequest>,
    /// Automatic pools of the endpoint's application, where interfaces name subnets.
    pub automatic_pool: Option<AutomaticPool>,
    /// Start time of the requesting process. Required with an attachment.
    pub started: Option<Started>,
    /// Options of the allocation.
    pub options: AllocateOptions,
    /// Routes of the interfaces.
    pub routing: Routing,
}

/// Needs of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceRequest {
    pub name: InterfaceName,
    /// Subnets whose pools are candidates.
    pub subnets: Vec<Name>,
    /// Pools to try.
    pub pools: PoolPatterns,
    /// Default pools, if neither the request nor the namespace names any.
    pub default_pools: PoolPatterns,
    /// Requested families; empty for those of the available pools.
    pub families: Vec<Family>,
    /// Requested addresses.
    pub addresses: Vec<IpAddr>,
    /// Hardware address of the interface.
    pub mac: Option<Text>,
    /// Network attachment of the interface; without one the CNI configuration of the request's attachment.
    pub network_attachment: Option<NetworkAttachment>,
    /// Addresses of the host's interface that it is connected to; without any, all pools are permitted. Not
    /// in the encoding of a request: [`OnLinks`](super::OnLinks) has them.
    #[serde(skip)]
    pub link_addresses: Vec<IpAddr>,
}

impl InterfaceRequest {
    /// Requested address of a family.
    #[must_use]
    pub fn asked(&self, family: Family) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|address| Family::of(*address) == family)
    }

    /// Returns true if the interface requests a family. An empty list requests each family with a pool.
    #[must_use]
    pub fn takes(&self, family: Family) -> bool {
        self.families.is_empty() || self.families.contains(&family)
    }
}

/// Start time of a process, on the clock of its machine's boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub boot_id: Text,
    /// Boot time as the process read it first, in microseconds.
    pub at_us: u64,
    /// Boot time at which the kernel started the process, in its ticks; nothing if the request has no tick.
    pub start_ticks: Option<u64>,
}

impl Started {
    /// Order of two processes of one boot.
    ///
    /// The kernel's ticks decide where they differ: any delay may lie between a process's start and its own
    /// stamp. This is no order of three processes where one has no tick, so nothing may be concluded from two
    /// comparisons.
    #[must_use]
    pub fn order_in_boot(&self, other: &Self) -> Ordering {
        match (self.start_ticks, other.start_ticks) {
            (Some(own), Some(others)) if own != others => own.cmp(&others),
            _ => self.at_us.cmp(&other.at_us),
        }
    }
}

/// Release of an attachment, requested by CNI DEL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseAttachment {
    pub key: AttachmentKey,
    /// Start time of the requesting process.
    pub started: Started,
}

/// Release of an attachment, with the endpoint that the runtime ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseAttachmentOf {
    pub release: ReleaseAttachment,
    pub endpoint: EndpointKey,
    /// Uid of the incarnation.
    pub uid: Text,
}

/// Maximum 802.1Q id; 4095 is reserved.
pub(crate) const VLAN_MAX: u16 = ipam_api::limits::VLAN_ID_MAX;
/// Maximum size of a boot id in bytes; Linux writes a UUID of 36.
pub(crate) const BOOT_ID_BYTES_MAX: usize = 64;
