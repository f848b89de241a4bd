//! I6: each operation has its whole effect or none.
//!
//! Each allocation in the journal has an operation that may have made it: a refused request has no effect,
//! and each allocation has a request. The grants of one answer come from one command. A transaction without
//! an answer has all its effects at one revision, or none. An interface that requested both families gets
//! both at once.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::address::Family;

use super::block::is_single;
use super::intervals::Interval;
use super::journal::Lifetime;
use super::pairs::{Pairs, figure, may_grant};
use super::{Anomaly, Checker, Record, Verdict};
use crate::history::{Function, Type};

/// Reasons of allocations that requests cause.
const REQUESTED: [&str; 5] = ["requested", "ADD", "waited", "claimed", "moved"];

/// Reason of the end of an allocation whose address a foreign station uses.
const CONFLICT: &str = "conflict";

/// Checker of I6.
pub(super) struct WholeEffects;

impl Checker for WholeEffects {
    fn id(&self) -> &'static str {
        "I6"
    }

    fn name(&self) -> &'static str {
        "whole effects"
    }

    fn promises(&self) -> &'static [u8] {
        &[3, 4, 11]
    }

    fn about(&self) -> &'static str {
        "Each operation takes effect as a whole or not at all, and each effect has an operation."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let mut verdict = Verdict::default();
        if !pairs.journal.is_complete {
            return verdict;
        }
        check_causes(&pairs, &mut verdict);
        check_answers(&pairs, &mut verdict);
        check_lost_transactions(&pairs, &mut verdict);
        check_families(&pairs, &mut verdict);
        verdict
    }
}

/// Checks that each allocation to an endpoint of the history has an operation that may have made it.
fn check_causes(pairs: &Pairs<'_>, verdict: &mut Verdict) {
    let (mut checked, mut resolved) = (0_u64, 0_u64);
    for lifetime in pairs.journal.lifetimes.values() {
        let reason = lifetime.begun.reason.as_deref();
        let is_requested = lifetime.is_prefix || reason.is_some_and(|reason| REQUESTED.contains(&reason));
        let calls = || pairs.calls_of(&lifetime.holder).filter(|(_, call)| may_grant(call.begin.f));
        if !is_requested || calls().next().is_none() {
            continue;
        }
        checked += 1;
        let latest_ns = pairs.timeline.latest_ns(lifetime.begun.revision);
        // An ADD replaces an address that a foreign station uses; its answer names the last address only.
        let is_replaced = lifetime.ended.and_then(|end| end.reason.as_deref()) == Some(CONFLICT);
        let mut causes = calls().filter(|(at, call)| {
            call.begin_ns() <= latest_ns && (is_replaced || is_cause(pairs, *at, call, lifetime.id))
        });
        match causes.next() {
            Some((_, call)) => resolved += u64::from(call.kind() == Type::Info),
            None => {
                let message = format!(
                    "grant {} of {} to {} has no operation that may have made it",
                    lifetime.id, lifetime.block, lifetime.holder
                );
                let operations = calls().take(6).map(|(_, call)| call.begin.index).collect();
                verdict.add(Anomaly { message, operations, events: vec![lifetime.begun.id()] });
            }
        }
    }
    verdict.checked += checked;
    figure(verdict, "effects with an operation", checked);
    figure(verdict, "effects of operations without an answer", resolved);
}

fn is_cause(pairs: &Pairs<'_>, at: usize, call: &Interval<'_>, id: u64) -> bool {
    match call.kind() {
        Type::Fail => false,
        Type::Ok => {
            let mut acks = pairs.acks_of(at).peekable();
            // A claim is served later, and an answer names the last of several prefixes only.
            let names_all = acks.peek().is_some() && call.begin.f != Function::Delegate;
            !names_all || acks.any(|ack| ack.id == id || ack.id == 0)
        }
        _ => true,
    }
}

/// Checks that the new grants of an answer have one revision.
fn check_answers(pairs: &Pairs<'_>, verdict: &mut Verdict) {
    for (at, call) in pairs.calls.iter().enumerate() {
        let is_one = matches!(call.begin.f, Function::Allocate | Function::Transaction | Function::Add);
        if !is_one || call.kind() != Type::Ok || pairs.is_repeated(call) {
            continue;
        }
        let mut revisions: BTreeMap<u64, &Lifetime<'_>> = BTreeMap::new();
        for ack in pairs.acks_of(at) {
            let Some(lifetime) = pairs.journal.lifetimes.get(&ack.id) else { continue };
            let is_replaced = lifetime.begun.reason.as_deref() == Some("conflict");
            if !is_replaced && is_only_maker(pairs, at, call, ack.holder) {
                revisions.insert(lifetime.begun.revision, lifetime);
            }
        }
        verdict.checked += 1;
        if revisions.len() > 1 {
            let message = format!("the grants of one answer have the revisions {:?}", revisions.keys());
            let events = revisions.values().map(|lifetime| lifetime.begun.id()).collect();
            verdict.add(Anomaly { message, operations: call.indexes().collect(), events });
        }
    }
}

/// Returns true if no other operation can have allocated to an endpoint before a call ended.
fn is_only_maker(pairs: &Pairs<'_>, at: usize, call: &Interval<'_>, endpoint: &str) -> bool {
    let mut others = pairs.calls_of(endpoint).filter(|(other, before)| {
        *other != at
            && may_grant(before.begin.f)
            && before.kind() != Type::Fail
            && before.begin_ns() < call.end_ns()
    });
    others.next().is_none()
}

/// Checks that a transaction without an answer has all effects at one revision, or none.
fn check_lost_transactions(pairs: &Pairs<'_>, verdict: &mut Verdict) {
    let mut begun: BTreeMap<&str, Vec<&Lifetime<'_>>> = BTreeMap::new();
    for lifetime in pairs.journal.lifetimes.values() {
        begun.entry(&lifetime.holder).or_default().push(lifetime);
    }
    let (mut applied, mut absent) = (0_u64, 0_u64);
    for (at, call) in pairs.calls.iter().enumerate() {
        if call.begin.f != Function::Transaction || call.kind() != Type::Info {
            continue;
        }
        let steps = call.begin.value.detail.get("allocates").and_then(serde_json::Value::as_array);
        let endpoints: BTreeSet<&str> =
            steps.into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
        let own = endpoints.into_iter().filter(|endpoint| is_own(pairs, at, call, endpoint));
        let (made, missing): (Vec<&str>, Vec<&str>) = own.partition(|endpoint| begun.contains_key(endpoint));
        let lifetimes = made.iter().filter_map(|endpoint| begun.get(endpoint)).flatten();
        let revisions: BTreeSet<u64> = lifetimes.map(|lifetime| lifetime.begun.revision).collect();
        verdict.checked += 1;
        let message = match revisions.first() {
            None => {
                absent += 1;
                continue;
            }
            Some(_) if revisions.len() > 1 => format!("a transaction took effect at revisions {revisions:?}"),
            Some(_) if !missing.is_empty() => {
                format!(
                    "a transaction took effect in part: {made:?} were allocated addresses, {missing:?} not"
                )
            }
            Some(revision) => {
                applied += 1;
                let remaining =
                    call.begin.value.grants.iter().find(|grant| remains(pairs, grant.id, *revision));
                let Some(grant) = remaining else { continue };
                format!("a transaction took effect in part: grant {} remains", grant.id)
            }
        };
        verdict.violated(message, call.indexes());
    }
    figure(verdict, "transactions without an answer that took effect", applied);
    figure(verdict, "transactions without an answer and effect", absent);
}

/// Returns true if only a call, or its repetitions, may have allocated to an endpoint.
fn is_own(pairs: &Pairs<'_>, at: usize, call: &Interval<'_>, endpoint: &str) -> bool {
    let key = call.begin.value.key.as_deref();
    pairs.calls_of(endpoint).filter(|(_, other)| may_grant(other.begin.f)).all(|(other, one)| {
        other == at || (key.is_some() && one.begin.value.key.as_deref() == key) || one.kind() == Type::Fail
    })
}

/// Returns true if a grant that a transaction ends at a revision existed and is still there afterwards.
fn remains(pairs: &Pairs<'_>, id: u64, revision: u64) -> bool {
    let known = pairs.journal.lifetimes.get(&id);
    known.is_some_and(|known| known.ended.is_none_or(|end| end.revision > revision))
}

/// Checks that interfaces of endpoints that always request both families get both at once.
fn check_families(pairs: &Pairs<'_>, verdict: &mut Verdict) {
    let mut counts: BTreeMap<(&str, u64, &str), [i64; 2]> = BTreeMap::new();
    for lifetime in pairs.journal.lifetimes.values().filter(|lifetime| is_single(&lifetime.block)) {
        if lifetime.is_prefix || !asks_for_both(pairs, &lifetime.holder) {
            continue;
        }
        let interface = lifetime.begun.interface.as_ref().map_or("", |interface| interface.as_str());
        let family = usize::from(lifetime.block.family() == Family::V6);
        let place = (lifetime.holder.as_str(), lifetime.begun.revision, interface);
        if let Some(count) = counts.entry(place).or_default().get_mut(family) {
            *count += 1;
        }
    }
    for ((endpoint, revision, interface), [four, six]) in counts {
        verdict.checked += 1;
        if four != six {
            let message = format!(
                "{interface} of {endpoint} got {four} IPv4 and {six} IPv6 addresses at revision {revision}"
            );
            let operations: Vec<u64> =
                pairs.calls_of(endpoint).take(6).map(|(_, call)| call.begin.index).collect();
            verdict.violated(message, operations);
        }
    }
}

fn asks_for_both(pairs: &Pairs<'_>, endpoint: &str) -> bool {
    let mut grants = pairs.calls_of(endpoint).filter(|(_, call)| may_grant(call.begin.f)).peekable();
    grants.peek().is_some()
        && grants.all(|(_, call)| {
            let families = call.begin.value.detail.get("families").and_then(serde_json::Value::as_array);
            families.is_some_and(|families| families.len() == Family::BOTH.len())
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checker::testing::{Run, grant, grant_of};

    const A: &str = "host/default/default/a";
    const B: &str = "host/default/default/b";

    fn found(run: &Run) -> Vec<String> {
        run.verdict(&WholeEffects).anomalies.into_iter().map(|anomaly| anomaly.message).collect()
    }

    #[test]
    fn lost_operations_and_served_claims_explain_effects() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).address(2, "address.allocated", 2, "10.0.0.2", B, "waited");
        run.call(1, Function::Allocate).endpoint(A).info();
        run.call(2, Function::Claim).endpoint(B).ok(&[]);
        assert_eq!(found(&run), Vec::<String>::new());
    }

    #[test]
    fn an_effect_of_a_refused_request_is_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A);
        run.call(1, Function::Allocate).endpoint(A).fail();
        assert!(found(&run)[0].contains("no operation"));
        let mut two = Run::default();
        two.allocated(1, "10.0.0.1", A).allocated(2, "10.0.0.2", A);
        two.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        assert!(found(&two)[0].contains("grant 2"));
    }

    #[test]
    fn grants_of_one_answer_have_one_revision() {
        let mut run = Run::default();
        run.allocated(3, "10.0.0.1", A);
        run.address(3, "address.allocated", 2, "fd00::1", A, "requested");
        run.allocated(5, "10.0.0.2", B);
        run.call(1, Function::Transaction).ok(&[grant_of(3, "10.0.0.1", A), grant_of(2, "fd00::1", A)]);
        assert_eq!(found(&run), Vec::<String>::new());
        run.call(1, Function::Transaction).ok(&[grant_of(3, "10.0.0.1", A), grant_of(5, "10.0.0.2", B)]);
        // The first answer named grant 3 already: only grant 5 is new.
        assert_eq!(found(&run), Vec::<String>::new());
        let mut parts = Run::default();
        parts.allocated(3, "10.0.0.1", A).allocated(5, "10.0.0.2", B);
        parts.call(1, Function::Transaction).ok(&[grant_of(3, "10.0.0.1", A), grant_of(5, "10.0.0.2", B)]);
        assert!(found(&parts)[0].contains("one answer"));
    }

    #[test]
    fn a_lost_transaction_is_complete_or_absent() {
        let transaction = |run: &mut Run| {
            let detail = json!({"allocates": [A, B]});
            run.call(1, Function::Transaction).detail(detail).grants(&[grant_of(1, "10.0.0.9", "x")]).info()
        };
        let mut absent = Run::default();
        absent.allocated(1, "10.0.0.9", "host/x");
        transaction(&mut absent);
        assert_eq!(found(&absent), Vec::<String>::new());
        let mut complete = Run::default();
        complete.allocated(1, "10.0.0.9", "host/x").allocated(3, "10.0.0.1", A);
        complete.address(3, "address.allocated", 2, "10.0.0.2", B, "requested");
        transaction(&mut complete);
        assert!(found(&complete)[0].contains("grant 1 remains"));
        complete.released(3, 1, "10.0.0.9", "host/x", "allocation-released");
        assert_eq!(found(&complete), Vec::<String>::new());
        let mut part = Run::default();
        part.allocated(3, "10.0.0.1", A);
        transaction(&mut part);
        assert!(found(&part)[0].contains("in part"));
        let mut divided = Run::default();
        divided.allocated(3, "10.0.0.1", A).allocated(4, "10.0.0.2", B);
        transaction(&mut divided);
        assert!(found(&divided)[0].contains("revisions"));
    }

    #[test]
    fn half_a_pair_is_found() {
        let mut run = Run::default();
        run.allocated(3, "10.0.0.1", A);
        run.call(1, Function::Allocate).endpoint(A).detail(json!({"families": [4, 6]})).info();
        assert!(found(&run)[0].contains("1 IPv4 and 0 IPv6"));
        run.address(3, "address.allocated", 2, "fd00::1", A, "requested");
        assert_eq!(found(&run), Vec::<String>::new());
    }
}
