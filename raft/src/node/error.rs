//! Errors of the node, and the conclusions that a client may draw.

use ipam_api::limits::{PROPOSAL_WAIT_MS_MAX, RETRY_AFTER_MS_MIN};
use ipam_api::{Code, Problem};

use crate::store::{StoreError, StoreFailure};
use crate::transport::{Busy, Declined};

/// Reason why a member can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error("the configuration can't work: {0}")]
    Config(String),
    /// The data directory can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cluster can't be founded.
    #[error("the cluster can't be founded: {0}")]
    Founding(String),
    /// Raft doesn't start on what the data directory holds.
    #[error("raft doesn't start: {0}")]
    Raft(String),
}

/// Reason why a member had to stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The disk failed a write or a read, which this process never retries.
    #[error("{0}")]
    Disk(String),
    /// The state breaks an invariant of the machine; a restart doesn't help.
    #[error("{0}")]
    Broken(String),
    /// Another failure.
    #[error("{0}")]
    Other(String),
    /// The member was removed from its cluster; a restart doesn't help.
    #[error("{0}")]
    Removed(String),
}

impl From<StoreFailure> for Failure {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::Disk(why) => Self::Disk(why),
            StoreFailure::Broken(broken) => Self::Broken(broken.to_string()),
        }
    }
}

/// Reason why a proposal has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// There was no leader until the deadline; nothing was appended.
    #[error("no member leads")]
    NoLeader,
    /// The queue takes no proposal of this requester now; nothing was appended.
    #[error("{}", busy(*.why))]
    Overloaded {
        /// Reason.
        why: Busy,
        /// Recommended pause before the next attempt, in milliseconds.
        retry_after_ms: u64,
    },
    /// The proposal exceeds a log entry; nothing was appended.
    #[error("the command has {bytes} bytes")]
    TooLarge {
        /// Encoded size of the command, in bytes.
        bytes: usize,
    },
    /// The deadline passed.
    #[error("no outcome in time")]
    DeadlineExceeded {
        /// True if the proposal may have entered the log.
        maybe_applied: bool,
    },
    /// The proposal may be in the log, but its leader was lost before the outcome was known.
    #[error("the leader was lost before the outcome was known{}", leads(leader.as_deref()))]
    Unknown {
        /// The name of the leader that is known now.
        leader: Option<String>,
    },
    /// The proposal is in the log, and its outcome is too large to be forwarded.
    #[error("the outcome has {bytes} bytes, too many to be passed on between members")]
    OutcomeTooLarge {
        /// Encoded size of the outcome, in bytes.
        bytes: u64,
    },
    /// The member is stopping; nothing was appended.
    #[error("this member is stopping")]
    ShuttingDown,
    /// The member's state is suspect; nothing was appended.
    #[error("{0}")]
    Quarantined(String),
    /// A majority of the disks has no space for the proposal; nothing was appended.
    #[error("the disks of a majority of the members are full")]
    DiskFull,
}

fn busy(why: Busy) -> String {
    match why {
        Busy::Share => {
            "other requests of this principal and namespace hold their share of the queue".to_owned()
        }
        Busy::Wait => {
            format!("the queue can't serve the request in time, or within {PROPOSAL_WAIT_MS_MAX} ms")
        }
    }
}

fn leads(leader: Option<&str>) -> String {
    leader.map(|name| format!("; {name} leads now")).unwrap_or_default()
}

impl From<Declined> for ProposeError {
    fn from(declined: Declined) -> Self {
        match declined {
            Declined::NoLeader => Self::NoLeader,
            // Only members of an older version send this.
            Declined::Overloaded => Self::Overloaded { why: Busy::Wait, retry_after_ms: RETRY_AFTER_MS_MIN },
            Declined::Busy { why, retry_after_ms } => Self::Overloaded { why, retry_after_ms },
            Declined::ShuttingDown => Self::ShuttingDown,
            Declined::Expired { maybe_applied } => Self::DeadlineExceeded { maybe_applied },
            Declined::Unknown => Self::Unknown { leader: None },
            Declined::DiskFull => Self::DiskFull,
            Declined::TooLarge { bytes } => Self::OutcomeTooLarge { bytes },
        }
    }
}

impl From<ProposeError> for Problem {
    fn from(error: ProposeError) -> Self {
        let (code, maybe_applied) = match error {
            ProposeError::NoLeader => (Code::NoLeader, false),
            ProposeError::Overloaded { retry_after_ms, .. } => {
                return Self::new(Code::Overloaded, error.to_string()).retry_after(retry_after_ms);
            }
            ProposeError::TooLarge { .. } => (Code::TooLarge, false),
            ProposeError::DeadlineExceeded { maybe_applied } => (Code::DeadlineExceeded, maybe_applied),
            ProposeError::Unknown { .. } => (Code::NoLeader, true),
            ProposeError::OutcomeTooLarge { .. } => (Code::TooLarge, true),
            ProposeError::ShuttingDown => (Code::ShuttingDown, false),
            ProposeError::Quarantined(_) => (Code::StateDiverged, false),
            ProposeError::DiskFull => (Code::StorageFull, false),
        };
        let problem = Self::new(code, error.to_string());
        if maybe_applied { problem.maybe_applied() } else { problem }
    }
}

/// Reason why a linearizable read failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No member led until the deadline.
    #[error("no member leads")]
    NoLeader,
    /// Too many reads wait already.
    #[error("too many reads wait already")]
    Overloaded,
    /// There was a leader, but this member didn't catch up in time.
    #[error("this member didn't catch up in time")]
    DeadlineExceeded,
    /// This member didn't reach the requested revision in time.
    #[error("this member is at revision {at}, and not yet at {revision}")]
    NotReached {
        revision: u64,
        /// Current revision of this member.
        at: u64,
    },
    /// This member is stopping.
    #[error("this member is stopping")]
    ShuttingDown,
    /// This member's state is suspect: it may differ from the other members' state.
    #[error("{0}")]
    Quarantined(String),
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        let code = match error {
            ReadError::NoLeader => Code::NoLeader,
            ReadError::Overloaded => Code::Overloaded,
            ReadError::DeadlineExceeded => Code::DeadlineExceeded,
            ReadError::NotReached { .. } => Code::RevisionNotReached,
            ReadError::ShuttingDown => Code::ShuttingDown,
            ReadError::Quarantined(_) => Code::StateDiverged,
        };
        Self::new(code, error.to_string())
    }
}

/// Reason why leadership was not handed over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandOverError {
    /// No member led until the deadline.
    #[error("no member leads")]
    NoLeader,
    /// The chosen member can't lead.
    #[error("{0}")]
    Unfit(String),
    /// The chosen member didn't take over in time; a member may still do so.
    #[error("leadership wasn't taken over in time")]
    DeadlineExceeded,
    /// This member is stopping.
    #[error("this member is stopping")]
    ShuttingDown,
}

impl From<HandOverError> for Problem {
    fn from(error: HandOverError) -> Self {
        let detail = error.to_string();
        match error {
            HandOverError::NoLeader => Self::new(Code::NoLeader, detail),
            HandOverError::Unfit(_) => {
                Self::new(Code::MemberUnfit, detail).help("Check the members: ipamctl cluster members.")
            }
            HandOverError::DeadlineExceeded => Self::new(Code::DeadlineExceeded, detail).maybe_applied(),
            HandOverError::ShuttingDown => Self::new(Code::ShuttingDown, detail),
        }
    }
}
