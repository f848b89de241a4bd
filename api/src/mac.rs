//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::name::shown;
use crate::problem::{Code, Problem};

/// Ethernet address (MAC-48). JSON has six octets in hexadecimal with colons; log entries have the octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// Creates an address from its octets.
    #[must_use]
    pub fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// Returns true for an address of one station: neither a group address nor zero (IEEE 802, 9.2).
    #[must_use]
    pub fn is_unicast(self) -> bool {
        let [first, ..] = self.0;
        first & 1 == 0 && self.0 != [0; 6]
    }

    /// Octets of the address.
    #[must_use]
    pub fn octets(self) -> [u8; 6] {
        self.0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddress {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let octets = text.split(':').map(|octet| {
            let is_octet = octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit());
            u8::from_str_radix(octet, 16).ok().filter(|_| is_octet)
        });
        let octets = octets.collect::<Option<Vec<u8>>>().and_then(|octets| octets.try_into().ok());
        octets.map(Self).ok_or_else(|| {
            let detail =
                format!("{} is no MAC address; write six octets like 02:00:00:00:00:01", shown(text));
            Problem::new(Code::InvalidField, detail)
        })
    }
}

impl Serialize for MacAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for MacAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(|problem: Problem| D::Error::custom(problem))
        } else {
            <[u8; 6]>::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_address_has_six_octets() {
        let mac: MacAddress = "02:00:5E:00:53:0f".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:00:53:0f");
        assert_eq!(mac.octets(), [2, 0, 0x5e, 0, 0x53, 0x0f]);
        assert_eq!(serde_json::from_str::<MacAddress>("\"02:00:5e:00:53:0f\"").unwrap(), mac);
        assert!(mac.is_unicast());
        for group in ["00:00:00:00:00:00", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff"] {
            assert!(!group.parse::<MacAddress>().unwrap().is_unicast(), "{group}");
        }
        for odd in [
            "",
            "02:00:5e:00:53",
            "02:00:5e:00:53:0f:00",
            "2:0:5e:0:53:f",
            "02-00-5e-00-53-0f",
            "+2:00:5e:00:53:0f",
        ] {
            assert!(odd.parse::<MacAddress>().is_err(), "{odd}");
        }
    }
}
