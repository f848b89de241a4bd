//! I15: a repeated ADD of a live attachment keeps its addresses, and a DEL never fails with a running agent.
//!
//! Ids of allocations are revisions, so that the journal tells whether the allocations of an earlier ADD were
//! released before those of a later one were made. Other checkers judge the release itself.

use std::collections::{BTreeMap, BTreeSet};

use super::intervals::{FaultInterval, Interval, faults, operations};
use super::{Checker, Record, Verdict};
use crate::history::{Function, Type};
use crate::nemesis::Kind;

/// Checker of I15.
#[derive(Debug)]
pub(super) struct CniIdempotence;

/// Time that an agent takes to start after its fault is healed.
const START_NS: u64 = 10_000_000_000;

impl Checker for CniIdempotence {
    fn id(&self) -> &'static str {
        "I15"
    }

    fn name(&self) -> &'static str {
        "CNI idempotence"
    }

    fn promises(&self) -> &'static [u8] {
        &[3, 12]
    }

    fn about(&self) -> &'static str {
        "A repeated ADD of a live attachment keeps its addresses, and DEL succeeds while the agent runs."
    }

    fn check(&self, record: &Record) -> Verdict {
        let mut verdict = Verdict::default();
        let operations = operations(&record.history);
        check_adds(record, &operations, &mut verdict);
        check_dels(&operations, &faults(&record.history), &mut verdict);
        verdict
    }
}

/// Allocations that one ADD answered.
struct Added<'a> {
    /// Addresses by allocation id.
    grants: BTreeMap<u64, &'a str>,
    interval: Interval<'a>,
}

fn check_adds(record: &Record, operations: &[Interval<'_>], verdict: &mut Verdict) {
    let released: BTreeMap<u64, u64> = record
        .journal
        .iter()
        .filter(|event| event.event_type == "address.released")
        .filter_map(|event| Some((event.allocation?, event.revision)))
        .collect();
    let mut adds: BTreeMap<&str, Vec<Added<'_>>> = BTreeMap::new();
    for interval in operations {
        let Some(key) = interval.begin.value.key.as_deref() else { continue };
        if interval.begin.f == Function::Add && interval.kind() == Type::Ok {
            let grants = interval.value().grants.iter();
            let grants = grants.map(|grant| (grant.id, grant.address.as_str())).collect();
            adds.entry(key).or_default().push(Added { grants, interval: *interval });
        }
    }
    let mut repeated = 0_u64;
    for (key, mut adds) in adds {
        // In the order in which the state machine made them.
        adds.sort_by_key(|add| (add.grants.keys().next().copied(), add.interval.begin.index));
        for pair in adds.windows(2) {
            let [first, second] = pair else { continue };
            verdict.checked += 1;
            repeated += u64::from(first.grants == second.grants);
            if let Some(problem) = difference(first, second, &released) {
                let both = first.interval.indexes().chain(second.interval.indexes());
                verdict.violated(format!("attachment {key}: {problem}"), both);
            }
        }
    }
    verdict.figure("repeated ADDs with the same addresses", repeated);
}

/// Problem of two successful ADDs of one attachment, if there is one.
fn difference(first: &Added<'_>, second: &Added<'_>, released: &BTreeMap<u64, u64>) -> Option<String> {
    if let Some((id, address)) = second.grants.iter().find(|(id, address)| {
        first.grants.get(*id).is_some_and(|other| other != *address)
    }) {
        return Some(format!("allocation {id} has two addresses, {} and {address}", first.grants.get(id)?));
    }
    let made = second.grants.keys().find(|id| !first.grants.contains_key(*id));
    let mut missing = first.grants.iter().filter(|(id, _)| !second.grants.contains_key(*id));
    let kept = missing.find(|(id, _)| match (released.get(*id), made) {
        (None, _) => true,
        (Some(released), Some(made)) => released > made,
        (Some(_), None) => false,
    });
    kept.map(|(id, address)| {
        let later: BTreeSet<&str> = second.grants.values().copied().collect();
        let later = later.into_iter().collect::<Vec<_>>().join(", ");
        format!("one ADD got {address} ({id}) and another {later}, and {id} was not released between them")
    })
}

fn check_dels(operations: &[Interval<'_>], faults: &[FaultInterval<'_>], verdict: &mut Verdict) {
    let mut absences: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for fault in faults {
        if let Kind::Agents { hosts } | Kind::Nodes { hosts } = &fault.fault.kind {
            let absence = (fault.begin_ns(), fault.end_ns().saturating_add(START_NS));
            hosts.iter().for_each(|host| absences.entry(host).or_default().push(absence));
        }
    }
    let mut succeeded = 0_u64;
    for interval in operations.iter().filter(|interval| interval.begin.f == Function::Del) {
        match interval.kind() {
            Type::Ok => {
                verdict.checked += 1;
                succeeded += 1;
            }
            Type::Fail => {
                verdict.checked += 1;
                let host = node_of(interval).unwrap_or_default();
                let is_absent = absences.get(host).is_some_and(|absences| {
                    absences.iter().any(|(from, to)| {
                        interval.begin_ns() <= *to && *from <= interval.end_ns()
                    })
                });
                if !is_absent {
                    let error = interval.value().error.as_deref().unwrap_or("no error");
                    let message = format!("DEL failed on {host} with a running agent: {error}");
                    verdict.violated(message, interval.indexes());
                }
            }
            Type::Info | Type::Invoke => {}
        }
    }
    verdict.figure("successful DELs", succeeded);
}

/// Node of an operation: its host, or the end of its key.
fn node_of<'a>(interval: &Interval<'a>) -> Option<&'a str> {
    let value = &interval.begin.value;
    let of_key = || value.key.as_deref().and_then(|key| key.rsplit_once('@')).map(|(_, node)| node);
    value.host.as_deref().or_else(of_key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::{Script, event, grant};
    use crate::history::Value;

    const KEY: &str = "net/c-1/eth0@c1";

    fn value(grants: &[(u64, &str)]) -> Value {
        let grants = grants.iter().map(|(id, address)| grant(*id, address)).collect();
        Value { key: Some(KEY.to_owned()), grants, ..Value::default() }
    }

    fn add(script: &mut Script, grants: &[(u64, &str)]) {
        script.ok(1, Function::Add, value(&[]), value(grants));
    }

    fn del(script: &mut Script, kind: Type) {
        script.begin(2, Function::Del, value(&[]));
        script.end(2, Function::Del, kind, value(&[]));
    }

    #[test]
    fn a_repeated_add_keeps_its_addresses() {
        let mut script = Script::default();
        add(&mut script, &[(5, "10.0.0.5")]);
        add(&mut script, &[(5, "10.0.0.5")]);
        let verdict = CniIdempotence.check(&Record { history: script.history(), ..Record::default() });
        assert_eq!((verdict.violations, verdict.checked), (0, 1));
        add(&mut script, &[(9, "10.0.0.9")]);
        let verdict = CniIdempotence.check(&Record { history: script.history(), ..Record::default() });
        assert_eq!(verdict.violations, 1);
        assert_eq!(verdict.anomalies[0].operations, [2, 3, 4, 5]);
    }

    #[test]
    fn a_new_add_after_a_release_gets_a_new_allocation() {
        let mut script = Script::default();
        add(&mut script, &[(5, "10.0.0.5")]);
        del(&mut script, Type::Ok);
        add(&mut script, &[(9, "10.0.0.9")]);
        let released_at = |revision| Record {
            history: script.history(),
            journal: vec![event(revision, 0, "address.released", Some(5))],
            ..Record::default()
        };
        assert!(CniIdempotence.check(&released_at(7)).holds());
        // Released only after the second ADD had its address: two live at once.
        assert_eq!(CniIdempotence.check(&released_at(12)).violations, 1);
    }

    #[test]
    fn a_del_fails_only_without_an_agent() {
        let agents = || Kind::Agents { hosts: vec!["c1".to_owned()] };
        let mut script = Script::default();
        script.at(1000).inject("agents", 1000, agents(), None, &["signal 9"]);
        del(&mut script, Type::Fail);
        script.at(2000).heal("agents", 1000, agents(), &[]);
        assert!(CniIdempotence.check(&Record { history: script.history(), ..Record::default() }).holds());
        del(script.at(60_000), Type::Fail);
        let verdict = CniIdempotence.check(&Record { history: script.history(), ..Record::default() });
        assert_eq!(verdict.violations, 1);
    }
}
