//! What `apply` says has happened.

use std::net::IpAddr;

use ipam_api::name::{InterfaceName, Name};
use ipam_api::resource::EndpointKey;
use serde::{Deserialize, Serialize};

use super::command::{Kind, Origin};

/// One thing that has happened: named by the revision of its command and its place in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The revision after the command.
    pub revision: u64,
    /// Its place among the command's events, from 0.
    pub number: u32,
    /// The wall time that the entry brought along.
    pub wall_ms: u64,
    /// Who asked for it, and how.
    pub origin: Origin,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A resource is new.
    Created {
        /// Of which kind.
        kind: Kind,
        /// Its name.
        name: Name,
    },
    /// A resource's intention has changed.
    Changed {
        /// Of which kind.
        kind: Kind,
        /// Its name.
        name: Name,
    },
    /// A resource is gone.
    Deleted {
        /// Of which kind.
        kind: Kind,
        /// Its name.
        name: Name,
    },
    /// An endpoint holds an address.
    Allocated {
        /// The address.
        address: IpAddr,
        /// Its pool.
        pool: Name,
        /// Who holds it.
        endpoint: EndpointKey,
        /// The interface that has it.
        interface: InterfaceName,
        /// The allocation's id.
        allocation: u64,
    },
    /// An endpoint no longer holds an address.
    Released {
        /// The address.
        address: IpAddr,
        /// Its pool.
        pool: Name,
        /// Who held it.
        endpoint: EndpointKey,
        /// The allocation's id.
        allocation: u64,
        /// Why.
        reason: Reason,
    },
    /// A freed address has rested.
    Cooled {
        /// The address.
        address: IpAddr,
        /// Its pool.
        pool: Name,
    },
    /// A pool began or ceased to be able to give.
    PoolReady {
        /// Its name.
        pool: Name,
        /// How it stands now.
        readiness: Readiness,
    },
}

/// Why an address was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The runtime deleted its attachment.
    AttachmentReleased,
    /// Somebody released this allocation.
    AllocationReleased,
    /// Somebody released its endpoint.
    EndpointReleased,
}

/// Whether a pool can give, and if not, why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// It gives.
    #[default]
    Serving,
    /// Nothing is free.
    Exhausted,
    /// Somebody disabled it.
    Disabled,
    /// It goes once it is empty.
    Terminating,
}

impl Readiness {
    /// Its word in conditions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Readiness::Serving => "Serving",
            Readiness::Exhausted => "Exhausted",
            Readiness::Disabled => "Disabled",
            Readiness::Terminating => "Terminating",
        }
    }
}
