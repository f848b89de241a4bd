//! Entries of the log, and outcomes of `apply`.
//!
//! These types are raft's own and travel in postcard, by position: enum variants are only ever appended,
//! and a change of a struct raises the version of the batch that carries it. The golden bytes in
//! `raft/machine/tests/machine/golden.rs` hold them still.

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
    /// Interface that it came through.
    pub via: Via,
    /// Names the request in logs, events and answers.
    pub request_id: Text,
    /// Comment of the caller.
    pub comment: Option<Text>,
    /// Log time after which the caller's budget is spent. It is the leader's log time on arrival plus the
    /// remaining budget. `apply` refuses what comes later.
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
    /// Create or replace a network.
    PutNetwork(Put<NetworkSpec>),
    /// Create or replace a subnet.
    PutSubnet(Put<SubnetSpec>),
    /// Create or replace a pool.
    PutPool(Put<PoolSpec>),
    /// Create or replace a reservation.
    PutReservation(Put<ReservationSpec>),
    /// Remove a resource.
    Delete(Delete),
    /// Allocates addresses.
    Allocate(Allocate),
    /// Releases the allocations of an attachment, and leaves a tombstone.
    ReleaseAttachment(ReleaseAttachment),
    /// Releases one allocation.
    ReleaseAllocation {
        /// Its id; a newer holder of the same address has another one.
        id: AllocationId,
    },
    /// Releases all allocations of an endpoint, in all its incarnations.
    ReleaseEndpoint { key: EndpointKey },
    /// All of these, or none.
    Transaction(Transaction),
    /// Let log time pass: clear away what has cooled and what need no longer be remembered.
    Expire,
    /// Make a token.
    CreateToken(CreateToken),
    /// Replaces the secret of a token; the old one becomes invalid.
    RotateToken {
        name: Name,
        /// Hash of the new secret.
        secret_hash: SecretHash,
        /// Precondition.
        expect: Expect,
    },
    /// Turn a join token into a token of a node. Once.
    Join {
        /// The node that joins.
        node: NodeKey,
        /// Hash of the secret that the node has made for itself.
        secret_hash: SecretHash,
    },
    /// Trims the oldest part of the journal.
    TrimJournal {
        /// The newest segment to go.
        through: u64,
    },
    /// Behave by the rules of the next level from here on. Proposed once all members know them.
    RaiseLevel {
        /// The present level or the next one.
        level: u32,
    },
    /// Seal the open segment of the journal if it is old enough, though nothing happens that would do it.
    SealJournal,
    /// Confirms pools after a restore.
    ConfirmEpoch(ConfirmEpoch),
    /// Take a new member in, as a learner.
    JoinMember(JoinMember),
    /// Promotes and removes members: all of them, or none.
    ChangeMembers(ChangeMembers),
    /// Create or replace a node.
    PutNode(Put<NodeSpec>),
    /// Create or replace a namespace.
    PutNamespace(Put<NamespaceSpec>),
    /// Makes some ranges of a pool a pool of their own, with all held and cooling addresses in them.
    SplitPool(SplitPool),
    /// Delegate a block of addresses to an owner, or refresh the one that it has.
    Delegate(Delegate),
    /// Take a prefix back, with everything below it; or withdraw a prefix claim with this id.
    ReleasePrefix { id: PrefixId },
    /// Releases the kept addresses of endpoints that the controller no longer wants.
    ScaleController(ScaleController),
    /// Let leases last longer.
    Renew(Renew),
    /// Ends a controller: releases the kept addresses of its endpoints, and its automatic pools.
    EndController(EndController),
    /// Renews the token of the calling node for its full TTL.
    RenewToken,
    /// Records the present boot and the readiness of a node, and renews its leases.
    Heartbeat(Heartbeat),
    /// Releases attachments of a node whose containers are gone.
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
    /// Releases attached allocations whose node is gone or silent.
    Reclaim(Reclaim),
    /// Ends an incarnation whose workload is gone: its attachments and its waiting claim.
    EndIncarnation(EndIncarnation),
    /// Allocates addresses like [`Action::Allocate`], only from pools on the links of the host.
    AllocateOnLinks(OnLinks),
    /// Records pods of a realm, by which claims of its nodes are verified.
    ReportPods(ReportPods),
    /// Delegates exactly these prefixes of a realm below a pool or a prefix, and releases its others there.
    SetPrefixes(SetPrefixes),
    /// Create or replace a host policy.
    PutHostPolicy(Put<HostPolicySpec>),
    /// Allocates addresses to many endpoints: to all of them, or to none.
    AllocateMany(Box<AllocateMany>),
    /// Releases allocations: all of them, or none. One that is gone already makes no difference.
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

/// Create or replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put<Spec> {
    /// Desired state.
    pub spec: Spec,
    /// Precondition.
    pub expect: Expect,
}

/// Make some ranges of a pool a pool of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitPool {
    /// Name of the pool.
    pub name: Name,
    /// The new pool's name.
    pub into: Name,
    /// Ranges of the old one that become the new one's.
    pub ranges: Vec<AddressRange>,
    /// Precondition on the old one.
    pub expect: Expect,
}

/// Confirms pools after a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmEpoch {
    /// Number of the epoch.
    pub epoch: u64,
    /// Pools to confirm; without it all pools, future ones included.
    pub pools: Option<Vec<Name>>,
}

/// Remove a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delete {
    /// Of which kind.
    pub kind: Kind,
    pub name: ResourceName,
    /// Precondition.
    pub expect: Expect,
    /// If it is in use, drains it: it allocates nothing more and is deleted once it is empty. Pools only.
    pub drain: bool,
}

/// Several actions as one, if everything is as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Preconditions, checked before the first step.
    pub preconditions: Vec<Precondition>,
    /// Actions, in this order. No transactions inside.
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
    /// Of which kind.
    pub kind: Kind,
    pub name: ResourceName,
    /// Precondition on it.
    pub expect: Expect,
}
