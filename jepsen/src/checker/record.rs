//! Record: all data of a run, and the only input of the checkers.

use ipam_api::event::Event;
use ipam_api::resource::{Allocation, Pool, PoolStatus, Prefix, Resource};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::history::Operation;

/// A run. [`crate::store`] writes and reads it as a directory.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Settings of the run.
    pub settings: Settings,
    /// Operations by index.
    pub history: Vec<Operation>,
    /// Journal of the cluster, complete, in order.
    pub journal: Vec<Event>,
    /// States of all members at the end.
    pub finals: Vec<Final>,
    /// Digests during the run.
    pub samples: Vec<Sample>,
    /// Ends of processes.
    pub exits: Vec<Exit>,
}

/// Settings of a run, enough to repeat it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Seed of all choices.
    pub seed: u64,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Names of the nemeses.
    pub nemeses: Vec<String>,
    /// Number of members at the begin.
    pub members: usize,
    /// True with TLS and tokens.
    pub is_secure: bool,
    /// True for a simulated run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_simulated: bool,
    /// Time in which clients work.
    pub time_ms: u64,
    /// Options of the test build, such as seeded bugs.
    pub test_options: Vec<String>,
    /// Version of the binaries.
    pub version: String,
    /// Wall time of the begin, RFC 3339.
    pub began_at: String,
    /// Longest time without an accepted write that is no violation, by nemesis; none for no bound.
    pub gap_ms_max: Option<u64>,
    /// Idle share of the machine's CPUs during the run, in percent.
    pub idle_percent: u8,
    /// Failures that no checker sees: a cluster that does not recover, a fault that can't be healed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// True if the driver ended the run in an orderly way.
    pub is_complete: bool,
}

/// State of one member at the end of a run, after all faults are healed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Final {
    /// Nanoseconds from the begin of a simulated run to the read of the state; 0 for a live run.
    #[serde(default)]
    pub time_ns: u64,
    /// Name of the member.
    pub member: String,
    /// Index of the last applied entry.
    pub applied: u64,
    /// Revision of the state.
    pub revision: u64,
    /// Digest of the state.
    pub digest: String,
    /// All allocations, by a stale read at this member.
    pub allocations: Vec<Allocation>,
    /// All prefixes.
    pub prefixes: Vec<Prefix>,
    /// All pools with their counts.
    pub pools: Vec<Resource<Pool, PoolStatus>>,
}

/// Digest of a member at an applied index.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Nanoseconds since the run began.
    pub time_ns: u64,
    /// Name of the member.
    pub member: String,
    /// Index of the last applied entry.
    pub applied: u64,
    /// Digest of the state at that index.
    pub digest: String,
    /// Epoch of the cluster: indexes of different epochs are not comparable.
    pub epoch: u64,
    /// Raft term of the member.
    #[serde(default)]
    pub term: u64,
    /// Leader of the term, if the member knows one.
    pub leader: Option<String>,
}

/// End of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Nanoseconds since the run began.
    pub time_ns: u64,
    /// Member, agent or host.
    pub process: String,
    /// Exit status.
    pub status: String,
    /// True if a fault explains the end.
    pub is_expected: bool,
    /// Panics and broken invariants in the log of the process.
    pub complaints: Vec<String>,
}

impl Exit {
    /// Status of a process that reports a complaint and still runs.
    pub const RUNS: &'static str = "runs";
}
