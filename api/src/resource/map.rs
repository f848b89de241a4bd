//! Maps: which addresses are in which state, and who holds them.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::Counts;
use crate::name::{Name, ObjectName};

/// A part of the map of a pool or of a subnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressMap {
    /// Addresses in one state, one behind the other, in order.
    pub items: Vec<AddressRun>,
    /// The state that this was read from.
    pub revision: u64,
    /// Where the next page begins, for `from`; absent on the last. The last run may go on there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<IpAddr>,
}

/// Addresses in a row that are all in one state, and in one pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressRun {
    /// The first.
    pub first: IpAddr,
    /// The last.
    pub last: IpAddr,
    /// How many they are; 2^53 − 1 if there are more.
    pub size: u64,
    /// `allocated`, `quarantined`, `cooling`, `reserved`, `excluded`, `free`, or `unmanaged` outside all pools.
    pub state: String,
    /// The pool that owns them, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Name>,
    /// Whether a reservation covers them while they are held or at rest: they aren't given again after that.
    pub reserved_while_held: bool,
}

/// The subnets of a network, by address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkMap {
    /// Subnets with what is in them.
    pub items: Vec<SubnetSums>,
    /// The state that this was read from.
    pub revision: u64,
    /// Where the next page begins, for `from`; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<IpAddr>,
}

/// A subnet with what all of its pools have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubnetSums {
    /// Its name.
    pub subnet: Name,
    /// Its addresses.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub cidr: IpNet,
    /// How many pools it has.
    pub pools: u64,
    /// What they have, added up.
    pub counts: Counts,
}

/// Who holds addresses of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holders {
    /// Namespaces, the one that holds most first.
    pub items: Vec<NamespaceHolds>,
    /// How many namespaces hold something.
    pub namespaces: u64,
    /// Addresses that were counted, the lowest ones.
    pub counted: u64,
    /// Whether these are all that are held.
    pub complete: bool,
    /// The state that this was read from.
    pub revision: u64,
}

/// What a namespace holds of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceHolds {
    /// Its realm.
    pub realm: Name,
    /// Its name.
    pub namespace: ObjectName,
    /// Addresses that its endpoints hold.
    pub allocated: u64,
}
