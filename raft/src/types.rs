//! openraft's type parameters, chosen once. The only place where the crate's types and openraft's meet.

use openraft::impls::leader_id_adv::LeaderId;
use openraft::impls::{BoxedErrorSource, InlineBatch};
use openraft::raft::responder::Responder;
use openraft::vote::RaftLeaderId;
use openraft::{EntryPayload, OptionalSend, RaftTypeConfig};
use serde::{Deserialize, Serialize};

use ipam_machine::Outcome;
use ipam_machine::batch::Batch;

/// Runtime of openraft's tasks. Tests use a runtime with seeded random numbers and pauses.
#[cfg(not(feature = "testing"))]
type Runtime = openraft::impls::TokioRuntime;
#[cfg(feature = "testing")]
type Runtime = openraft_rt::deterministic_rng::DeterministicRng<crate::simulation::PausableRuntime>;

/// Type parameters of openraft. openraft's macro for them can't name the responder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Types;

impl RaftTypeConfig for Types {
    type D = Batch;
    type R = Outcomes;
    type NodeId = u64;
    type Node = Member;
    type Term = u64;
    type LeaderId = LeaderId<u64, u64>;
    type Vote = openraft::impls::Vote<Self::LeaderId>;
    type Payload = Payload;
    type Entry = openraft::Entry<<Self::LeaderId as RaftLeaderId>::Committed, Self::Payload>;
    type Responder<T>
        = Recipient<T>
    where
        T: OptionalSend + 'static;
    type Batch<T>
        = InlineBatch<T>
    where
        T: OptionalSend + 'static;
    type AsyncRuntime = Runtime;
    type ErrorSource = BoxedErrorSource;
}

/// Runs code that starts openraft tasks, with random numbers of the simulation.
#[cfg(feature = "testing")]
pub(crate) fn with_random_numbers<T>(starting: impl Future<Output = T>) -> impl Future<Output = T> {
    Runtime::scope(crate::simulation::random_id().as_u64_pair().0, starting)
}

/// Runs code that starts openraft tasks.
#[cfg(not(feature = "testing"))]
pub(crate) fn with_random_numbers<T>(starting: impl Future<Output = T>) -> impl Future<Output = T> {
    starting
}

/// Recipient of the outcome of a write, called once on the thread that has the outcome: no task has to be
/// woken to pass it on. If raft ends before, it is dropped.
pub(crate) struct Recipient<T>(Box<dyn FnOnce(T) + Send>);

impl<T> Recipient<T> {
    /// Makes a recipient of a function that doesn't block.
    pub(crate) fn new(receive: impl FnOnce(T) + Send + 'static) -> Self {
        Self(Box::new(receive))
    }
}

impl<T: OptionalSend + 'static> Responder<Types, T> for Recipient<T> {
    fn on_complete(self, outcome: T) {
        (self.0)(outcome);
    }
}

/// The outcomes of the commands of one entry.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcomes {
    /// Outcomes in the order of the commands; empty for entries that carry none.
    pub(crate) all: Vec<Outcome>,
    /// Time that this member took to apply each command.
    pub(crate) took: Vec<std::time::Duration>,
}

/// Member in the log's membership. Its addresses are those of its founding or joining; the environment may
/// have changed them since, so members are looked up by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, as in all configurations.
    pub name: String,
    /// Random id of the member's data directory, created with the directory and never reused.
    pub disk_id: String,
    /// Peer address at that time.
    pub peer_address: String,
    /// Client URL at that time.
    pub client_url: String,
}

/// The role of a member in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Belongs to no cluster yet.
    Pristine,
    /// Receives the log, and has no vote.
    Learner,
    /// Has a vote, and follows a leader.
    Follower,
    /// Has a vote, and is a candidate.
    Candidate,
    /// Leads the cluster.
    Leader,
}

/// A member, as another member knows it. Sent between members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberInfo {
    /// Id of the member, never reused.
    pub id: u64,
    pub name: String,
    /// `Leader`, `Follower` for every other voter, or `Learner`.
    pub role: Role,
    pub peer_address: String,
    pub client_url: String,
    /// Missing log entries; known to the leader only.
    pub behind: Option<u64>,
    /// Time since the member's last answer; known to the leader only, and not before the first answer.
    pub silent_ms: Option<u64>,
    /// True if the member answers the leader; known to the leader only.
    pub answers: Option<bool>,
    /// Reason why the member doesn't serve, if its last report declares its state suspect.
    pub quarantined: Option<String>,
    /// Version of the member's program; unknown while the member doesn't answer.
    pub version: Option<String>,
    /// Highest level that the member's program knows; unknown while the member doesn't answer.
    pub level: Option<u32>,
}

impl MemberInfo {
    /// Returns true if the member has a vote.
    #[must_use]
    pub fn votes(&self) -> bool {
        !matches!(self.role, Role::Learner | Role::Pristine)
    }
}

pub(crate) type LogId = openraft::type_config::alias::LogIdOf<Types>;
pub(crate) type Vote = openraft::type_config::alias::VoteOf<Types>;
pub(crate) type Payload = EntryPayload<Batch, u64, Member>;
pub(crate) type Entry = openraft::type_config::alias::EntryOf<Types>;
pub(crate) type StoredMembership = openraft::type_config::alias::StoredMembershipOf<Types>;
