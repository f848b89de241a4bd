//! Maps: states of addresses as runs, and holders of a pool's addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Counts;
use crate::name::{Name, ObjectName};

/// A part of the map of a pool or of a subnet.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressMap {
    /// Consecutive runs of addresses, in order.
    pub items: Vec<AddressRun>,
    /// The state that this was read from.
    pub revision: u64,
    /// Cursor of the next page, for `from`; absent on the last. The last run may continue there.
    pub next: Option<IpAddr>,
}

/// Addresses in a row that are all in one state, and in one pool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressRun {
    /// First address of the run.
    pub first: IpAddr,
    /// Last address of the run.
    pub last: IpAddr,
    /// Number of addresses; 2^53 − 1 if there are more.
    pub size: u64,
    /// State: `allocated`, `quarantined`, `cooling`, `reserved`, `excluded`, `free` or `unmanaged`.
    /// `unmanaged` addresses are outside all pools.
    pub state: String,
    /// The pool that owns them, if one does.
    pub pool: Option<Name>,
    /// True if a reservation covers held or cooling addresses: they aren't allocated again afterwards.
    pub reserved_while_held: bool,
}

/// The subnets of a network, by address.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkMap {
    /// Subnets with what is in them.
    pub items: Vec<SubnetSums>,
    /// The state that this was read from.
    pub revision: u64,
    /// Cursor of the next page, for `from`; absent on the last.
    pub next: Option<IpAddr>,
}

/// A subnet with what all of its pools have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubnetSums {
    /// Name of the subnet.
    pub subnet: Name,
    /// CIDR of the subnet.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub cidr: IpNet,
    /// Number of pools.
    pub pools: u64,
    /// Sums over the pools.
    pub counts: Counts,
}

/// Namespaces that hold addresses of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holders {
    /// Namespaces, the one that holds most first.
    pub items: Vec<NamespaceHolds>,
    /// Number of namespaces that hold addresses.
    pub namespaces: u64,
    /// Addresses that were counted, the lowest ones.
    pub counted: u64,
    /// True if the list contains all of them.
    pub complete: bool,
    /// The state that this was read from.
    pub revision: u64,
}

/// Addresses of a pool that one namespace holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceHolds {
    /// Realm of the namespace.
    pub realm: Name,
    /// Name of the namespace.
    pub namespace: ObjectName,
    /// Addresses that its endpoints hold.
    pub allocated: u64,
}
