//! Pools that are made for an application: what a request says of them, and how an application ends.

use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::PoolSize;
use serde::{Deserialize, Serialize};

use super::{Controller, ScaleController};

/// What a request says of the pools that its application has for itself. They are cut from the subnets that its
/// interfaces name: of those of a family the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutomaticPool {
    /// How many addresses each of them has.
    pub size: PoolSize,
    /// How many endpoints the application wants.
    pub replicas: u32,
    /// Whether they go with the application, once they are empty.
    pub reclaim: bool,
}

/// A controller is gone for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndController {
    /// Its realm.
    pub realm: Name,
    /// Its namespace.
    pub namespace: ObjectName,
    /// Which one.
    pub controller: Controller,
}

impl EndController {
    /// What it says of the endpoints: none of them is wanted.
    #[must_use]
    pub fn to_none(&self) -> ScaleController {
        let Self { realm, namespace, controller } = self.clone();
        ScaleController { realm, namespace, controller, replicas: 0, start: 0 }
    }
}
