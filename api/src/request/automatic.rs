//! Pools that are made for an application, and how an application ends.

use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName};
use crate::resource::{Controller, PoolSize};

/// The pools that the endpoint's application has for itself: one for each interface that names subnets and each family,
/// cut from the first subnet of that family. They are made with the first request that needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AutomaticPool {
    /// How many addresses each of them has.
    pub size: PoolSize,
    /// How many endpoints the application wants.
    #[serde(default)]
    pub replicas: u32,
    /// Whether they go with the application, once they are empty; if not, they wait for one of the same name.
    #[serde(default = "yes")]
    pub reclaim: bool,
}

fn yes() -> bool {
    true
}

/// `POST /v1/controllers/end`: a controller is gone for good. What its sticky endpoints keep is free, unless it is to be
/// kept, and the pools that were made for it go once they are empty, or are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EndRequest {
    /// Its realm.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Its namespace.
    #[serde(default = "ObjectName::default_name")]
    pub namespace: ObjectName,
    /// Which one. With a uid, what is another incarnation's is left alone.
    pub controller: Controller,
}
