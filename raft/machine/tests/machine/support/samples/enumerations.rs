//! Of everything that travels as a number alone.

use ipam_api::access::Role;
use ipam_machine::command::{Expect, Kind, MaxUnavailable, Purpose, Via};

use ipam_api::node_report::{AgentProblem, OrphanEvidence};
use ipam_api::resource::{EndpointKind, Lifecycle, PoolSize, ScaleDown, Strategy};
use ipam_machine::command::cause::Claimed;
use ipam_machine::event::{Readiness, Reason, WaitReason};
use ipam_machine::model::{AutomaticStanding, MemberStanding, Source};

/// Enumerations that travel by position, all of their values.
pub(crate) fn enumerations() -> Vec<(&'static str, Vec<u8>)> {
    fn bytes<T: serde::Serialize>(all: &[T]) -> Vec<u8> {
        postcard::to_stdvec(all).unwrap()
    }
    vec![
        ("kind", bytes(&[Kind::Network, Kind::Subnet, Kind::Pool, Kind::Reservation, Kind::Token])),
        ("kind-in-a-realm", bytes(&[Kind::Node, Kind::Namespace])),
        ("kind-of-templates", bytes(&[Kind::HostPolicy])),
        ("max-unavailable", bytes(&[MaxUnavailable::Count(3), MaxUnavailable::Percent(50)])),
        ("role", bytes(&Role::ALL)),
        ("purpose", bytes(&[Purpose::Bearer, Purpose::Join, Purpose::JoinMember])),
        (
            "member-standing",
            bytes(&[MemberStanding::Learner, MemberStanding::Voter, MemberStanding::Removed]),
        ),
        ("via", bytes(&[Via::Http, Via::Cni, Via::Task])),
        ("expect", bytes(&[Expect::Anything, Expect::Absent, Expect::Revision(5)])),
        ("lifecycle", bytes(&[Lifecycle::Attached, Lifecycle::Leased, Lifecycle::Held])),
        ("strategy", bytes(&[Strategy::Next, Strategy::Sequential, Strategy::Random])),
        (
            "reason",
            bytes(&[
                Reason::AttachmentReleased,
                Reason::AllocationReleased,
                Reason::EndpointReleased,
                Reason::AttachmentAdded,
                Reason::Requested,
            ]),
        ),
        (
            "reason-of-sticky-endpoints",
            bytes(&[
                Reason::Reattached,
                Reason::Shared,
                Reason::Kept,
                Reason::Moved,
                Reason::ScaledDown,
                Reason::Claimed,
                Reason::Preallocated,
            ]),
        ),
        ("reason-of-leases-and-claims", bytes(&[Reason::LeaseEnded, Reason::Adopted, Reason::Waited])),
        ("reason-of-nodes", bytes(&[Reason::Migrated, Reason::Superseded])),
        (
            "reason-of-orphans",
            bytes(&[Reason::OrphanNetnsGone, Reason::OrphanEarlierBoot, Reason::OrphanNotInGcList]),
        ),
        ("reason-of-probes", bytes(&[Reason::Conflict, Reason::NodeGone, Reason::NodeSilent])),
        (
            "orphan-evidence",
            bytes(&[OrphanEvidence::NetnsGone, OrphanEvidence::EarlierBoot, OrphanEvidence::NotInGcList]),
        ),
        ("agent-problem", bytes(&[AgentProblem::JournalUnwritable, AgentProblem::SocketUnavailable])),
        ("source", bytes(&[Source::Operator, Source::Adopted])),
        (
            "why",
            bytes(&[
                WaitReason::PoolExhausted,
                WaitReason::PoolNotReady,
                WaitReason::AllocationFailed,
                WaitReason::QuotaExceeded,
            ]),
        ),
        ("readiness-of-a-drained-pool", bytes(&[Readiness::Drained])),
        ("scale-down", bytes(&[ScaleDown::Release, ScaleDown::Keep])),
        ("pool-size", bytes(&[PoolSize::Fixed(5), PoolSize::Flexible(2)])),
        (
            "standing-of-an-application",
            bytes(&[AutomaticStanding::Present, AutomaticStanding::Elsewhere, AutomaticStanding::Ended]),
        ),
        (
            "readiness",
            bytes(&[Readiness::Serving, Readiness::Exhausted, Readiness::Disabled, Readiness::Terminating]),
        ),
        ("readiness-after-a-restore", bytes(&[Readiness::Unconfirmed])),
        (
            "claimed",
            bytes(&[Claimed::Uid, Claimed::Node, Claimed::Name, Claimed::Controller, Claimed::Namespace]),
        ),
        ("endpoint-kind", bytes(&EndpointKind::ALL)),
    ]
}
