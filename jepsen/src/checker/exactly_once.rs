//! I5: a repeated request has the same answer and one effect.
//!
//! All successful calls with one `Idempotency-Key` and the same arguments name the same grants. Calls with
//! other arguments under a used key are refused. The journal has at most one effect for all calls of a key,
//! lost calls included. Servers remember a bounded number of keys, so that calls far from each other are
//! exempt.

use std::collections::{BTreeMap, BTreeSet};

use super::intervals::Interval;
use super::pairs::{Pairs, ended, figure, granted, idempotency_key, may_grant};
use super::{Anomaly, Checker, Record, Verdict};
use crate::history::{Type, Value};

/// Number of calls between two calls with one key that never displace the key. Servers keep 10,000 keys and
/// 16 MiB of answers for each principal.
const REMEMBERED_CALLS: usize = 2_000;

/// Checker of I5.
pub(super) struct ExactlyOnce;

impl Checker for ExactlyOnce {
    fn id(&self) -> &'static str {
        "I5"
    }

    fn name(&self) -> &'static str {
        "exactly once"
    }

    fn promises(&self) -> &'static [u8] {
        &[3]
    }

    fn about(&self) -> &'static str {
        "Requests with one key have one answer and one effect, and the key is refused for another request."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let mut verdict = Verdict::default();
        let effects = effects(&pairs);
        let (mut repeated, mut forgotten) = (0_u64, 0_u64);
        for (key, indexes) in &pairs.by_key {
            // The key of an attachment, `config/container/interface@node`, is no `Idempotency-Key`: its
            // release has the same one.
            if key.contains('@') {
                continue;
            }
            let calls: Vec<&Interval<'_>> = indexes.iter().filter_map(|at| pairs.call(*at)).collect();
            let all_keyed = calls.iter().all(|call| idempotency_key(call).is_some());
            let (Some(first), Some(last)) = (indexes.first(), indexes.last()) else { continue };
            if !all_keyed {
                continue;
            }
            if last - first > REMEMBERED_CALLS {
                forgotten += 1;
                continue;
            }
            verdict.checked += 1;
            if calls.len() > 1 {
                repeated += 1;
                check_answers(&pairs, &calls, &mut verdict);
            }
            check_effects(&pairs, &calls, &effects, &mut verdict);
        }
        figure(&mut verdict, "keys with repetitions", repeated);
        figure(&mut verdict, "keys with repetitions too far apart", forgotten);
        verdict
    }
}

/// Arguments of a call without the member that received it.
fn arguments(call: &Interval<'_>) -> Value {
    Value { member: None, host: None, ..call.begin.value.clone() }
}

fn check_answers(pairs: &Pairs<'_>, calls: &[&Interval<'_>], verdict: &mut Verdict) {
    let is_lost = |call: &Interval<'_>| {
        let ids = call.value().grants.iter().map(|grant| grant.id).chain(call.value().revision);
        ids.into_iter().any(|revision| pairs.journal.is_lost(revision))
    };
    let succeeded = calls.iter().filter(|call| call.kind() == Type::Ok && !is_lost(call));
    let mut first: Option<(&Interval<'_>, Value, BTreeSet<u64>)> = None;
    for call in succeeded {
        let ids: BTreeSet<u64> = granted(call).chain(ended(call)).map(|grant| grant.id).collect();
        let Some((before, arguments_before, ids_before)) = &first else {
            first = Some((call, arguments(call), ids));
            continue;
        };
        let key = call.begin.value.key.as_deref().unwrap_or_default();
        let message = if before.begin.f != call.begin.f || *arguments_before != arguments(call) {
            format!("the key {key} was accepted for two different requests")
        } else if *ids_before != ids {
            format!("the key {key} has two answers: grants {ids_before:?} and {ids:?}")
        } else {
            continue;
        };
        verdict.violated(message, [before.begin.index, call.begin.index]);
    }
}

/// Revisions at which each endpoint was allocated addresses.
fn effects(pairs: &Pairs<'_>) -> BTreeMap<String, BTreeMap<u64, String>> {
    let mut effects: BTreeMap<String, BTreeMap<u64, String>> = BTreeMap::new();
    for lifetime in pairs.journal.lifetimes.values() {
        let reason = lifetime.begun.reason.as_deref();
        // An allocation with the reason `conflict` was moved by a task, not made by a call.
        if reason != Some("conflict") {
            let revisions = effects.entry(lifetime.holder.clone()).or_default();
            revisions.insert(lifetime.begun.revision, lifetime.begun.id());
        }
    }
    effects
}

/// Checks that an endpoint has at most one effect if only calls with one key allocate to it.
fn check_effects(
    pairs: &Pairs<'_>,
    calls: &[&Interval<'_>],
    effects: &BTreeMap<String, BTreeMap<u64, String>>,
    verdict: &mut Verdict,
) {
    let Some(first) = calls.first().filter(|call| may_grant(call.begin.f)) else { return };
    let key = &first.begin.value.key;
    let value = &first.begin.value;
    let steps = value.detail.get("allocates").and_then(serde_json::Value::as_array);
    let endpoints = steps.into_iter().flatten().filter_map(serde_json::Value::as_str);
    for endpoint in endpoints.chain(value.endpoint.as_deref()) {
        let Some(revisions) = effects.get(endpoint).filter(|revisions| revisions.len() > 1) else { continue };
        let mut others = pairs.calls_of(endpoint).map(|(_, call)| call);
        let is_only = others.all(|call| call.begin.value.key == *key || !may_grant(call.begin.f));
        if is_only {
            let message = format!(
                "requests with the key {} took effect {} times for {endpoint}",
                key.as_deref().unwrap_or_default(),
                revisions.len()
            );
            let operations = calls.iter().map(|call| call.begin.index).collect();
            verdict.add(Anomaly { message, operations, events: revisions.values().cloned().collect() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::testing::{Run, grant};
    use crate::history::Function;

    const A: &str = "host/default/default/a";

    fn call(run: &mut Run, process: u64) -> crate::checker::testing::Call<'_> {
        run.call(process, Function::Allocate).endpoint(A).key("k")
    }

    #[test]
    fn repetitions_have_one_answer_and_may_be_lost() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A);
        call(&mut run, 1).info();
        call(&mut run, 2).ok(&[grant(1, "10.0.0.1")]);
        call(&mut run, 3).ok(&[grant(1, "10.0.0.1")]);
        run.call(4, Function::Allocate).endpoint("host/default/default/b").key("k").fail();
        let verdict = run.verdict(&ExactlyOnce);
        assert!(verdict.holds() && verdict.checked == 1, "{verdict:?}");
    }

    #[test]
    fn two_answers_and_two_effects_are_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).allocated(2, "10.0.0.2", A);
        let first = call(&mut run, 1).ok(&[grant(1, "10.0.0.1")]);
        let second = call(&mut run, 2).ok(&[grant(2, "10.0.0.2")]);
        let verdict = run.verdict(&ExactlyOnce);
        assert_eq!(verdict.violations, 2);
        assert_eq!(verdict.anomalies[0].operations, [first, second]);
        assert_eq!(verdict.anomalies[1].events, ["1.0", "2.0"]);
    }

    #[test]
    fn a_lost_request_that_took_effect_twice_is_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).released(2, 1, "10.0.0.1", A, "endpoint-released");
        run.allocated(3, "10.0.0.1", A);
        call(&mut run, 1).info();
        run.call(2, Function::Release).endpoint(A).ok(&[]);
        assert_eq!(run.verdict(&ExactlyOnce).violations, 1);
        // Another request for the same endpoint explains the second effect.
        run.call(2, Function::Allocate).endpoint(A).info();
        assert!(run.verdict(&ExactlyOnce).holds());
    }

    #[test]
    fn a_key_that_is_accepted_for_another_request_is_found() {
        let mut run = Run::default();
        call(&mut run, 1).ok(&[grant(1, "10.0.0.1")]);
        run.call(2, Function::Allocate)
            .endpoint("host/default/default/b")
            .key("k")
            .ok(&[grant(2, "10.0.0.2")]);
        let verdict = run.verdict(&ExactlyOnce);
        assert_eq!(verdict.violations, 1);
        assert!(verdict.anomalies[0].message.contains("two different requests"));
    }

    #[test]
    fn an_attachment_is_no_idempotency_key() {
        let mut run = Run::default();
        run.call(1, Function::Add).endpoint(A).key("net/c/eth0@c1").ok(&[grant(1, "10.0.0.1")]);
        run.call(1, Function::Del).endpoint(A).key("net/c/eth0@c1").ok(&[]);
        run.call(1, Function::Add).endpoint(A).key("net/c/eth0@c1").ok(&[grant(5, "10.0.0.2")]);
        assert!(run.verdict(&ExactlyOnce).holds());
    }
}
