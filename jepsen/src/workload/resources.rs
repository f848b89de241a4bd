//! Resources that workloads prepare: subnets and pools in an address space of their own.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use ipam_api::client::Call;
use serde_json::{Value, json};

use super::Server;

/// Network of all workloads without one of their own.
pub(super) const NETWORK: &str = "default";
/// Timeout of the preparation of one resource.
const PREPARE: Duration = Duration::from_secs(30);

/// Address space of a workload, by its position in the list of all workloads, from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Space(pub(super) u8);

impl Space {
    /// IPv4 address of 10.(100 + position).0.0/16.
    #[must_use]
    pub(super) fn ipv4(self, third: u8, fourth: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 100_u8.saturating_add(self.0), third, fourth)
    }

    /// CIDR of all IPv4 addresses.
    #[must_use]
    pub(super) fn ipv4_cidr(self) -> String {
        format!("{}/16", self.ipv4(0, 0))
    }

    /// CIDR of all IPv6 addresses.
    #[must_use]
    pub(super) fn ipv6_cidr(self) -> String {
        let base = Ipv6Addr::new(0xfd00, 100 + u16::from(self.0), 0, 0, 0, 0, 0, 0);
        format!("{base}/48")
    }

    /// IPv6 address with this last segment.
    #[must_use]
    pub(super) fn ipv6(self, last: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 100 + u16::from(self.0), 0, 0, 0, 0, 0, last)
    }

    /// Range of IPv4 addresses in a /24.
    #[must_use]
    pub(super) fn range(self, third: u8, first: u8, last: u8) -> String {
        format!("{}-{}", self.ipv4(third, first), self.ipv4(third, last))
    }
}

/// Creates a subnet with this CIDR.
pub(super) async fn make_subnet(admin: &dyn Server, name: &str, cidr: String) -> Result<()> {
    make(admin, "subnets", name, json!({"name": name, "cidr": cidr})).await
}

/// Creates a pool, with these settings besides its name and subnet.
pub(super) async fn make_pool(admin: &dyn Server, name: &str, subnet: &str, settings: Value) -> Result<()> {
    make(admin, "pools", name, pool(name, subnet, settings)).await
}

/// Specification of a pool that reuses addresses at once, unless the settings say otherwise.
#[must_use]
pub(super) fn pool(name: &str, subnet: &str, settings: Value) -> Value {
    let mut pool = json!({"name": name, "subnet": subnet, "cooling_ms": 0});
    if let (Some(pool), Value::Object(settings)) = (pool.as_object_mut(), settings) {
        pool.extend(settings);
    }
    pool
}

/// Revision of the specification of a resource, as `If-Match` takes it.
#[must_use]
pub(super) fn revision_of(resource: &Value) -> Option<u64> {
    resource.pointer("/meta/revision")?.as_u64()
}

/// Puts a resource, before any fault.
pub(super) async fn make(admin: &dyn Server, plural: &str, name: &str, body: Value) -> Result<()> {
    let call = Call::put(format!("/v1/{plural}/{name}")).json(&body)?.within(PREPARE);
    admin.send(call).await.with_context(|| format!("{plural}/{name} can't be created"))?;
    Ok(())
}
