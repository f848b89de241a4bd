//! Pools as HTTP shows them.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Application, Condition, Labels, Route, ScaleDown};
use crate::address::{AddressRange, Family};
use crate::name::{Name, NetworkAttachment, ObjectName};
use crate::probe::Probing;
use crate::selector::Selector;

crate::named_enum! {
/// Order in which a pool allocates its free addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The next one after the last allocated, cyclically: a freed address comes last.
    #[default]
    Next = "next",
    /// The lowest free one.
    Sequential = "sequential",
    /// Any free one: the next one after a random address.
    Random = "random",
}
}

/// A named set of addresses of one subnet: ranges minus exclusions.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Name of the pool.
    pub name: Name,
    /// The subnet that it is cut from. Can't be changed.
    pub subnet: Name,
    /// The subnet's network, shown for orientation; if sent, it must fit.
    pub network: Option<Name>,
    /// Its addresses; all of the subnet if none are named.
    #[serde(default)]
    pub ranges: Vec<AddressRange>,
    /// Addresses of the ranges that the pool doesn't allocate.
    #[serde(default)]
    pub exclude: Vec<AddressRange>,
    /// Order in which free addresses are allocated.
    #[serde(default)]
    pub strategy: Strategy,
    /// Cooling time of a freed address, in milliseconds of log time.
    #[serde(default = "default_cooling_ms")]
    pub cooling_ms: u64,
    /// True if a cooling address isn't allocated even when no other address is free.
    #[serde(default)]
    pub strict_cooling: bool,
    /// Number of cooling addresses that stay cooling when no other address is free.
    #[serde(default, skip_serializing_if = "crate::request::is_zero")]
    pub cooling_reserve: u64,
    /// True if the pool allocates the edge addresses of its subnet. IPv4: the first and last address; IPv6:
    /// the subnet-router address.
    #[serde(default)]
    pub allow_edges: bool,
    /// Address of the router, instead of the subnet's; never allocated.
    pub gateway: Option<IpAddr>,
    /// Further routes of its hosts, over the subnet's: one stands for the subnet's to the same destination.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// True if requests that name no pool may use this one.
    #[serde(default)]
    pub default: bool,
    /// Realms whose endpoints may use the pool; all if empty. The same applies to the following fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub realms: Vec<Name>,
    /// Nodes whose endpoints may use the pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_names: Vec<ObjectName>,
    /// Labels of nodes whose endpoints may use the pool; ignored if `node_names` isn't empty.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub node_selector: Selector,
    /// Namespaces whose endpoints may use the pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<ObjectName>,
    /// Labels of namespaces whose endpoints may use the pool; ignored if `namespaces` isn't empty.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub namespace_selector: Selector,
    /// Labels of endpoints that may use the pool.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub endpoint_selector: Selector,
    /// Network attachments (Multus names) whose interfaces may use the pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_attachments: Vec<NetworkAttachment>,
    /// Policy for the addresses of sticky endpoints after a scale-down, for requests without one.
    #[serde(default, skip_serializing_if = "ScaleDown::is_usual")]
    pub scale_down: ScaleDown,
    /// True if the pool allocates nothing; releases continue.
    #[serde(default)]
    pub disabled: bool,
    /// True if the pool is deleted once no address is held.
    #[serde(default)]
    pub terminating: bool,
    /// Pool that replaces this one. This pool allocates nothing more; its requesters get addresses of that
    /// pool.
    pub drains_to: Option<Name>,
    /// True if the pool is deleted with its application, once it is empty. Automatic pools only.
    pub reclaim: Option<bool>,
    /// Probes that its addresses need, in place of those of its subnet.
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

fn default_cooling_ms() -> u64 {
    crate::limits::COOLING_MS_DEFAULT
}

/// Numbers of a pool's addresses by state. The states add up to `size`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Number of addresses in all ranges.
    pub size: u64,
    /// Held by endpoints.
    pub allocated: u64,
    /// Freed, and cooling.
    pub cooling: u64,
    /// Seen in use by a stranger.
    pub quarantined: u64,
    /// Kept by reservations.
    pub reserved: u64,
    /// Excluded, gateway and edges included.
    pub excluded: u64,
    /// Free for allocation.
    pub free: u64,
    /// True if a number above exceeds 2^53 − 1, the exact range of JSON, and is shown as that.
    pub saturated: bool,
}

/// Type of the condition of a pool with an allocated address for which two stations answer.
pub const IP_COLLISION: &str = "IPCollision";
/// Reason of that condition.
pub const TWO_STATIONS: &str = "TwoStations";
/// Meaning of that reason.
pub const COLLISION_MEANING: &str =
    "Two stations answer probes of an allocated address; the condition is absent otherwise.";

/// Status of a pool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolStatus {
    /// The state that this was read from.
    pub revision: u64,
    /// Address family of the subnet.
    pub family: Family,
    /// CIDR of the subnet.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub cidr: IpNet,
    /// Numbers of addresses by state.
    pub counts: Counts,
    /// Held or cooling addresses that a reservation covers now. They count in their state, and aren't
    /// allocated again.
    #[serde(default)]
    pub reserved_while_held: u64,
    /// Application of an automatic pool, which alone may use it.
    pub application: Option<Application>,
    /// Conditions of the pool.
    pub conditions: Vec<Condition>,
}
