//! Commands: entries of the log, their validation and their outcomes.

mod action;
pub mod batch;
mod bulk;
mod identity;
mod members;
mod outcome;
pub(crate) mod validate;

pub use self::action::*;
pub use self::bulk::{AllocateMany, AllocatedMany, GivenPool, GivenTo};
pub use crate::value::{
    AddressLimits, AgentReadiness, Allocate, AllocateOptions, AllocationMetadata, AutomaticPool,
    AutomaticRules, Cause, Controller, ControllerName, CreateToken, Credential, Delegate, Dns, EndController,
    EndIncarnation, EndQuarantine, Expect, GivenPrefix, Grant, Heartbeat, HostPolicyInterface,
    HostPolicySpec, Idempotency, InterfaceRequest, Kind, Leases, Link, Manager, MaxUnavailable, Metadata,
    NamespaceSpec, NetworkSpec, NodeSpec, OnLinks, Orphan, PoolPatterns, PoolSelectors, PoolSpec,
    PrefixLevel, PrefixSource, ProbeResult, Probing, Purpose, Quota, Reclaim, ReclaimReason, Refusal,
    ReleaseAttachment, ReleaseAttachmentOf, ReleaseOrphans, Renew, ReportPods, ReportProbes, ReportedBoot,
    ReportedPod, ReservationSpec, RouteConfig, Routing, ScaleController, SecretHash, SetPrefixes, Started,
    Stickiness, SubnetSpec, Terms, Text, cause, request_hash, secret_hash,
};
pub use members::{ChangeMembers, JoinMember, KnownMember};
pub use outcome::{
    Answer, Applied, Given, GivenInterface, ListedPrefix, Outcome, Pending, PendingPrefix, Renewed, Stored,
    UnlistedPrefix,
};
