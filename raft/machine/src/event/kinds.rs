//! Events that `apply` reports.

use crate::command::Kind;
use crate::event::By;
use crate::event::field_change::FieldChange;
use crate::event::reason::Reason;
use crate::state::id::{AllocationId, PrefixClaimId, PrefixId};
use crate::state::row::{MemberStanding, PrefixOwner};
use crate::value::cause::Claimed;
use crate::value::condition::{Readiness, WaitReason};
use crate::value::event_id::EventId;
use crate::value::{AgentReadiness, ReportedBoot};
use ipam_api::access::NodeKey;
use ipam_api::address::AddressRange;
use ipam_api::mac::MacAddress;
use ipam_api::name::{InterfaceName, Name, ObjectName, ResourceName};
use ipam_api::resource::EndpointKey;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// One change, identified by the revision of its command and its position in that command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The revision after the command.
    pub revision: u64,
    /// Position among the command's events, from 0.
    pub number: u32,
    /// Wall time that the log entry carries; a label.
    pub wall_ms: u64,
    /// Origin of the event.
    pub by: By,
    /// The event itself.
    pub kind: EventKind,
}

impl Event {
    /// Returns the id of the event.
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId { revision: self.revision, number: self.number }
    }
}

/// An address that an endpoint holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The address's network.
    pub network: Name,
    pub address: IpAddr,
    pub pool: Name,
    /// Endpoint that holds the address.
    pub endpoint: EndpointKey,
    /// Interface that holds the address.
    pub interface: InterfaceName,
    /// Node of the endpoint, or of the added or removed attachment.
    pub node: Option<ObjectName>,
    pub allocation: AllocationId,
    /// Reason of the change.
    pub reason: Reason,
}

/// A block of addresses that an owner may divide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    pub network: Name,
    /// CIDR of the block.
    pub cidr: IpNet,
    /// Pool of the prefix.
    pub pool: Name,
    pub owner: PrefixOwner,
    pub prefix: PrefixId,
}

/// Prefix that a request waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedPrefix {
    /// Id of the claim.
    pub claim: PrefixClaimId,
    /// Pool at the root of its tree.
    pub pool: Name,
    /// Owner of the requested prefix. A path would make the events of a deleted pool too large.
    pub owner: PrefixOwner,
}

/// Event without its origin. Variants are only ever appended: the journal keeps them for years.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// A resource is new.
    Created {
        /// Kind of the resource.
        kind: Kind,
        name: ResourceName,
    },
    /// A resource's spec has changed.
    Changed {
        /// Kind of the resource.
        kind: Kind,
        name: ResourceName,
        /// Changed fields with old and new values.
        changes: Vec<FieldChange>,
    },
    /// A resource was deleted.
    Deleted {
        /// Kind of the resource.
        kind: Kind,
        name: ResourceName,
    },
    /// An endpoint holds an address.
    Allocated(Holding),
    /// An endpoint no longer holds an address.
    Released {
        /// The holding that ended.
        of: Holding,
        /// True if the address is cooling until its time has passed or it is allocated again.
        cools: bool,
    },
    /// The cooling of an address ended.
    Cooled {
        /// The address's network.
        network: Name,
        address: IpAddr,
        pool: Name,
    },
    /// The readiness of a pool changed.
    PoolReady {
        pool: Name,
        /// New readiness of the pool.
        readiness: Readiness,
    },
    /// The oldest part of the journal was trimmed.
    JournalTrimmed {
        /// Newest trimmed segment.
        through: u64,
        /// Number of trimmed segments.
        segments: u64,
        events: u64,
        /// Bytes in them, before compression.
        bytes: u64,
    },
    /// All members apply the rules of another level from this event on.
    LevelRaised {
        /// New feature level.
        level: u32,
    },
    /// A backup was restored: nothing is allocated until it is confirmed.
    EpochBegun {
        /// Number of the epoch.
        epoch: u64,
        /// Revision of the backup.
        from_revision: u64,
    },
    /// A pool was confirmed after a restore.
    PoolConfirmed { epoch: u64, pool: Name },
    /// All pools were confirmed after a restore.
    EpochConfirmed { epoch: u64 },
    /// A member joined, got a vote or was removed.
    Member {
        id: u64,
        name: Name,
        /// New desired standing of the member.
        standing: MemberStanding,
    },
    /// Ranges of a pool moved to a new pool, with their held and cooling addresses.
    PoolSplit {
        /// Pool that had the ranges.
        pool: Name,
        /// New pool.
        into: Name,
        /// Ranges that moved.
        ranges: Vec<AddressRange>,
    },
    /// An owner has a block of addresses to divide.
    Delegated {
        /// The block.
        of: Delegation,
        /// Id of the prefix from which the block is cut; none if it is cut from the pool itself.
        parent: Option<PrefixId>,
    },
    /// An owner lost a block.
    TakenBack {
        /// The block.
        of: Delegation,
        /// Id of the prefix whose end ended this one; the prefix's own id if it ended by itself.
        with: PrefixId,
        /// True for a release; false for a missing refresh.
        released: bool,
    },
    /// An address that its endpoint already holds got one more attachment.
    Attached(Holding),
    /// An address lost an attachment, but its endpoint still holds the address.
    Detached(Holding),
    /// An endpoint waits for addresses, or the reason for waiting changed.
    Waits {
        endpoint: EndpointKey,
        /// Reason.
        why: WaitReason,
    },
    /// A claim ended without an allocation.
    Withdrawn { endpoint: EndpointKey },
    /// The agent of a node reported its first boot, or a later one than before.
    NodeBooted {
        node: NodeKey,
        /// The boot.
        boot: ReportedBoot,
    },
    /// The readiness of a node changed, according to its agent.
    NodeReady {
        node: NodeKey,
        /// New readiness of the node.
        readiness: AgentReadiness,
    },
    /// A prefix request waits for a block, or the reason for waiting changed.
    PrefixWaits {
        of: AwaitedPrefix,
        /// Reason.
        why: WaitReason,
    },
    /// A prefix claim ended without a prefix.
    PrefixWithdrawn { of: AwaitedPrefix },
    /// A foreign host was found with a free address, or with one that an ADD was about to use.
    Quarantined {
        network: Name,
        address: IpAddr,
        pool: Name,
        /// The foreign host.
        mac: MacAddress,
        /// Node whose agent found it.
        by: NodeKey,
    },
    /// The quarantine of an address ended.
    QuarantineEnded {
        network: Name,
        address: IpAddr,
        pool: Name,
        /// Node whose agent found the address unused; none for an operator.
        by: Option<NodeKey>,
    },
    /// A different station than before answers for an allocated address.
    Collided {
        of: Holding,
        /// Station of the endpoint.
        mac: MacAddress,
        /// The other station.
        other: MacAddress,
        /// Node whose agent found it.
        by: NodeKey,
    },
    /// A node claimed something about an endpoint that the watcher's report contradicts.
    ClaimMismatch {
        node: NodeKey,
        endpoint: EndpointKey,
        /// First contradicted claim.
        claimed: Claimed,
    },
    /// A host got another uid and kept its addresses: it was reinstalled, or reported its first uid.
    EndpointChanged {
        endpoint: EndpointKey,
        /// Changed fields with old and new values.
        changes: Vec<FieldChange>,
    },
}

/// Every name that an event can have, with its meaning.
pub const NAMES: &[(&str, &str)] = &[
    ("network.created", "A network was created."),
    ("network.changed", "The fields of a network were changed."),
    ("network.deleted", "A network was deleted."),
    ("subnet.created", "A subnet was created."),
    ("subnet.changed", "The fields of a subnet were changed."),
    ("subnet.deleted", "A subnet was deleted."),
    ("pool.created", "A pool was created."),
    ("pool.changed", "The fields of a pool were changed."),
    ("pool.deleted", "A pool was deleted."),
    ("pool.condition", "The Ready condition of a pool changed; `reason` is the new reason."),
    ("reservation.created", "A reservation was created."),
    ("reservation.changed", "The fields of a reservation were changed."),
    ("reservation.deleted", "A reservation was deleted."),
    ("token.created", "A token was created."),
    ("token.changed", "The secret or the use of a token was changed; the secret is not included."),
    ("token.deleted", "A token was deleted and is no longer accepted."),
    ("node.created", "The description of a node was created."),
    ("node.changed", "The description of a node was changed."),
    ("node.deleted", "The description of a node was deleted; its allocations remain."),
    ("node.booted", "The agent of a node reported its first boot, or a later boot than before."),
    ("node.condition", "The Ready condition of a node changed; `reason` is the new reason."),
    ("node.mismatch", "A claim of a node about an endpoint was refused: the report of its watcher differs."),
    ("namespace.created", "The description of a namespace was created."),
    ("namespace.changed", "The description of a namespace was changed."),
    ("namespace.deleted", "The description of a namespace was deleted; its allocations remain."),
    ("host-policy.created", "A host policy was created."),
    ("host-policy.changed", "The fields of a host policy were changed."),
    ("host-policy.deleted", "A host policy was deleted; the addresses of its hosts remain."),
    ("address.allocated", "An address was allocated to an endpoint."),
    ("address.released", "An address of an endpoint was released."),
    ("address.attached", "An attachment was added to an allocated address."),
    ("address.detached", "An attachment was removed; the address stays allocated for `reason`."),
    ("address.cooled", "The cooling period of a released address ended."),
    ("address.quarantined", "A foreign host uses an address that is not allocated; it is not allocated."),
    (
        "address.unquarantined",
        "The quarantine of an address ended: a probe was silent, or an operator ended it.",
    ),
    ("address.collision", "Two stations answer for an allocated address."),
    ("prefix.delegated", "A prefix was delegated to an owner."),
    ("prefix.released", "A prefix delegation ended; `reason` is the cause."),
    ("prefix.waiting", "A prefix request waits for a free block; repeated when `reason` changes."),
    ("prefix.withdrawn", "A prefix request stopped waiting without a prefix."),
    ("endpoint.waiting", "An endpoint waits for addresses; repeated when `reason` changes."),
    ("endpoint.changed", "The uid of a host changed and its addresses stayed: a machine took them over."),
    ("endpoint.withdrawn", "An endpoint stopped waiting without an allocation."),
    ("journal.trimmed", "The oldest segment of the journal was deleted."),
    ("cluster.level", "The feature level of the cluster was raised."),
    ("epoch.begun", "A backup was restored; pools do not allocate until they are confirmed."),
    ("epoch.confirmed", "All pools were confirmed after a restore."),
    ("pool.split", "Ranges of a pool were moved into a new pool, with their allocations."),
    ("pool.confirmed", "A pool was confirmed after a restore, and allocates again."),
    ("member.joined", "A member joined as a learner, without a vote."),
    ("member.promoted", "A learner was promoted to voter."),
    ("member.removed", "A member was removed; its ID is never reused."),
];

impl EventKind {
    /// Returns the name of the event, one of [`NAMES`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::Created { kind, .. } => names_of(*kind).0,
            EventKind::Changed { kind, .. } => names_of(*kind).1,
            EventKind::Deleted { kind, .. } => names_of(*kind).2,
            EventKind::Allocated(_) => "address.allocated",
            EventKind::Released { .. } => "address.released",
            EventKind::Attached(_) => "address.attached",
            EventKind::Detached(_) => "address.detached",
            EventKind::Cooled { .. } => "address.cooled",
            EventKind::PoolReady { .. } => "pool.condition",
            EventKind::PoolSplit { .. } => "pool.split",
            EventKind::Waits { .. } => "endpoint.waiting",
            EventKind::Withdrawn { .. } => "endpoint.withdrawn",
            EventKind::JournalTrimmed { .. } => "journal.trimmed",
            EventKind::LevelRaised { .. } => "cluster.level",
            EventKind::EpochBegun { .. } => "epoch.begun",
            EventKind::EpochConfirmed { .. } => "epoch.confirmed",
            EventKind::PoolConfirmed { .. } => "pool.confirmed",
            EventKind::Member { standing: MemberStanding::Learner, .. } => "member.joined",
            EventKind::Member { standing: MemberStanding::Voter, .. } => "member.promoted",
            EventKind::Member { standing: MemberStanding::Removed, .. } => "member.removed",
            EventKind::Delegated { .. } => "prefix.delegated",
            EventKind::TakenBack { .. } => "prefix.released",
            EventKind::PrefixWaits { .. } => "prefix.waiting",
            EventKind::PrefixWithdrawn { .. } => "prefix.withdrawn",
            EventKind::NodeBooted { .. } => "node.booted",
            EventKind::NodeReady { .. } => "node.condition",
            EventKind::Quarantined { .. } => "address.quarantined",
            EventKind::QuarantineEnded { .. } => "address.unquarantined",
            EventKind::Collided { .. } => "address.collision",
            EventKind::ClaimMismatch { .. } => "node.mismatch",
            EventKind::EndpointChanged { .. } => "endpoint.changed",
        }
    }

    /// Returns the kind of the event's object: the first word of the event's name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        let name = self.name();
        name.split_once('.').map_or(name, |(kind, _)| kind)
    }

    /// Returns the holding that the event concerns.
    #[must_use]
    pub fn holding(&self) -> Option<&Holding> {
        match self {
            EventKind::Allocated(of)
            | EventKind::Released { of, .. }
            | EventKind::Attached(of)
            | EventKind::Detached(of)
            | EventKind::Collided { of, .. } => Some(of),
            _ => None,
        }
    }

    /// Returns the address that the event concerns.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            EventKind::Cooled { address, .. }
            | EventKind::Quarantined { address, .. }
            | EventKind::QuarantineEnded { address, .. } => Some(*address),
            _ => self.holding().map(|of| of.address),
        }
    }

    /// Returns the network of the event's address, or the network that the event concerns.
    #[must_use]
    pub fn network(&self) -> Option<Name> {
        match self {
            EventKind::Delegated { of, .. } | EventKind::TakenBack { of, .. } => Some(of.network.clone()),
            EventKind::Cooled { network, .. }
            | EventKind::Quarantined { network, .. }
            | EventKind::QuarantineEnded { network, .. } => Some(network.clone()),
            _ => self.holding().map(|of| of.network.clone()).or_else(|| self.resource(Kind::Network)),
        }
    }

    /// Returns the pool of the event's address, or the pool that the event concerns.
    #[must_use]
    pub fn pool(&self) -> Option<Name> {
        match self {
            EventKind::Cooled { pool, .. }
            | EventKind::Quarantined { pool, .. }
            | EventKind::QuarantineEnded { pool, .. }
            | EventKind::PoolReady { pool, .. }
            | EventKind::PoolSplit { pool, .. }
            | EventKind::PoolConfirmed { pool, .. } => Some(pool.clone()),
            EventKind::Delegated { of, .. } | EventKind::TakenBack { of, .. } => Some(of.pool.clone()),
            EventKind::PrefixWaits { of, .. } | EventKind::PrefixWithdrawn { of } => Some(of.pool.clone()),
            _ => self.holding().map(|of| of.pool.clone()).or_else(|| self.resource(Kind::Pool)),
        }
    }

    /// Returns the resource of a kind that the event concerns.
    fn resource(&self, of: Kind) -> Option<Name> {
        match self {
            EventKind::Created { kind, name }
            | EventKind::Changed { kind, name, .. }
            | EventKind::Deleted { kind, name }
                if *kind == of =>
            {
                name.name()
            }
            _ => None,
        }
    }

    /// Returns the endpoint that the event concerns.
    #[must_use]
    pub fn endpoint(&self) -> Option<&EndpointKey> {
        match self {
            EventKind::Waits { endpoint, .. }
            | EventKind::Withdrawn { endpoint }
            | EventKind::EndpointChanged { endpoint, .. } => Some(endpoint),
            _ => self.holding().map(|of| &of.endpoint),
        }
    }
}

/// Names of the events that a resource of a kind can have.
fn names_of(kind: Kind) -> (&'static str, &'static str, &'static str) {
    match kind {
        Kind::Network => ("network.created", "network.changed", "network.deleted"),
        Kind::Subnet => ("subnet.created", "subnet.changed", "subnet.deleted"),
        Kind::Pool => ("pool.created", "pool.changed", "pool.deleted"),
        Kind::Reservation => ("reservation.created", "reservation.changed", "reservation.deleted"),
        Kind::Token => ("token.created", "token.changed", "token.deleted"),
        Kind::Node => ("node.created", "node.changed", "node.deleted"),
        Kind::Namespace => ("namespace.created", "namespace.changed", "namespace.deleted"),
        Kind::HostPolicy => ("host-policy.created", "host-policy.changed", "host-policy.deleted"),
    }
}
