//! I15: a repeated ADD of a live attachment keeps its addresses, and a DEL never fails with a running agent.
//!
//! Results of CNI have no allocation ids. So an ADD whose addresses differ from those of an earlier ADD of
//! the attachment is compared with the journal: the earlier addresses must have been released before the
//! later ones were allocated to the same endpoint. Other checkers judge the release itself.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::event::Event;

use super::intervals::{FaultInterval, Interval, faults, operations};
use super::{Checker, Record, Verdict};
use crate::history::{Function, Type, Value, endpoint_name};
use crate::nemesis::Kind;

/// Checker of I15.
#[derive(Debug)]
pub(super) struct CniIdempotence;

/// Time that an agent takes to start after its fault is healed.
const START_NS: u64 = 10_000_000_000;
/// Errors of runs of the plugin that ended by a signal, or with their host.
const ENDED_FROM_OUTSIDE: [&str; 2] = ["killed", "host-lost"];

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
        let faults = faults(&record.history);
        check_adds(&Lifetimes::of(&record.journal), &operations, &faults, &mut verdict);
        check_dels(&operations, &faults, &mut verdict);
        verdict
    }
}

/// Revisions of an allocation and, if it ended, of its release.
type Lifetime = (u64, Option<u64>);

/// Lifetimes of allocations by endpoint and address.
#[derive(Default)]
struct Lifetimes(BTreeMap<(String, String), Vec<Lifetime>>);

impl Lifetimes {
    fn of(journal: &[Event]) -> Self {
        let mut lifetimes = Self::default();
        for event in journal {
            let Some(endpoint) = &event.endpoint else { continue };
            let of_address = || (endpoint_name(endpoint), event.object.clone());
            match event.event_type.as_str() {
                "address.allocated" => {
                    lifetimes.0.entry(of_address()).or_default().push((event.revision, None));
                }
                "address.released" => {
                    let all = lifetimes.0.entry(of_address()).or_default();
                    if let Some(last) = all.last_mut() {
                        last.1 = Some(event.revision);
                    }
                }
                _ => {}
            }
        }
        lifetimes
    }

    /// Returns true if the address may have been released before one of `others` was allocated. Without
    /// `others`, any release counts.
    fn may_precede(&self, endpoint: &str, address: &str, others: &[&str]) -> bool {
        let all = |address: &str| {
            let key = (endpoint.to_owned(), address.to_owned());
            self.0.get(&key).into_iter().flatten()
        };
        let Some(first_released) = all(address).filter_map(|(_, released)| *released).min() else {
            return false;
        };
        others.is_empty()
            || others.iter().flat_map(|other| all(other)).any(|(made, _)| *made >= first_released)
    }
}

/// Successful ADD.
struct Added<'a> {
    addresses: BTreeSet<&'a str>,
    interval: Interval<'a>,
}

fn check_adds(
    lifetimes: &Lifetimes,
    operations: &[Interval<'_>],
    faults: &[FaultInterval<'_>],
    verdict: &mut Verdict,
) {
    // A restore undoes ADDs without an event.
    let restores: Vec<(u64, u64)> = faults
        .iter()
        .filter(|fault| fault.fault.kind == Kind::Restore)
        .map(|fault| (fault.begin_ns(), fault.end_ns()))
        .collect();
    let is_undone = |first: &Interval<'_>, second: &Interval<'_>| {
        restores.iter().any(|(from, to)| first.begin_ns() <= *to && *from <= second.end_ns())
    };
    let mut adds: BTreeMap<&str, Vec<Added<'_>>> = BTreeMap::new();
    for interval in operations {
        let Some(key) = interval.begin.value.key.as_deref() else { continue };
        if interval.begin.f == Function::Add && interval.kind() == Type::Ok {
            let addresses = interval.value().grants.iter().map(|grant| grant.address.as_str()).collect();
            adds.entry(key).or_default().push(Added { addresses, interval: *interval });
        }
    }
    let mut repeated = 0_u64;
    for (key, adds) in &adds {
        for (first, second) in adds.iter().zip(adds.iter().skip(1)) {
            verdict.checked += 1;
            if first.addresses == second.addresses {
                repeated += 1;
                continue;
            }
            if is_undone(&first.interval, &second.interval) {
                continue;
            }
            let is_before = first.interval.end_ns() < second.interval.begin_ns();
            // Two overlapping ADDs may have been answered in either order.
            let found = difference(first, second, lifetimes)
                .filter(|_| is_before || difference(second, first, lifetimes).is_some());
            if let Some(problem) = found {
                let both = first.interval.indexes().chain(second.interval.indexes());
                verdict.violated(format!("attachment {key}: {problem}"), both);
            }
        }
    }
    verdict.figure("repeated ADDs with the same addresses", repeated);
}

/// Problem of two successful ADDs of one attachment, if there is one.
fn difference(first: &Added<'_>, second: &Added<'_>, lifetimes: &Lifetimes) -> Option<String> {
    let endpoint = first.interval.begin.value.endpoint.as_deref().unwrap_or_default();
    let made: Vec<&str> = second.addresses.difference(&first.addresses).copied().collect();
    let mut missing = first.addresses.difference(&second.addresses);
    let kept = missing.find(|address| !lifetimes.may_precede(endpoint, address, &made));
    kept.map(|address| {
        let later = second.addresses.iter().copied().collect::<Vec<_>>().join(", ");
        format!("an ADD got {address}, and a later one {later}; {address} was not released between them")
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
    for interval in operations.iter().filter(|interval| is_del(interval)) {
        let error = interval.value().error.as_deref();
        match interval.kind() {
            Type::Ok => succeeded += 1,
            // A run without an end, or one that was killed, states nothing.
            _ if error.is_none_or(|error| ENDED_FROM_OUTSIDE.contains(&error)) => continue,
            _ => {
                let host = node_of(&interval.begin.value).unwrap_or_default();
                let absent = absences.get(host).into_iter().flatten();
                let mut absent =
                    absent.filter(|(from, to)| interval.begin_ns() <= *to && *from <= interval.end_ns());
                if absent.next().is_none() {
                    let error = error.unwrap_or_default();
                    let message = format!("DEL failed on {host} with a running agent: {error}");
                    verdict.violated(message, interval.indexes());
                }
            }
        }
        verdict.checked += 1;
    }
    verdict.figure("successful DELs", succeeded);
}

/// Returns true for a DEL, but not for a GC, which is recorded as a DEL and may fail.
fn is_del(interval: &Interval<'_>) -> bool {
    interval.begin.f == Function::Del && interval.begin.value.detail.get("gc").is_none()
}

/// Node of an operation: its host, or the end of its key.
fn node_of(value: &Value) -> Option<&str> {
    let of_key = || value.key.as_deref().and_then(|key| key.rsplit_once('@')).map(|(_, node)| node);
    value.host.as_deref().or_else(of_key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::{Script, address_event};
    use crate::checker::testing::grant;

    const KEY: &str = "net/c-1/eth0@c1";
    const POD: &str = "pod/default/default/web";

    fn value(addresses: &[&str]) -> Value {
        let grants = addresses.iter().map(|address| grant(0, address)).collect();
        Value { key: Some(KEY.to_owned()), endpoint: Some(POD.to_owned()), grants, ..Value::default() }
    }

    fn add(script: &mut Script, addresses: &[&str]) {
        script.ok(1, Function::Add, value(&[]), value(addresses));
    }

    fn del(script: &mut Script, kind: Type, error: Option<&str>) {
        script.begin(2, Function::Del, value(&[]));
        script.end(2, Function::Del, kind, Value { error: error.map(str::to_owned), ..value(&[]) });
    }

    fn check(script: &Script, journal: Vec<Event>) -> Verdict {
        CniIdempotence.check(&Record { history: script.history(), journal, ..Record::default() })
    }

    #[test]
    fn a_repeated_add_keeps_its_addresses() {
        let mut script = Script::default();
        add(&mut script, &["10.0.0.5"]);
        add(&mut script, &["10.0.0.5"]);
        let verdict = check(&script, Vec::new());
        assert_eq!((verdict.violations, verdict.checked), (0, 1));
        add(&mut script, &["10.0.0.9"]);
        let verdict = check(&script, Vec::new());
        assert_eq!(verdict.violations, 1);
        assert_eq!(verdict.anomalies[0].operations, [2, 3, 4, 5]);
    }

    #[test]
    fn a_new_add_after_a_release_gets_another_address() {
        let mut script = Script::default();
        add(&mut script, &["10.0.0.5"]);
        add(&mut script, &["10.0.0.9"]);
        let released_at = |revision| {
            let mut journal = vec![
                address_event(5, "address.allocated", "10.0.0.5", "web"),
                address_event(revision, "address.released", "10.0.0.5", "web"),
                address_event(9, "address.allocated", "10.0.0.9", "web"),
            ];
            journal.sort_by_key(|event| event.revision);
            check(&script, journal)
        };
        assert!(released_at(7).holds());
        // The first address is released after the second ADD had its address, so both were live at once.
        assert_eq!(released_at(12).violations, 1);
    }

    #[test]
    fn a_del_fails_only_without_an_agent() {
        let agents = || Kind::Agents { hosts: vec!["c1".to_owned()] };
        let mut script = Script::default();
        script.at(1000).inject("agents", 1000, agents(), None, &["signal 9"]);
        del(&mut script, Type::Info, Some("agent-unreachable"));
        script.at(2000).heal("agents", 1000, agents(), &[]);
        del(script.at(60_000), Type::Info, Some("killed"));
        del(&mut script, Type::Ok, None);
        assert!(check(&script, Vec::new()).holds());
        del(&mut script, Type::Info, Some("no-leader"));
        assert_eq!(check(&script, Vec::new()).violations, 1);
    }
}
