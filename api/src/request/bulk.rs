//! Requests for many endpoints or allocations: all or none.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{AutomaticPool, InterfaceRequest};
use crate::name::{Name, ObjectName};
use crate::resource::{Controller, Dns, EndpointKind, Labels, Lifecycle, Route, ScaleDown};

/// `POST /v1/allocations/bulk`: addresses for many endpoints of a kind in one namespace, all or none. Each
/// endpoint gets what a request of its own would get; one that has its addresses already keeps them.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BulkAllocateRequest {
    /// Kind of the endpoints.
    pub kind: EndpointKind,
    /// Realm of the endpoints.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Namespace of the endpoints.
    #[serde(default = "ObjectName::default_name")]
    pub namespace: ObjectName,
    /// Names of the endpoints, each once.
    pub names: Vec<ObjectName>,
    /// Interface of each endpoint that needs addresses. Addresses, a MAC address, link addresses and
    /// `clean_gateway` are those of one endpoint, and not permitted.
    pub interface: InterfaceRequest,
    /// Labels of the endpoints, by which pools select.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The node where they will be, if on one.
    pub node: Option<ObjectName>,
    /// Controller that creates the endpoints.
    pub controller: Option<Controller>,
    /// Number of replicas that the controller wants, if known.
    pub replicas: Option<u32>,
    /// True if the endpoints are sticky; for controllers that don't imply it.
    pub sticky: Option<bool>,
    /// Policy for the addresses of sticky endpoints after a scale-down.
    pub scale_down: Option<ScaleDown>,
    /// The pools that the application has for itself, in subnets that the interface names. Needs
    /// `controller`.
    pub automatic_pool: Option<AutomaticPool>,
    /// End of the allocations: `leased` with `ttl_ms`, else `held`.
    pub lifecycle: Option<Lifecycle>,
    /// TTL of the leases, in milliseconds of log time; repeating the request renews them.
    pub ttl_ms: Option<u64>,
    /// Description of each allocation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The answer to a bulk allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkAllocated {
    /// Addresses in the order of the names; of one endpoint the oldest first.
    pub allocations: Vec<BulkAllocation>,
    /// Pools of the addresses, with the configuration that the addresses of a pool share.
    pub pools: Vec<BulkPool>,
    /// Revision of the request.
    pub revision: u64,
}

/// Address of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkAllocation {
    /// Name of the endpoint.
    pub name: ObjectName,
    /// The allocation's id.
    pub allocation: u64,
    /// The address with the prefix length of its subnet.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub address: IpNet,
    /// Pool of the address.
    pub pool: Name,
    /// True if an earlier request had allocated it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// Pool of an answer.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkPool {
    /// Name of the pool.
    pub name: Name,
    /// The pool's subnet.
    pub subnet: Name,
    /// The router.
    pub gateway: Option<IpAddr>,
    /// Further routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Name resolution.
    #[serde(default)]
    pub dns: Dns,
    /// 802.1Q id.
    pub vlan: Option<u16>,
    /// The largest packet, in bytes.
    pub mtu: Option<u32>,
}

/// `POST /v1/allocations/release`: releases these allocations, all or none. One that is gone already makes
/// no difference, so a repetition is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BulkReleaseRequest {
    /// Ids of the allocations.
    pub allocations: Vec<u64>,
}

/// The answer to a bulk release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkReleased {
    /// Released addresses.
    pub addresses: Vec<IpAddr>,
    /// Number of allocations that were gone already.
    pub gone: u64,
    /// Revision of the release.
    pub revision: u64,
}
