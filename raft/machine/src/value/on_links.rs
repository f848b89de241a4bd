//! Requests with the addresses of the host's interfaces, encoded after the request itself.

use std::net::IpAddr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Allocate;

/// Allocation request with the `link_addresses` of its interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnLinks(pub Allocate);

impl Serialize for OnLinks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let links: Vec<&[IpAddr]> =
            self.0.interfaces.iter().map(|one| one.link_addresses.as_slice()).collect();
        (&self.0, links).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OnLinks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (mut request, links): (Allocate, Vec<Vec<IpAddr>>) = Deserialize::deserialize(deserializer)?;
        if links.len() != request.interfaces.len() {
            return Err(D::Error::custom("another number of links than of interfaces"));
        }
        for (interface, link) in request.interfaces.iter_mut().zip(links) {
            interface.link_addresses = link;
        }
        Ok(Self(request))
    }
}
