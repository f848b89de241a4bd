//! Bulk allocation: one request for many endpoints, and its compact answer.

use std::iter;
use std::net::IpAddr;

use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::Route;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::value::id::AllocationId;
use crate::value::{Allocate, Dns};

/// One request for many endpoints of a kind in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocateMany {
    /// Request of the first endpoint; the others have the same one under their own names.
    pub request: Allocate,
    /// Names of the other endpoints.
    pub others: Vec<ObjectName>,
}

impl AllocateMany {
    /// Names of all endpoints, in the order of the answer.
    pub fn names(&self) -> impl Iterator<Item = &ObjectName> {
        iter::once(&self.request.endpoint.name).chain(&self.others)
    }
}

/// Addresses of many endpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedMany {
    /// Pools of the addresses, each once.
    pub pools: Vec<GivenPool>,
    /// Addresses, in the order of the endpoints.
    pub addresses: Vec<GivenTo>,
    /// Indexes of endpoints that had their addresses already, in order.
    pub repeated: Vec<u32>,
}

/// Address of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenTo {
    /// Index of its endpoint in the request.
    pub endpoint: u32,
    pub allocation: AllocationId,
    pub address: IpAddr,
    /// Index of its pool in the answer.
    pub pool: u32,
}

/// Pool of an answer, with the configuration that all of its addresses share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenPool {
    pub name: Name,
    pub subnet: Name,
    /// The subnet's addresses.
    pub cidr: IpNet,
    /// The router.
    pub gateway: Option<IpAddr>,
    /// Further routes of the pool, or else of its subnet.
    pub routes: Vec<Route>,
    /// Name resolution.
    pub dns: Dns,
    /// 802.1Q id.
    pub vlan: Option<u16>,
    /// The largest packet, in bytes.
    pub mtu: Option<u32>,
}
