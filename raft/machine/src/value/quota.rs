//! Quotas: how many addresses a namespace may have, and each of its applications.

use std::collections::BTreeMap;

use ipam_api::Family;
use ipam_api::name::{Name, ObjectName};
use serde::{Deserialize, Serialize};

use crate::value::{Controller, Text};

/// Limits of a namespace and its applications. A missing limit doesn't bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Limits of all endpoints of the namespace together.
    pub whole: AddressLimits,
    /// Limits of each application without its own.
    pub per_application: AddressLimits,
    /// Limits of individual applications.
    pub applications: BTreeMap<ControllerName, AddressLimits>,
}

impl Quota {
    /// Returns true if the quota limits nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Limit of one application for a family, and true if the quota names that application.
    #[must_use]
    pub fn of_application(&self, application: &ControllerName, family: Family) -> Option<(u64, bool)> {
        let own = self.applications.get(application).and_then(|limits| limits.of(family));
        let own = own.map(|limit| (limit, true));
        own.or_else(|| self.per_application.of(family).map(|limit| (limit, false)))
    }
}

/// Limits of addresses by family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressLimits {
    /// IPv4 addresses.
    pub ipv4: Option<u64>,
    /// IPv6 addresses.
    pub ipv6: Option<u64>,
}

impl AddressLimits {
    /// Limit of a family.
    #[must_use]
    pub fn of(&self, family: Family) -> Option<u64> {
        match family {
            Family::V4 => self.ipv4,
            Family::V6 => self.ipv6,
        }
    }
}

/// Name of a controller, in any incarnation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ControllerName {
    /// API group of the controller, without a version.
    pub group: Text,
    pub kind: Text,
    pub name: ObjectName,
}

impl ControllerName {
    /// Name of a controller.
    #[must_use]
    pub fn of(controller: &Controller) -> Self {
        let Controller { group, kind, name, uid: _ } = controller;
        Self { group: Text::clone(group), kind: Text::clone(kind), name: name.clone() }
    }
}

impl std::fmt::Display for ControllerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { group, kind, name } = self;
        match &**group {
            "" => write!(f, "{kind}/{name}"),
            group => write!(f, "{group}/{kind}/{name}"),
        }
    }
}

/// Addresses that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QuotaScope {
    pub realm: Name,
    pub namespace: ObjectName,
    /// Controller of the endpoints; none counts all endpoints of the namespace.
    pub application: Option<ControllerName>,
}
