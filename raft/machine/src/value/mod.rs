//! Values that commands, rows and events share: specs, names, terms, and the causes of refusals.

mod agent;
mod automatic;
pub mod cause;
pub(crate) mod condition;
pub(crate) mod counts;
pub(crate) mod event_id;
pub(crate) mod field_name;
pub(crate) mod host_policy;
pub(crate) mod id;
mod id_list;
mod kind;
pub(crate) mod level;
mod on_links;
mod options;
mod pod;
pub(crate) mod prefix;
mod probe;
pub(crate) mod quota;
mod rare_list;
mod refusal;
mod routing;
pub(crate) mod row;
pub(crate) mod shape;
pub(crate) mod spec;
mod sticky;
mod terms;
mod text;
mod time;
pub(crate) mod words;
mod workload;

pub use self::agent::{AgentReadiness, Heartbeat, Orphan, ReleaseOrphans, ReportedBoot};
pub use self::automatic::{AutomaticPool, AutomaticRules, EndController};
pub use self::cause::Cause;
pub use self::host_policy::{HostPolicyInterface, HostPolicySpec, MaxUnavailable};
pub use self::id_list::IdList;
pub use self::kind::{Expect, Kind};
pub use self::on_links::OnLinks;
pub use self::options::{AllocateOptions, AllocationMetadata, Leases, Renew};
pub use self::pod::{ReportPods, ReportedPod, ReportedRealm};
pub use self::prefix::{Delegate, GivenPrefix, PrefixLevel, PrefixSource, SetPrefixes};
pub use self::probe::{EndQuarantine, Link, ProbeResult, Probing, Reclaim, ReclaimReason, ReportProbes};
pub use self::quota::{AddressLimits, ControllerName, Quota};
pub use self::rare_list::RareList;
pub use self::refusal::Refusal;
pub(crate) use self::refusal::refuse_if;
pub use self::routing::{RouteConfig, Routing};
pub use self::spec::{
    Allocate, Dns, InterfaceRequest, Metadata, NamespaceSpec, NetworkSpec, NodeSpec, PoolPatterns,
    PoolSelectors, PoolSpec, ReleaseAttachment, ReleaseAttachmentOf, ReservationSpec, Started, SubnetSpec,
};
pub use self::sticky::{Controller, ScaleController, Stickiness};
pub use self::terms::{
    CreateToken, Credential, Grant, Idempotency, Manager, Purpose, SecretHash, Terms, request_hash,
    secret_hash,
};
pub use self::text::Text;
pub use self::time::At;
pub use self::workload::EndIncarnation;
