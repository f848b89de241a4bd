//! Pools that are made for an application, and how an application ends.

use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName};
use crate::resource::{Controller, PoolSize};

/// Automatic pools of the endpoint's application, one for each interface with subnets and each family. They
/// are cut from the first subnet of the family at the first request that needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AutomaticPool {
    /// Number of addresses of each pool; by default one more than `replicas`.
    #[serde(default = "one_to_spare")]
    pub size: PoolSize,
    /// True if the pools are deleted with the application once they are empty. Otherwise they wait for an
    /// application of the same name.
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

/// `POST /v1/controllers/end`: end of a controller. The addresses of its sticky endpoints become free unless
/// the policy is to keep them. Its automatic pools are deleted once they are empty, or kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EndRequest {
    /// Realm of the controller.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Namespace of the controller.
    #[serde(default = "ObjectName::default_name")]
    pub namespace: ObjectName,
    /// Controller of the application. With a uid, its other incarnations are unaffected.
    pub controller: Controller,
}
