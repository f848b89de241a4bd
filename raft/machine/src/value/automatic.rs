//! Automatic pools: their part of a request, and the end of an application.

use ipam_api::address::AddressRange;
use ipam_api::limits::AUTOMATIC_MAX_SIZE_DEFAULT;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::PoolSize;
use ipam_api::{Family, RangeSet};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::value::{Controller, ScaleController};

/// Automatic pools of a request's application. They are cut from the first named subnet of each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutomaticPool {
    /// Number of addresses of each pool.
    pub size: PoolSize,
    /// Desired number of replicas.
    pub replicas: u32,
    /// True if the pools are deleted with the application, once they are empty.
    pub reclaim: bool,
}

/// Rules for automatic pools of a subnet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutomaticRules {
    /// Addresses that automatic pools may contain; all of the subnet if empty.
    pub ranges: Vec<AddressRange>,
    /// Addresses that no automatic pool contains.
    pub exclude: Vec<AddressRange>,
    /// Maximum number of addresses of one pool, if not the default.
    pub max_size: Option<u32>,
}

impl AutomaticRules {
    /// Maximum number of addresses of one pool.
    #[must_use]
    pub fn max_size(&self) -> u32 {
        self.max_size.unwrap_or(AUTOMATIC_MAX_SIZE_DEFAULT)
    }

    /// Addresses of a subnet that automatic pools may have.
    #[must_use]
    pub fn allowed(&self, cidr: IpNet) -> RangeSet {
        let family = Family::of(cidr.addr());
        let whole = [AddressRange::of_cidr(cidr)];
        let ranges = if self.ranges.is_empty() { &whole[..] } else { &self.ranges };
        RangeSet::new(family, ranges).minus(&RangeSet::new(family, &self.exclude))
    }
}

/// End of a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndController {
    pub realm: Name,
    pub namespace: ObjectName,
    /// Controller of the application.
    pub controller: Controller,
}

impl EndController {
    /// Scaling of the controller to no replicas.
    #[must_use]
    pub fn to_none(&self) -> ScaleController {
        let Self { realm, namespace, controller } = self.clone();
        ScaleController { realm, namespace, controller, replicas: 0, start: 0 }
    }
}
