//! What `apply` says has happened.

use std::net::IpAddr;

use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipam_api::resource::EndpointKey;
use serde::{Deserialize, Serialize};

use super::change::FieldChange;
use super::command::Kind;
use super::journal::{By, EventId};

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
    pub by: By,
    /// What happened.
    pub what: What,
}

impl Event {
    /// Its name among all events.
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId { revision: self.revision, number: self.number }
    }
}

/// What happened. Variants are only ever appended: the journal keeps them for years.
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
        /// Which of its fields, and how.
        changes: Vec<FieldChange>,
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
        /// The address's network.
        network: Name,
        /// The address.
        address: IpAddr,
        /// Its pool.
        pool: Name,
        /// Who holds it.
        endpoint: EndpointKey,
        /// The interface that has it.
        interface: InterfaceName,
        /// The node where it is.
        node: Option<ObjectName>,
        /// The allocation's id.
        allocation: u64,
        /// Why.
        reason: Reason,
    },
    /// An endpoint no longer holds an address.
    Released {
        /// The address's network.
        network: Name,
        /// The address.
        address: IpAddr,
        /// Its pool.
        pool: Name,
        /// Who held it.
        endpoint: EndpointKey,
        /// The interface that had it.
        interface: InterfaceName,
        /// The node where it was.
        node: Option<ObjectName>,
        /// The allocation's id.
        allocation: u64,
        /// Why.
        reason: Reason,
        /// Whether it rests now, until it is cooled or given again.
        rests: bool,
    },
    /// A freed address has rested.
    Cooled {
        /// The address's network.
        network: Name,
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
    /// The oldest part of the journal was given up.
    JournalTrimmed {
        /// The newest segment that is gone.
        through: u64,
        /// How many segments went.
        segments: u64,
        /// Events in them.
        events: u64,
        /// Bytes in them, before compression.
        bytes: u64,
    },
}

/// Why an address was given or taken back. Variants are only ever appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The runtime deleted its attachment.
    AttachmentReleased,
    /// Somebody released this allocation.
    AllocationReleased,
    /// Somebody released its endpoint.
    EndpointReleased,
    /// The runtime added an attachment.
    AttachmentAdded,
    /// Somebody asked for it, without an attachment.
    Requested,
}

impl Reason {
    /// Its word in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::AttachmentReleased => "DEL",
            Reason::AllocationReleased => "allocation-released",
            Reason::EndpointReleased => "endpoint-released",
            Reason::AttachmentAdded => "ADD",
            Reason::Requested => "requested",
        }
    }
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
