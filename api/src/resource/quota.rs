//! Quotas as HTTP shows them: how many addresses a namespace and its applications may have.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::skip_serializing_none;

use crate::name::{ObjectName, shown};
use crate::{Code, Problem};

/// Maximum numbers of addresses of a namespace. Absent values don't limit; held addresses stay.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Maximum number of IPv4 addresses of all its endpoints, automatic pools included.
    pub ipv4: Option<u64>,
    /// Maximum number of IPv6 addresses, counted in the same way.
    pub ipv6: Option<u64>,
    /// Limits of each application: all endpoints with one controller.
    #[serde(default, skip_serializing_if = "AddressLimits::is_empty")]
    pub per_application: AddressLimits,
    /// Limits of individual applications. A family without a limit here has that of `per_application`.
    #[serde(default, deserialize_with = "each_once", skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationQuota>,
}

impl Quota {
    /// True if the quota limits nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Maximum numbers of addresses by family.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AddressLimits {
    /// IPv4 addresses.
    pub ipv4: Option<u64>,
    /// IPv6 addresses.
    pub ipv6: Option<u64>,
}

impl AddressLimits {
    /// True if neither family is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for AddressLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ipv4, self.ipv6) {
            (Some(ipv4), Some(ipv6)) => write!(f, "ipv4={ipv4},ipv6={ipv6}"),
            (Some(ipv4), None) => write!(f, "ipv4={ipv4}"),
            (None, Some(ipv6)) => write!(f, "ipv6={ipv6}"),
            (None, None) => f.write_str("none"),
        }
    }
}

impl FromStr for AddressLimits {
    type Err = Problem;

    /// Reads `ipv4=500,ipv6=500`, one of the two, or `none`.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut limits = Self::default();
        let odd = || {
            let detail = format!(
                "{} doesn't say how many addresses; write ipv4=COUNT, ipv6=COUNT, both with a comma between, \
                 or none",
                shown(text)
            );
            Problem::new(Code::InvalidField, detail)
        };
        for part in text.split(',').filter(|_| text != "none") {
            let (family, count) = part.split_once('=').ok_or_else(odd)?;
            let count = count.parse().map_err(|_| odd())?;
            let limit = match family {
                "ipv4" => &mut limits.ipv4,
                "ipv6" => &mut limits.ipv6,
                _ => return Err(odd()),
            };
            if limit.replace(count).is_some() {
                return Err(odd());
            }
        }
        Ok(limits)
    }
}

/// Limits of one application.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApplicationQuota {
    /// The API group of its controller without a version, such as `apps`; empty for the oldest one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind of its controller, such as `Deployment`.
    pub kind: String,
    /// The name of its controller.
    pub name: ObjectName,
    /// IPv4 addresses.
    pub ipv4: Option<u64>,
    /// IPv6 addresses.
    pub ipv6: Option<u64>,
}

impl ApplicationQuota {
    /// True if both are of the same application.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        (&self.group, &self.kind, &self.name) == (&other.group, &other.kind, &other.name)
    }
}

fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ApplicationQuota>, D::Error> {
    let all = Vec::<ApplicationQuota>::deserialize(deserializer)?;
    for (i, one) in all.iter().enumerate() {
        if all.iter().take(i).any(|other| other.is_of(one)) {
            let ApplicationQuota { kind, name, .. } = one;
            return Err(D::Error::custom(Problem::new(
                Code::ConflictingFields,
                format!("there are two quotas of {} {name}", shown(kind)),
            )));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        for text in ["ipv4=5", "ipv6=0", "ipv4=9007199254740991,ipv6=7", "none"] {
            assert_eq!(text.parse::<AddressLimits>().unwrap().to_string(), text);
        }
        assert_eq!("ipv6=1,ipv4=2".parse::<AddressLimits>().unwrap().to_string(), "ipv4=2,ipv6=1");
        for odd in [
            "",
            "5",
            "ipv4",
            "ipv4=",
            "ipv4=-1",
            "ipv4=1e3",
            "ipv5=1",
            "ipv4=1,ipv4=1",
            "ipv4=1,",
            "none,ipv4=1",
        ] {
            assert_eq!(odd.parse::<AddressLimits>().unwrap_err().code, Code::InvalidField, "{odd}");
        }
    }

    #[test]
    fn an_application_has_one_quota() {
        let read = |text: &str| serde_json::from_str::<Quota>(text);
        let one = r#"{"group": "apps", "kind": "Deployment", "name": "web", "ipv4": 5}"#;
        let other = r#"{"group": "other", "kind": "Deployment", "name": "web", "ipv4": 5}"#;
        assert_eq!(read(&format!(r#"{{"applications": [{one}, {other}]}}"#)).unwrap().applications.len(), 2);
        let why = read(&format!(r#"{{"applications": [{one}, {other}, {one}]}}"#)).unwrap_err().to_string();
        assert!(why.starts_with("conflicting-fields: there are two quotas of \"Deployment\" web"), "{why}");
        assert!(read(r#"{"ipv4": -1}"#).is_err() && read(r#"{"ipv5": 1}"#).is_err());
    }
}
