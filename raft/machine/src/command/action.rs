//! Commands: the contents of log entries, with their origins and actions.
//!
//! These types are internal to the raft crates and are encoded by position (postcard): enum variants are only
//! ever appended, and a change of a struct raises the version of the batch that carries it. The golden bytes
//! in `raft/machine/tests/machine/golden.rs` detect accidental changes.

use crate::command::*;
use crate::value::id::{AllocationId, PrefixId};
use std::cell::Cell;

use ipam_api::access::NodeKey;
use ipam_api::address::AddressRange;
use ipam_api::name::{Name, ResourceName};
use ipam_api::resource::EndpointKey;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Proposal: caller, origin and action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub origin: Origin,
    pub terms: Terms,
    /// Action to carry out.
    pub action: Action,
}

/// Origin of a command. Travels with every proposal, forwarded or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub principal: Text,
    /// Interface through which the command arrived.
    pub via: Via,
    /// Names the request in logs, events and answers.
    pub request_id: Text,
    /// Comment of the caller.
    pub comment: Option<Text>,
    /// Log time at which the caller's time budget is spent. It is the leader's log time on arrival plus the
    /// remaining budget. `apply` refuses the command after this time.
    pub not_after_ms: Option<u64>,
}

/// Interface that a proposal came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// The REST API.
    Http,
    /// A CNI plugin.
    Cni,
    /// A leader-only task.
    Task,
}

/// Action to carry out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Creates or replaces a network.
    PutNetwork(Put<NetworkSpec>),
    /// Creates or replaces a subnet.
    PutSubnet(Put<SubnetSpec>),
    /// Creates or replaces a pool.
    PutPool(Put<PoolSpec>),
    /// Creates or replaces a reservation.
    PutReservation(Put<ReservationSpec>),
    /// Deletes a resource.
    Delete(Delete),
    /// Allocates addresses.
    Allocate(Allocate),
    /// Releases the allocations of an attachment, and leaves a tombstone.
    ReleaseAttachment(ReleaseAttachment),
    /// Releases one allocation.
    ReleaseAllocation {
        /// Id of the allocation; a newer holder of the same address has another id.
        id: AllocationId,
    },
    /// Releases all allocations of an endpoint, in all its incarnations.
    ReleaseEndpoint { key: EndpointKey },
    /// Applies all of these actions, or none.
    Transaction(Transaction),
    /// Lets log time pass, and deletes the rows that have expired.
    Expire,
    /// Creates a token.
    CreateToken(CreateToken),
    /// Replaces the secret of a token; the old one becomes invalid.
    RotateToken {
        name: Name,
        /// Hash of the new secret.
        secret_hash: SecretHash,
        /// Precondition.
        expect: Expect,
    },
    /// Exchanges a join token, which works once, for the token of a node.
    Join {
        /// The node that joins.
        node: NodeKey,
        /// Hash of the secret that the node has generated.
        secret_hash: SecretHash,
    },
    /// Trims the oldest part of the journal.
    TrimJournal {
        /// Newest segment to trim.
        through: u64,
    },
    /// Raises the feature level, and with it the rules. Proposed once all members support them.
    RaiseLevel {
        /// The present level or the next one.
        level: u32,
    },
    /// Seals the open segment of the journal if it is old enough, even without another event.
    SealJournal,
    /// Confirms pools after a restore.
    ConfirmEpoch(ConfirmEpoch),
    /// Adds a new member as a learner.
    JoinMember(JoinMember),
    /// Promotes and removes members: all of them, or none.
    ChangeMembers(ChangeMembers),
    /// Creates or replaces a node.
    PutNode(Put<NodeSpec>),
    /// Creates or replaces a namespace.
    PutNamespace(Put<NamespaceSpec>),
    /// Moves some ranges of a pool to a new pool, with all held and cooling addresses in them.
    SplitPool(SplitPool),
    /// Delegates a block of addresses to an owner, or refreshes the owner's present block.
    Delegate(Delegate),
    /// Releases a prefix and everything below it, or withdraws the prefix claim with this id.
    ReleasePrefix { id: PrefixId },
    /// Releases the kept addresses of endpoints that the controller no longer needs.
    ScaleController(ScaleController),
    /// Renews leases.
    Renew(Renew),
    /// Ends a controller: releases the kept addresses of its endpoints, and its automatic pools.
    EndController(EndController),
    /// Renews the token of the calling node for its full TTL.
    RenewToken,
    /// Records the present boot and the readiness of a node, and renews its leases.
    Heartbeat(Heartbeat),
    /// Releases attachments of a node whose containers no longer exist.
    ReleaseOrphans(ReleaseOrphans),
    /// Releases the allocations of an attachment, and leaves a tombstone; without such an attachment, the
    /// allocations of the endpoint that were adopted on its node.
    ReleaseAttachmentOf(ReleaseAttachmentOf),
    /// Delegates a block like [`Action::Delegate`]; while none is free, the request waits.
    DelegateOrWait(Delegate),
    /// Records results of a node's probes: checks, conflicts, and the stations of allocated addresses.
    ReportProbes(ReportProbes),
    /// Ends the quarantine of an address.
    EndQuarantine(EndQuarantine),
    /// Releases attached allocations whose node is silent or no longer exists.
    Reclaim(Reclaim),
    /// Ends an incarnation whose workload no longer exists: its attachments and its waiting claim.
    EndIncarnation(EndIncarnation),
    /// Allocates addresses like [`Action::Allocate`], only from pools on the links of the host.
    AllocateOnLinks(OnLinks),
    /// Records pods of a realm, by which claims of its nodes are verified.
    ReportPods(ReportPods),
    /// Delegates exactly these prefixes below one parent, and releases the realm's other prefixes there.
    SetPrefixes(SetPrefixes),
    /// Creates or replaces a host policy.
    PutHostPolicy(Put<HostPolicySpec>),
    /// Allocates addresses to many endpoints: to all of them, or to none.
    AllocateMany(Box<AllocateMany>),
    /// Releases allocations: all of them, or none. An already released allocation is only counted.
    ReleaseAllocations { ids: Vec<AllocationId> },
}

impl From<Allocate> for Action {
    fn from(request: Allocate) -> Self {
        match request.interfaces.iter().all(|interface| interface.link_addresses.is_empty()) {
            true => Self::Allocate(request),
            false => Self::AllocateOnLinks(OnLinks(request)),
        }
    }
}

/// Creates or replaces a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put<Spec> {
    /// Desired state.
    pub spec: Spec,
    /// Precondition.
    pub expect: Expect,
}

/// Moves some ranges of a pool to a new pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitPool {
    /// Name of the pool.
    pub name: Name,
    /// The new pool's name.
    pub into: Name,
    /// Ranges that move from the old pool to the new one.
    pub ranges: Vec<AddressRange>,
    /// Precondition on the old pool.
    pub expect: Expect,
}

/// Confirms pools after a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmEpoch {
    /// Number of the epoch.
    pub epoch: u64,
    /// Pools to confirm; `None` confirms all pools, including future ones.
    pub pools: Option<Vec<Name>>,
}

/// Deletes a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delete {
    /// Kind of the resource.
    pub kind: Kind,
    pub name: ResourceName,
    /// Precondition.
    pub expect: Expect,
    /// True to drain a pool in use: the pool allocates nothing more and is deleted once it is empty. Pools
    /// only.
    pub drain: bool,
}

/// Actions that are applied as one, if all preconditions hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Preconditions, checked before the first step.
    pub preconditions: Vec<Precondition>,
    /// Actions in the order of their application. Transactions can't be nested.
    #[serde(deserialize_with = "shallow_steps")]
    pub steps: Vec<Action>,
}

/// Maximum nesting of transactions in encoded bytes. The machine refuses a nested one with a reason; a
/// million of them would exhaust the decoder's stack.
const NESTING_MAX: u8 = 4;

fn shallow_steps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Action>, D::Error> {
    thread_local! {
        static DEPTH: Cell<u8> = const { Cell::new(0) };
    }
    let depth = DEPTH.get();
    if depth >= NESTING_MAX {
        return Err(D::Error::custom("transactions are nested too deep"));
    }
    DEPTH.set(depth + 1);
    let steps = Vec::deserialize(deserializer);
    DEPTH.set(depth);
    steps
}

/// Precondition of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// Kind of the resource.
    pub kind: Kind,
    pub name: ResourceName,
    /// Precondition on it.
    pub expect: Expect,
}
