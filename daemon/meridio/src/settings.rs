//! Settings of the front end.

use std::time::Duration;

use ipam_api::address::Family;
use ipam_api::name::Name;
use ipnet::IpNet;

/// Trench that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name of the trench; calls for another one are refused.
    pub trench: String,
    /// Realm of the owners of conduits, nodes and children.
    pub realm: Name,
    /// Network of the subnets. Trenches with equal prefixes need different networks.
    pub network: Name,
    /// Families of the trench, one or two.
    pub families: Vec<FamilySettings>,
    /// TTL of nodes, and of children other than `bridge`, in milliseconds of log time. None: no expiry.
    pub ttl_ms: Option<u64>,
    /// True to report each error as `UNKNOWN`, as Meridio does.
    pub compat: bool,
    /// Service that lists the conduits; without it, clients of the REST API list them.
    pub nsp: Option<NspSettings>,
}

/// One family of a trench.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilySettings {
    /// Family of the prefix.
    pub family: Family,
    /// Prefix of the trench: the CIDR of its subnet.
    pub prefix: IpNet,
    /// Length of the prefix of a conduit.
    pub conduit_length: u8,
    /// Length of the prefix of a node.
    pub node_length: u8,
    /// Name of the pool, and of its subnet.
    pub pool: Name,
}

/// Service that lists the conduits (Meridio's NSP).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NspSettings {
    /// Host and port.
    pub address: String,
    /// Interval of the pings on an idle connection.
    pub keepalive: Duration,
    /// Longest pause before the next attempt to connect.
    pub backoff_max: Duration,
}

impl Settings {
    /// Settings of a family; none if the trench has no addresses of it.
    #[must_use]
    pub fn family(&self, family: Family) -> Option<&FamilySettings> {
        self.families.iter().find(|settings| settings.family == family)
    }
}
