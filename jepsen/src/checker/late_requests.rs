//! Late requests, a part of I9: requests that were sent after the answer to another operation, by a process
//! that started before that operation.
//!
//! Workloads mark late requests by `detail.late`. An ADD that a DEL of its attachment has overtaken never
//! succeeds. A DEL that an ADD has overtaken releases nothing, so that the next CHECK of the attachment finds
//! its addresses.

use super::intervals::Interval;
use super::pairs::{Pairs, figure, may_grant};
use super::{Anomaly, Verdict};
use crate::history::{Function, Type};
use crate::nemesis::Kind;

/// Error of a CHECK whose addresses are not those of the attachment.
const CHECK_FAILED: &str = "check-failed";

/// Verifies all late requests of a run.
pub(super) fn check(pairs: &Pairs<'_>, verdict: &mut Verdict) {
    let mut checked = 0_u64;
    for call in pairs.calls.iter().filter(|call| is_late(call)) {
        let Some(key) = call.begin.value.key.as_deref() else { continue };
        let calls = pairs.by_key.get(key).into_iter().flatten().filter_map(|at| pairs.calls.get(*at));
        checked += 1;
        if may_grant(call.begin.f) {
            // A restore may have undone the DEL that overtook the ADD.
            let first = calls.clone().map(Interval::begin_ns).min().unwrap_or_default();
            if call.kind() == Type::Ok && !is_disturbed(pairs, first, call.end_ns()) {
                let operations = calls.flat_map(Interval::indexes).collect();
                add(
                    verdict,
                    format!("{key}: an ADD that started before a DEL was granted after it"),
                    operations,
                );
            }
            continue;
        }
        let next =
            calls.filter(|other| other.begin_ns() >= call.end_ns()).min_by_key(|other| other.begin_ns());
        let failed = next.filter(|next| {
            next.begin.f == Function::Check && next.value().error.as_deref() == Some(CHECK_FAILED)
        });
        if let Some(check) = failed.filter(|check| !is_disturbed(pairs, call.begin_ns(), check.end_ns())) {
            let operations = call.indexes().chain(check.indexes()).collect();
            add(verdict, format!("{key}: a DEL that started before the ADD released it"), operations);
        }
    }
    verdict.checked += checked;
    figure(verdict, "late requests", checked);
}

fn is_late(call: &Interval<'_>) -> bool {
    call.value().detail.get("late").is_some_and(|late| *late == true)
}

/// Returns true if a restore or the loss of a host may have changed an attachment in this interval.
fn is_disturbed(pairs: &Pairs<'_>, begin_ns: u64, end_ns: u64) -> bool {
    pairs.faults.iter().any(|fault| {
        matches!(fault.fault.kind, Kind::Restore | Kind::Nodes { .. })
            && fault.begin_ns() <= end_ns
            && fault.end_ns() >= begin_ns
    })
}

fn add(verdict: &mut Verdict, message: String, operations: Vec<u64>) {
    verdict.add(Anomaly { message, operations, events: Vec::new() });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checker::testing::{Run, grant};

    const POD: &str = "pod/default/default/a";
    const KEY: &str = "net/c/eth0@c1";

    fn violations(run: &Run) -> u64 {
        let mut verdict = Verdict::default();
        check(&Pairs::of(&run.record()), &mut verdict);
        assert_eq!(verdict.checked, 1);
        verdict.violations
    }

    #[test]
    fn a_late_add_must_not_succeed() {
        for (granted, expected) in [(true, 1), (false, 0)] {
            let mut run = Run::default();
            run.call(2, Function::Del).endpoint(POD).key(KEY).ok(&[]);
            let add = run.call(1, Function::Add).endpoint(POD).key(KEY).detail(json!({"late": true}));
            if granted {
                add.ok(&[grant(0, "10.0.0.1")])
            } else {
                add.info()
            };
            assert_eq!(violations(&run), expected);
        }
    }

    #[test]
    fn a_late_del_must_release_nothing() {
        for (found, expected) in [(false, 1), (true, 0)] {
            let mut run = Run::default();
            run.call(1, Function::Add).endpoint(POD).key(KEY).ok(&[grant(0, "10.0.0.1")]);
            run.call(2, Function::Del).endpoint(POD).key(KEY).detail(json!({"late": true})).ok(&[]);
            let check = run.call(1, Function::Check).endpoint(POD).key(KEY);
            if found {
                check.ok(&[])
            } else {
                check.error(CHECK_FAILED).fail()
            };
            assert_eq!(violations(&run), expected);
        }
    }
}
