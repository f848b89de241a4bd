//! All workloads over REST at three real members on loopback, without faults.
//!
//! The programs are those of `IPAM_JEPSEN_BIN_DIR`, else those beside the directory of this test.

mod cluster;
mod course;
mod tally;

use anyhow::Result;
use ipam_jepsen::checker::Record;
use ipam_jepsen::history::{Function, Operation, Process, Type};
use ipam_jepsen::workload::{self, Workload};
use std::collections::BTreeMap;

use self::cluster::Cluster;
use self::tally::Tally;

/// Refusals of a slow machine: the outcome is unknown or the request had no effect.
const SLOW: [&str; 4] = ["deadline-exceeded", "no-leader", "overloaded", "unreachable"];

/// Refusals that a workload provokes.
fn expected_refusals(workload: &str) -> &'static [&'static str] {
    match workload {
        "alloc-any" | "churn" => &["pool-exhausted", "not-found", "allocation-changed"],
        "dual-stack" => &["pool-exhausted", "already-exists", "not-found"],
        "alloc-specific" => &["address-taken", "not-found", "allocation-changed"],
        "exhaustion" | "leases" => &["not-found", "allocation-changed"],
        "prefixes" => &["pool-exhausted", "not-found", "allocation-changed"],
        "idempotence" => &["idempotency-key-reused", "not-found", "allocation-changed"],
        "reads" => &["pool-exhausted", "not-found", "allocation-changed", "cursor-expired"],
        "admin" => &[
            "pool-exhausted",
            "no-pool-fits",
            "pool-disabled",
            "terminating",
            "not-found",
            "allocation-changed",
            "revision-mismatch",
            "already-exists",
            "in-use",
        ],
        "transactions" => {
            &["pool-exhausted", "not-found", "allocation-changed", "revision-mismatch", "already-exists"]
        }
        "sticky" => &["attachment-released", "not-found"],
        "adopted" => &["address-taken", "address-reserved", "not-found", "allocation-changed"],
        _ => &[],
    }
}

#[test]
fn all_workloads_reach_their_states_without_violations() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let record = runtime.block_on(run()).unwrap();
    if let Some(dir) = std::env::var_os("IPAM_JEPSEN_KEEP") {
        course::keep(&record, dir.as_ref()).unwrap();
    }
    well_formed(&record.history);
    let violations = violations(&record);
    let tally = Tally::of(&record.history);
    tally.print();
    for workload in workloads() {
        let name = workload.name();
        for (f, error) in tally.refusals(name) {
            let is_expected = expected_refusals(name).contains(&error) || SLOW.contains(&error);
            assert!(is_expected, "{name}: {f:?} ended with {error}");
        }
    }
    assert_eq!(missing(&tally), [], "states that were never met");
    assert_eq!(violations, 0, "the output lists them");
}

/// Number of violations, which are printed.
fn violations(record: &Record) -> u64 {
    let mut violations = 0;
    for checker in ipam_jepsen::checker::all() {
        let verdict = checker.check(record);
        println!("{} {}: {} facts", checker.id(), checker.name(), verdict.checked);
        for anomaly in &verdict.anomalies {
            println!("  {} {:?} {:?}", anomaly.message, anomaly.operations, anomaly.events);
        }
        violations += verdict.violations;
    }
    violations
}

fn workloads() -> Vec<Box<dyn Workload>> {
    workload::all().into_iter().filter(|workload| !workload.needs_node()).collect()
}

async fn run() -> Result<Record> {
    let dir = tempfile::tempdir()?;
    let mut cluster = Cluster::start(dir.path())?;
    cluster.ready().await?;
    course::run(&cluster, workloads(), |history| missing(&Tally::of(history)).is_empty()).await
}

/// Each process has at most one open operation, and each operation ends.
fn well_formed(history: &[Operation]) {
    let mut open: BTreeMap<Process, Function> = BTreeMap::new();
    let mut ended: BTreeMap<Process, u64> = BTreeMap::new();
    for (at, operation) in history.iter().enumerate() {
        assert_eq!(operation.index, at as u64);
        assert_eq!(
            ended.get(&operation.process),
            None,
            "{} goes on after an unknown outcome",
            operation.process
        );
        if operation.is_invoke() {
            assert_eq!(open.insert(operation.process, operation.f), None, "{operation:?}");
        } else {
            assert_eq!(open.remove(&operation.process), Some(operation.f), "{operation:?}");
        }
        if operation.kind == Type::Info {
            ended.insert(operation.process, operation.index);
        }
        assert!(!operation.value.workload.is_empty(), "{operation:?}");
    }
    assert!(open.is_empty(), "operations without an end: {open:?}");
}

/// Successful functions and states without which a workload tests nothing, as far as they are missing.
fn missing(tally: &Tally) -> Vec<(&'static str, Function, &'static str)> {
    let mut all = INTERESTING.to_vec();
    for workload in workloads() {
        all.extend(workload.functions().iter().map(|f| (workload.name(), *f, "ok")));
    }
    all.retain(|(workload, f, state)| tally.state(workload, *f, state) == 0);
    all
}

const INTERESTING: [(&str, Function, &str); 24] = [
    ("alloc-any", Function::Allocate, "repeated"),
    ("alloc-specific", Function::Allocate, "address-taken"),
    ("churn", Function::Allocate, "pool-exhausted"),
    ("exhaustion", Function::Claim, "waiting"),
    ("exhaustion", Function::Claim, "served"),
    ("leases", Function::Read, "free"),
    ("leases", Function::Allocate, "repeated"),
    ("prefixes", Function::Delegate, "pool-exhausted"),
    ("prefixes", Function::Return, "several"),
    ("dual-stack", Function::Allocate, "pool-exhausted"),
    ("dual-stack", Function::Allocate, "several"),
    ("idempotence", Function::Allocate, "replayed"),
    ("idempotence", Function::Allocate, "idempotency-key-reused"),
    ("reads", Function::List, "pages"),
    ("reads", Function::Events, "stream"),
    ("reads", Function::Events, "page"),
    ("admin", Function::Put, "revision-mismatch"),
    ("admin", Function::Put, "in-use"),
    ("admin", Function::Delete, "ok"),
    ("transactions", Function::Transaction, "revision-mismatch"),
    ("transactions", Function::Transaction, "allocation-changed"),
    ("transactions", Function::Transaction, "several"),
    ("adopted", Function::Allocate, "address-taken"),
    ("adopted", Function::Allocate, "address-reserved"),
];
