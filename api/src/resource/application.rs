//! The application that a pool was made for.

use serde::{Deserialize, Serialize};

use super::{Controller, PoolSize};
use crate::name::{InterfaceName, Name, ObjectName};

/// The application that an automatic pool was made for, as far as it has said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Application {
    /// Its realm.
    pub realm: Name,
    /// Its namespace.
    pub namespace: ObjectName,
    /// What makes its endpoints; without a uid once that has ended.
    pub controller: Controller,
    /// The interface of theirs that has addresses of this pool.
    pub interface: InterfaceName,
    /// How many addresses the pool shall have.
    pub size: PoolSize,
    /// How many endpoints it wants.
    pub replicas: u32,
    /// Where it is.
    pub standing: ApplicationStanding,
}

/// Where the application of an automatic pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApplicationStanding {
    /// It takes from the pool.
    Present,
    /// It takes from another subnet now.
    Elsewhere,
    /// It has ended.
    Ended,
}
