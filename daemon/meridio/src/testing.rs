//! Values for tests, of this crate and of its integration tests.

#![allow(clippy::unwrap_used, reason = "tests")]

use ipam_api::address::Family;
use ipam_api::name::Name;

use crate::settings::{FamilySettings, Settings};
use crate::wire::ipam::v1::{Child, Subnet};
use crate::wire::nsp::v1::{Conduit, Trench};

/// Dual-stack trench with the defaults of Meridio.
///
/// # Panics
/// Never: all names are valid.
#[must_use]
pub fn settings() -> Settings {
    let name = |text| Name::new(text).unwrap();
    let family = |family, prefix: &str, conduit_length, node_length, pool| FamilySettings {
        family,
        prefix: prefix.parse().unwrap(),
        conduit_length,
        node_length,
        pool: name(pool),
    };
    Settings {
        trench: "default".to_owned(),
        realm: name("default"),
        network: name("meridio-default"),
        families: vec![
            family(Family::V4, "169.255.0.0/16", 20, 24, "default-ipv4"),
            family(Family::V6, "fd00::/48", 56, 64, "default-ipv6"),
        ],
        ttl_ms: Some(2_400_000),
        compat: false,
        nsp: None,
    }
}

/// Child of the trench.
#[must_use]
pub fn child(conduit: &str, node: &str, name: &str, ip_family: i32) -> Child {
    let trench = Some(Trench { name: "default".to_owned() });
    let conduit = Some(Conduit { name: conduit.to_owned(), trench });
    Child { name: name.to_owned(), subnet: Some(Subnet { conduit, node: node.to_owned(), ip_family }) }
}
