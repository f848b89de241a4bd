//! I10: linearizable reads see all acknowledged writes; stale reads state their revision.
//!
//! A revision that was answered to any client existed when the answer arrived. So a linearizable read that
//! begins later has at least that revision. The revision rises with the epoch, so that the same holds across
//! a restore.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Checker, Record, Verdict};
use crate::history::{Function, Operation, Type};

/// Checker of I10.
#[derive(Debug)]
pub(super) struct ReadOrder;

/// Member of `value.detail` of a read that may be as old as this revision.
const LEAST: &str = "at_least_revision";

/// Highest revision in an answer, with the index of the answered operation.
type Known = (u64, u64);

impl Checker for ReadOrder {
    fn id(&self) -> &'static str {
        "I10"
    }

    fn name(&self) -> &'static str {
        "read order"
    }

    fn promises(&self) -> &'static [u8] {
        &[7, 10]
    }

    fn about(&self) -> &'static str {
        "A linearizable read has at least the highest revision that was answered before it began."
    }

    fn check(&self, record: &Record) -> Verdict {
        let mut verdict = Verdict::default();
        let mut known: Known = (0, 0);
        let mut begun = BTreeMap::new();
        let mut own: BTreeMap<_, Known> = BTreeMap::new();
        let newest = record.finals.iter().map(|one| one.revision).max();
        let (mut stale, mut behind_max) = (0_u64, 0_u64);
        for operation in &record.history {
            if operation.is_invoke() {
                begun.insert(operation.process, (operation.index, known));
                continue;
            }
            let Some((begin, floor)) = begun.remove(&operation.process) else { continue };
            if operation.kind != Type::Ok {
                continue;
            }
            let is_read = matches!(operation.f, Function::Read | Function::List);
            let Some(revision) = operation.value.revision else {
                if is_read && operation.value.is_stale {
                    verdict.violated("a stale read states no revision", [begin, operation.index]);
                }
                continue;
            };
            check_pages(operation, begin, &mut verdict);
            if is_read && operation.value.is_stale {
                stale += 1;
                verdict.checked += 1;
                behind_max = behind_max.max(floor.0.saturating_sub(revision));
                if newest.is_some_and(|newest| revision > newest) {
                    let newest = newest.unwrap_or_default();
                    let message =
                        format!("a stale read has revision {revision}, and the last one is {newest}");
                    verdict.violated(message, [begin, operation.index]);
                }
            } else if is_linearizable(operation) {
                verdict.checked += 1;
                let last = own.entry(operation.process).or_default();
                if revision < last.0 {
                    let message = format!(
                        "process {} read revision {revision} after revision {}",
                        operation.process, last.0
                    );
                    verdict.violated(message, [last.1, begin, operation.index]);
                } else if revision < floor.0 {
                    let message = format!(
                        "a linearizable read has revision {revision}; revision {} was answered before it \
                         began",
                        floor.0
                    );
                    verdict.violated(message, [floor.1, begin, operation.index]);
                }
                *last = (*last).max((revision, operation.index));
            }
            if revision > known.0 {
                known = (revision, operation.index);
            }
        }
        verdict.figure("stale reads", stale);
        verdict.figure("stale reads behind at most, revisions", behind_max);
        verdict
    }
}

/// Checks that the pages of a list are of one state, and that a read is as new as requested.
fn check_pages(operation: &Operation, begin: u64, verdict: &mut Verdict) {
    let detail = &operation.value.detail;
    let revisions: Vec<u64> = detail
        .get("revisions")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_u64)
        .collect();
    let at = [begin, operation.index];
    if revisions.windows(2).any(|pair| matches!(pair, [one, next] if one != next)) {
        verdict.violated(format!("the pages of one list have revisions {revisions:?}"), at);
    }
    let least = detail.get(LEAST).and_then(Json::as_u64);
    if let (Some(least), Some(revision)) = (least, operation.value.revision)
        && revision < least
    {
        verdict.violated(format!("a read asked for revision {least} at least, and got {revision}"), at);
    }
}

/// Returns true for reads of the present state. Answers to repeated writes may name an earlier revision.
fn is_linearizable(operation: &Operation) -> bool {
    match operation.f {
        Function::Read | Function::List => {
            !operation.value.is_stale && operation.value.detail.get(LEAST).is_none()
        }
        Function::Events => {
            !operation.value.is_stale
                && operation.value.detail.get("stream").and_then(Json::as_bool) == Some(false)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::Script;
    use crate::history::Value;

    fn at(revision: u64) -> Value {
        Value { revision: Some(revision), ..Value::default() }
    }

    fn stale(revision: Option<u64>) -> Value {
        Value { revision, is_stale: true, ..Value::default() }
    }

    fn check(script: &Script) -> Verdict {
        ReadOrder.check(&Record { history: script.history(), ..Record::default() })
    }

    #[test]
    fn reads_that_overlap_a_write_may_miss_it() {
        let mut script = Script::default();
        script.begin(1, Function::Read, Value::default());
        script.ok(2, Function::Allocate, Value::default(), at(9));
        script.end(1, Function::Read, Type::Ok, at(8));
        let verdict = check(&script);
        assert_eq!((verdict.violations, verdict.checked), (0, 1));
    }

    #[test]
    fn a_read_that_misses_an_acknowledged_write_is_a_violation() {
        let mut script = Script::default();
        script.ok(2, Function::Allocate, Value::default(), at(9));
        script.ok(1, Function::Read, Value::default(), at(8));
        let verdict = check(&script);
        assert_eq!(verdict.violations, 1);
        assert_eq!(verdict.anomalies[0].operations, [1, 2, 3]);
    }

    #[test]
    fn a_process_whose_reads_go_back_is_a_violation() {
        let mut script = Script::default();
        script.ok(1, Function::Read, Value::default(), at(9));
        script.ok(1, Function::List, Value::default(), at(8));
        assert_eq!(check(&script).violations, 1);
    }

    #[test]
    fn stale_reads_may_lag_and_must_state_their_revision() {
        let mut script = Script::default();
        script.ok(2, Function::Allocate, Value::default(), at(9));
        script.ok(1, Function::Read, stale(None), stale(Some(3)));
        assert!(check(&script).holds());
        script.ok(1, Function::Read, stale(None), stale(None));
        assert_eq!(check(&script).violations, 1);
    }

    #[test]
    fn pages_of_a_list_are_of_one_state_and_as_new_as_asked() {
        let list = |detail: Json, revision| Value { detail, revision: Some(revision), ..Value::default() };
        let violations = |detail: Json, revision| {
            let mut script = Script::default();
            script.ok(2, Function::Allocate, Value::default(), at(9));
            script.ok(1, Function::List, Value::default(), list(detail, revision));
            check(&script).violations
        };
        assert_eq!(violations(serde_json::json!({ "revisions": [9, 9] }), 9), 0);
        assert_eq!(violations(serde_json::json!({ "revisions": [9, 10] }), 10), 1);
        assert_eq!(violations(serde_json::json!({ "at_least_revision": 5 }), 6), 0);
        assert_eq!(violations(serde_json::json!({ "at_least_revision": 5 }), 4), 1);
    }

    #[test]
    fn a_repeated_write_may_be_answered_with_its_first_revision() {
        let mut script = Script::default();
        script.ok(1, Function::Allocate, Value::default(), at(9));
        script.ok(1, Function::Allocate, Value::default(), at(3));
        assert!(check(&script).holds());
    }
}
