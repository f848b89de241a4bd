//! I4: a grant whose release was acknowledged never appears again.
//!
//! Ids are never reused. So after the answer to a release, no read, list, renewal, grant or final state names
//! its id. Stale reads may name it, as long as they state a revision before the release. A repeated request
//! with the same key gets the same answer as before.

use super::pairs::{Pairs, figure, may_grant};
use super::releases::releases;
use super::{Checker, Record, Verdict};
use crate::history::{Function, Type};

/// Checker of I4.
pub(super) struct NoResurrection;

impl Checker for NoResurrection {
    fn id(&self) -> &'static str {
        "I4"
    }

    fn name(&self) -> &'static str {
        "no resurrection"
    }

    fn promises(&self) -> &'static [u8] {
        &[2, 7]
    }

    fn about(&self) -> &'static str {
        "No answer and no state names a grant after its acknowledged release."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let releases = releases(&pairs);
        let mut verdict = Verdict::default();
        for call in pairs.calls.iter().filter(|call| call.kind() == Type::Ok) {
            let (f, value) = (call.begin.f, call.value());
            let is_read = matches!(f, Function::Read | Function::List);
            let is_answer = is_read || f == Function::Renew || (may_grant(f) && f != Function::Transaction);
            if !is_answer || (!is_read && pairs.is_repeated(call)) {
                continue;
            }
            for grant in &value.grants {
                let Some(released) = releases.get(&grant.id) else { continue };
                verdict.checked += 1;
                let is_after = if value.is_stale {
                    value.revision.zip(released.revision).is_some_and(|(seen, gone)| seen >= gone)
                } else {
                    call.begin_ns() > released.end_ns
                };
                if is_after {
                    let message = format!(
                        "grant {} of {} was released and appears again in an answer",
                        grant.id, grant.address
                    );
                    verdict.violated(message, [released.operation, call.begin.index]);
                }
            }
        }
        for last in &record.finals {
            let ids = last.allocations.iter().map(|row| row.id).chain(last.prefixes.iter().map(|row| row.id));
            for (id, released) in ids.filter_map(|id| Some((id, releases.get(&id)?))) {
                let message = format!("grant {id} was released and is in the final state of {}", last.member);
                verdict.violated(message, [released.operation]);
            }
        }
        verdict.checked += releases.len() as u64;
        figure(&mut verdict, "released grants", releases.len());
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::testing::{Run, grant};

    const A: &str = "host/default/default/a";

    fn held() -> [crate::history::Grant; 1] {
        [grant(1, "10.0.0.1")]
    }

    /// A release that was acknowledged with revision 7.
    fn run() -> (Run, u64) {
        let mut run = Run::default();
        run.call(1, Function::Allocate).endpoint(A).key("k").ok(&held());
        let release = run.call(1, Function::Release).endpoint(A).grants(&held()).revision(7).ok(&held());
        (run, release)
    }

    #[test]
    fn legal_answers_are_accepted() {
        let (mut run, _) = run();
        // The key is remembered, and the stale read is of an earlier state.
        run.call(2, Function::Allocate).endpoint(A).key("k").ok(&held());
        run.call(2, Function::Read).target("10.0.0.1").stale().revision(6).ok(&held());
        let mut early = Run::default();
        let read = early.call(2, Function::Read).target("10.0.0.1").begin();
        early.call(1, Function::Release).endpoint(A).grants(&held()).ok(&held());
        early.end(read, Type::Ok, Some(&held()));
        for run in [run, early] {
            let verdict = run.verdict(&NoResurrection);
            assert!(verdict.holds() && verdict.checked > 0, "{verdict:?}");
        }
    }

    #[test]
    fn each_kind_of_answer_is_checked() {
        let (mut run, release) = run();
        let mut expected = vec![
            run.call(2, Function::Read).target("10.0.0.1").ok(&held()),
            run.call(2, Function::List).pools(&["web"]).ok(&held()),
            run.call(2, Function::Renew).endpoint(A).grants(&held()).ok(&held()),
            run.call(2, Function::Allocate).endpoint(A).ok(&held()),
            run.call(2, Function::Read).target("10.0.0.1").stale().revision(7).ok(&held()),
        ];
        run.last_state(9, &[(1, "10.0.0.1", A)]);
        let verdict = run.verdict(&NoResurrection);
        assert_eq!(verdict.violations, 6, "{verdict:?}");
        expected.reverse();
        for anomaly in &verdict.anomalies {
            let mut operations = vec![release];
            operations.extend(expected.pop());
            assert_eq!(anomaly.operations, operations);
        }
    }
}
