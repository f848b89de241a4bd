//! Commands: entries of the log, their validation and their outcomes.

mod action;
pub mod batch;
mod identity;
mod members;
mod outcome;
pub(crate) mod validate;

pub use self::action::*;
pub use crate::value::{
    AddressLimits, Allocate, AllocateOptions, AllocationMetadata, AutomaticPool, AutomaticRules, Cause,
    Controller, ControllerName, CreateToken, Credential, Delegate, Dns, EndController, Expect, GivenPrefix,
    Grant, Idempotency, InterfaceRequest, Kind, Leases, Manager, Metadata, NamespaceSpec, NetworkSpec,
    NodeSpec, PoolPatterns, PoolSelectors, PoolSpec, PrefixLevel, PrefixSource, Purpose, Quota, Refusal,
    ReleaseAttachment, Renew, ReservationSpec, RouteConfig, Routing, ScaleController, SecretHash, Started,
    Stickiness, SubnetSpec, Terms, Text, cause, request_hash, secret_hash,
};
pub use members::{ChangeMembers, JoinMember, KnownMember};
pub use outcome::{Answer, Applied, Given, GivenInterface, Outcome, Pending, Renewed, Stored};
