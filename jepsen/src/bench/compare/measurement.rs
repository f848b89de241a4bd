//! Measurements by name, with the systems that they compare.

use crate::bench::lab::Subject;
use crate::bench::workload::Workload;

/// Measurement of one or several systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bench) struct Measurement {
    /// Name on the command line, in files and in tables.
    pub(in crate::bench) name: &'static str,
    pub(super) kind: Kind,
    /// Systems, the build under test first.
    pub(super) subjects: &'static [Subject],
}

/// Course of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Clients in a closed loop.
    Closed(Workload, usize),
    /// The bulk load, on a cluster of its own.
    Bulk,
    /// A thousand clients at once.
    Burst,
    /// ADD of a plugin, exec to exit; true on a node with many attachments.
    Add(bool),
    /// System calls of a follower with one client.
    Syscalls,
    /// Twice the rate that a closed loop reaches.
    Overload,
    /// A large state.
    Million,
    /// Kill and SIGSTOP of a leader.
    Failover,
    /// An agent without work.
    AgentAtRest,
    /// Heartbeats of many agents.
    Heartbeats,
}

const OURS: &[Subject] = &[Subject::Ipamd];
const BUILDS: &[Subject] = &[Subject::Ipamd, Subject::Against];
const BOTH: &[Subject] = &[Subject::Ipamd, Subject::Etcd];
const THREE: &[Subject] = &[Subject::Ipamd, Subject::Etcd, Subject::Against];
const PLUGINS: &[Subject] = &[Subject::Ipamd, Subject::HostLocal];

const fn of(name: &'static str, kind: Kind, subjects: &'static [Subject]) -> Measurement {
    Measurement { name, kind, subjects }
}

impl Measurement {
    /// All measurements, in the order in which they run.
    pub(in crate::bench) const ALL: &[Self] = &[
        of("add", Kind::Add(false), PLUGINS),
        of("add-many", Kind::Add(true), PLUGINS),
        of("allocate-1", Kind::Closed(Workload::Allocate, 1), THREE),
        of("allocate-64", Kind::Closed(Workload::Allocate, 64), THREE),
        of("allocate-256", Kind::Closed(Workload::Allocate, 256), THREE),
        of("create-64", Kind::Closed(Workload::Create, 64), BOTH),
        of("syscalls", Kind::Syscalls, BUILDS),
        of("hot-pool", Kind::Closed(Workload::HotPool, 32), BOTH),
        of("reads-64", Kind::Closed(Workload::Reads, 64), BOTH),
        of("stale-reads-64", Kind::Closed(Workload::StaleReads, 64), BOTH),
        of("churn-64", Kind::Closed(Workload::Churn, 64), BUILDS),
        of("nearly-full", Kind::Closed(Workload::NearlyFull, 32), OURS),
        of("selectors", Kind::Closed(Workload::Selectors, 64), OURS),
        of("burst", Kind::Burst, THREE),
        of("overload", Kind::Overload, OURS),
        of("bulk", Kind::Bulk, OURS),
        of("failover", Kind::Failover, BOTH),
        of("agent-at-rest", Kind::AgentAtRest, OURS),
        of("heartbeats", Kind::Heartbeats, OURS),
        of("million", Kind::Million, OURS),
    ];

    /// Measurement of a name.
    pub(in crate::bench) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|measurement| measurement.name == name)
    }

    /// Rounds of the measurement.
    pub(super) fn rounds(self, rounds: usize) -> usize {
        match self.kind {
            Kind::Million | Kind::AgentAtRest | Kind::Heartbeats => 1,
            // Each round has one kill and one SIGSTOP.
            Kind::Failover => 2 * rounds,
            _ => rounds,
        }
    }
}
