//! A member of the cluster for the daemon: proposals, reads, and the leader.
//!
//! **Invariant:** nothing of openraft is visible here, and nothing here decides about addresses.

mod backup;
mod callers;
mod config;
mod counters;
mod digests;
mod disks;
mod elections;
mod error;
mod fetching;
mod founders;
mod founding;
mod gate;
mod handing_over;
mod handle;
mod history;
mod host;
mod inner;
mod leadership;
mod leaving;
mod lifecycle;
mod members;
mod membership;
mod own_leadership;
mod pace;
mod places;
mod profile;
mod proposal_timing;
mod proposals;
mod queue;
mod raft;
mod reads;
mod requester;
mod ring;
mod running;
mod shares;
mod snapshots;
mod starting;
mod status;
mod tasks;
mod transfer;
mod waiting;
mod working;

pub use backup::BackupError;
pub use config::{InitialMember, NodeConfig, Timing};
pub use counters::NodeMetrics;
pub use error::{Failure, HandOverError, ProposeError, ReadError, StartError};
pub use handle::{LOG_DIRECTIVES, Node};
pub use membership::VOTE_MISSING_ENTRIES_MAX;
pub use proposal_timing::ProposalTiming;
pub use snapshots::SnapshotPolicy;
pub use status::Status;

pub use crate::store::{DiskLimits, DiskSpace, FreeSpace};
pub use crate::transport::{Busy, PeerCredentials, PeerPort, PeerTls};
pub use crate::types::{Member, MemberInfo, Role};
