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
    /// How many addresses each of them has; one more than there are `replicas` if nothing is said.
    #[serde(default = "one_to_spare")]
    pub size: PoolSize,
    /// Whether they go with the application, once they are empty; if not, they wait for one of the same name.
    #[serde(default = "yes")]
    pub reclaim: bool,
}

fn one_to_spare() -> PoolSize {
    PoolSize::Flexible(1)
}

fn yes() -> bool {
    true
}

impl Default for AutomaticPool {
    fn default() -> Self {
        Self { size: one_to_spare(), reclaim: yes() }
    }
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
