//! Rows of the table: figures of the acceptance criteria with their bars, and figures for information.

use super::results::Results;
use crate::bench::lab::Subject;

/// Bar of a figure: the threshold that the figure must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bar {
    AtLeast(f64),
    AtMost(f64),
    /// For information.
    None,
}

/// Figure of one system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) measurement: &'static str,
    pub(super) subject: Subject,
    pub(super) figure: &'static str,
}

/// One row: a figure, or the ratio of two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) own: Source,
    /// Figure to which the ratio compares; without one the bar applies to the figure itself.
    pub(super) other: Option<Source>,
    pub(super) bar: Bar,
}

impl Row {
    /// Value of a source, if it was measured.
    pub(super) fn value(source: Source, results: &Results) -> Option<f64> {
        results.median(source.measurement, source.subject, source.figure)
    }
}

const fn source(measurement: &'static str, subject: Subject, figure: &'static str) -> Source {
    Source { measurement, subject, figure }
}

/// Row that compares one figure of one measurement of two systems.
const fn ratio(
    name: &'static str,
    unit: &'static str,
    (measurement, figure): (&'static str, &'static str),
    other: Subject,
    bar: Bar,
) -> Row {
    let other = Some(source(measurement, other, figure));
    Row { name, unit, own: source(measurement, Subject::Ipamd, figure), other, bar }
}

/// Row of a figure of the build under test alone.
const fn single(
    name: &'static str,
    unit: &'static str,
    (measurement, figure): (&'static str, &'static str),
    bar: Bar,
) -> Row {
    Row { name, unit, own: source(measurement, Subject::Ipamd, figure), other: None, bar }
}

use Bar::{AtLeast, AtMost};
use Subject::{Against, Etcd, HostLocal};

/// All rows; the rows of the acceptance criteria come first, in their order.
pub(super) const ROWS: &[Row] = &[
    ratio("allocate, 64 clients; etcd: put", "/s", ("allocate-64", "per_s"), Etcd, AtLeast(2.0)),
    ratio("allocate, 256 clients; etcd: put", "/s", ("allocate-256", "per_s"), Etcd, AtLeast(1.5)),
    ratio("allocate, 1 client, p50; etcd: put", "ms", ("allocate-1", "p50_ms"), Etcd, AtMost(0.6)),
    ratio("CPU per allocation, 1 client", "µs", ("allocate-1", "cpu_us"), Against, AtMost(0.25)),
    ratio("CPU per allocation, 64 clients", "µs", ("allocate-64", "cpu_us"), Against, AtMost(0.25)),
    single("futex calls per entry of a follower, 1 client", "", ("syscalls", "futex-per-entry"), AtMost(4.0)),
    ratio("hot pool, 32 writers; etcd: compare-and-swap", "/s", ("hot-pool", "per_s"), Etcd, AtLeast(50.0)),
    ratio("linearizable read, 64 clients; etcd: get", "/s", ("reads-64", "per_s"), Etcd, AtLeast(1.5)),
    single("bulk of 1,000, addresses", "/s", ("bulk", "per_s"), AtLeast(50_000.0)),
    ratio("ADD, p50, nothing held", "ms", ("add", "p50_ms"), HostLocal, AtMost(0.9)),
    ratio("ADD, p50, many held", "ms", ("add-many", "p50_ms"), HostLocal, AtMost(0.3)),
    ratio("ADD, p99, nothing held", "ms", ("add", "p99_ms"), HostLocal, AtMost(1.0)),
    ratio("ADD, p99, many held", "ms", ("add-many", "p99_ms"), HostLocal, AtMost(1.0)),
    ratio("burst of 1,000 dual-stack; etcd: puts", "s", ("burst", "elapsed_s"), Etcd, AtMost(0.7)),
    single("burst, failures", "", ("burst", "failures"), AtMost(0.0)),
    Row {
        name: "burst with a large state; with 100 held",
        unit: "s",
        own: source("million", Subject::Ipamd, "burst-many-s"),
        other: Some(source("million", Subject::Ipamd, "burst-few-s")),
        bar: AtMost(1.2),
    },
    single("resident bytes per held allocation, leader", "B", ("million", "resident-bytes"), AtMost(800.0)),
    single("p99 while snapshots are built, ratio", "", ("million", "building-p99-ratio"), AtMost(2.0)),
    single("p99 while a snapshot is sent, ratio", "", ("million", "sending-p99-ratio"), AtMost(2.0)),
    single("p99 while a full scan runs, ratio", "", ("million", "scanning-p99-ratio"), AtMost(2.0)),
    ratio("write gap, kill -9 of the leader", "s", ("failover", "kill-gap-s"), Etcd, AtMost(0.4)),
    ratio("write gap, SIGSTOP of the leader", "s", ("failover", "pause-gap-s"), Etcd, AtMost(0.7)),
    // For information.
    ratio("allocate, 1 client; etcd: put", "/s", ("allocate-1", "per_s"), Etcd, Bar::None),
    ratio("allocate, 64 clients, p99; etcd: put", "ms", ("allocate-64", "p99_ms"), Etcd, Bar::None),
    ratio("allocate, 256 clients, p99; etcd: put", "ms", ("allocate-256", "p99_ms"), Etcd, Bar::None),
    ratio("allocate, 64 clients; etcd: create if absent", "/s", ("create-64", "per_s"), Etcd, Bar::None),
    ratio("stale read, 64 clients; etcd: serializable", "/s", ("stale-reads-64", "per_s"), Etcd, Bar::None),
    ratio("allocate, 1 client, p50", "ms", ("allocate-1", "p50_ms"), Against, Bar::None),
    ratio("allocate, 64 clients", "/s", ("allocate-64", "per_s"), Against, Bar::None),
    ratio("allocate, 256 clients", "/s", ("allocate-256", "per_s"), Against, Bar::None),
    ratio("futex calls per entry of a follower", "", ("syscalls", "futex-per-entry"), Against, Bar::None),
    ratio("allocate and release, 64 clients", "/s", ("churn-64", "per_s"), Against, Bar::None),
    ratio("burst of 1,000 dual-stack", "s", ("burst", "elapsed_s"), Against, Bar::None),
    single("nearly full pool, 32 clients", "/s", ("nearly-full", "per_s"), Bar::None),
    single("selectors, 64 pools, 64 clients", "/s", ("selectors", "per_s"), Bar::None),
    single("p99 of accepted requests in 2× overload", "ms", ("overload", "overloaded-p99_ms"), Bar::None),
    single("large state, filled by bulk requests", "/s", ("million", "fill-per_s"), Bar::None),
    single("large state, ready after a clean stop", "s", ("million", "ready-clean-s"), AtMost(5.0)),
    single("large state, ready without rows", "s", ("million", "ready-without-rows-s"), AtMost(15.0)),
    single(
        "large state, ready by replay of the whole log",
        "s",
        ("million", "ready-without-rows-and-snapshot-s"),
        AtMost(15.0),
    ),
    single("agent at rest, CPU", "%", ("agent-at-rest", "cpu-percent"), Bar::None),
    single("agent at rest, resident", "MiB", ("agent-at-rest", "resident-mib"), Bar::None),
    single("heartbeats of all agents, CPU of the leader", "%", ("heartbeats", "leader-percent"), AtMost(5.0)),
];
