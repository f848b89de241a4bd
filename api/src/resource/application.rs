//! The application that a pool was made for.

use serde::{Deserialize, Serialize};

use super::{Controller, PoolSize};
use crate::name::{InterfaceName, Name, ObjectName};

/// Application of an automatic pool, as far as its requests describe it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Application {
    /// Realm of the controller.
    pub realm: Name,
    /// Namespace of the controller.
    pub namespace: ObjectName,
    /// Controller of its endpoints; without a uid once that incarnation has ended.
    pub controller: Controller,
    /// The interface of theirs that has addresses of this pool.
    pub interface: InterfaceName,
    /// Desired number of addresses of the pool.
    pub size: PoolSize,
    /// Number of wanted replicas.
    pub replicas: u32,
    /// State of the application.
    pub standing: ApplicationStanding,
}

/// State of an automatic pool's application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApplicationStanding {
    /// It uses the pool.
    Present,
    /// It uses another subnet now.
    Elsewhere,
    /// It has ended.
    Ended,
}
