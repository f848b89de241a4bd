//! I3: acknowledged changes are not lost.
//!
//! Each acknowledged grant is in the journal with its address and holder, and in the final state of every
//! member unless the journal ends it. Each acknowledged release is effective: the grant has an end in the
//! journal and is in no final state. Changes that a restore has undone are exempt.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::address::AddressRange;

use super::block::block;
use super::pairs::{Ack, Pairs, figure, may_release};
use super::releases::releases;
use super::{Anomaly, Checker, Record, Verdict};
use crate::history::{Function, Type, endpoint_name};

/// Checker of I3.
pub(super) struct DurableAnswers;

impl Checker for DurableAnswers {
    fn id(&self) -> &'static str {
        "I3"
    }

    fn name(&self) -> &'static str {
        "durable answers"
    }

    fn promises(&self) -> &'static [u8] {
        &[2]
    }

    fn about(&self) -> &'static str {
        "Each acknowledged grant is on every member until something ends it, and each release is effective."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let mut verdict = Verdict::default();
        let finals: Vec<LastState<'_>> = record.finals.iter().map(LastState::of).collect();
        let mut seen = BTreeSet::new();
        let mut lost = 0_u64;
        for ack in &pairs.acks {
            if ack.id == 0 {
                check_unidentified(&pairs, ack, &mut verdict);
                continue;
            }
            if pairs.journal.is_lost(ack.id) {
                lost += 1;
                continue;
            }
            if seen.insert((ack.id, ack.block)) {
                verdict.checked += 1;
                check_grant(&pairs, ack, &finals, &mut verdict);
            }
        }
        check_releases(&pairs, &finals, &mut verdict);
        figure(&mut verdict, "acknowledged grants", seen.len());
        figure(&mut verdict, "grants undone by a restore", lost);
        verdict
    }
}

/// Final state by id.
struct LastState<'a> {
    member: &'a str,
    revision: u64,
    held: BTreeMap<u64, (&'a str, AddressRange, String)>,
}

impl<'a> LastState<'a> {
    fn of(last: &'a super::Final) -> Self {
        let mut held = BTreeMap::new();
        for row in &last.allocations {
            let address = AddressRange::single(row.address.addr());
            held.insert(row.id, (row.network.as_str(), address, endpoint_name(&row.endpoint)));
        }
        for row in &last.prefixes {
            if let Some(cidr) = row.cidr.and_then(|cidr| block(&cidr.to_string(), true)) {
                held.insert(row.id, (row.network.as_str(), cidr, format!("{}/{}", row.realm, row.owner)));
            }
        }
        Self { member: &last.member, revision: last.revision, held }
    }
}

fn is_same(ack: &Ack<'_>, network: &str, block: AddressRange, holder: &str) -> bool {
    ack.grant.network == network && ack.block == block && (ack.holder.is_empty() || ack.holder == holder)
}

fn operations(pairs: &Pairs<'_>, ack: &Ack<'_>) -> Vec<u64> {
    pairs.call(ack.call).map(|call| call.indexes().collect()).unwrap_or_default()
}

fn check_grant(pairs: &Pairs<'_>, ack: &Ack<'_>, finals: &[LastState<'_>], verdict: &mut Verdict) {
    let (id, text) = (ack.id, &ack.grant.address);
    let known = pairs.journal.lifetimes.get(&id);
    match known {
        None if pairs.journal.is_complete => {
            let message =
                format!("grant {id} of {text} to {} was acknowledged and is in no event", ack.holder);
            verdict.violated(message, operations(pairs, ack));
            return;
        }
        None if may_have_ended(pairs, ack) => return,
        Some(known) if !is_same(ack, known.network, known.block, &known.holder) => {
            let message = format!(
                "grant {id} was acknowledged as {text} of {} and is {} of {} in the journal",
                ack.holder, known.block, known.holder
            );
            let events = vec![known.begun.id()];
            verdict.add(Anomaly { message, operations: operations(pairs, ack), events });
            return;
        }
        _ => {}
    }
    for last in finals {
        let end = known.and_then(|known| known.ended);
        if end.is_some_and(|end| end.revision <= last.revision) || last.revision < id {
            continue;
        }
        let message = match last.held.get(&id) {
            Some((network, block, holder)) if is_same(ack, network, *block, holder) => continue,
            Some((_, block, holder)) => format!(
                "grant {id} was acknowledged as {text} of {} and is {block} of {holder} on {}",
                ack.holder, last.member
            ),
            // The grant ended while the state was read.
            None if end.is_some() => continue,
            None => {
                format!(
                    "grant {id} of {text} to {} was acknowledged and is lost on {}",
                    ack.holder, last.member
                )
            }
        };
        verdict.violated(message, operations(pairs, ack));
    }
}

/// Without a journal: returns true if an operation, a task or the end of a lease may have ended a grant.
fn may_have_ended(pairs: &Pairs<'_>, ack: &Ack<'_>) -> bool {
    let calls = || pairs.calls_naming(ack.id).chain(pairs.calls_of(ack.holder));
    let by_task = calls().any(|(_, call)| call.begin.f == Function::Add || call.begin.value.ttl_ms.is_some());
    by_task || calls().any(|(_, call)| may_release(call.begin.f) && call.kind() != Type::Fail)
}

/// Checks a grant without an id: its address must have been allocated to its holder during the call.
fn check_unidentified(pairs: &Pairs<'_>, ack: &Ack<'_>, verdict: &mut Verdict) {
    verdict.checked += 1;
    let may_exist = !pairs.journal.is_complete || !pairs.journal.restores.is_empty();
    if !may_exist && pairs.candidates(ack).next().is_none() {
        let message =
            format!("{} was acknowledged for {} and never allocated", ack.grant.address, ack.holder);
        verdict.violated(message, operations(pairs, ack));
    }
}

fn check_releases(pairs: &Pairs<'_>, finals: &[LastState<'_>], verdict: &mut Verdict) {
    let releases = releases(pairs);
    figure(verdict, "acknowledged releases", releases.len());
    for (id, released) in releases {
        verdict.checked += 1;
        let known = pairs.journal.lifetimes.get(&id);
        if known.is_some_and(|known| known.ended.is_none()) {
            let message = format!("the release of grant {id} was acknowledged and is in no event");
            verdict.violated(message, [released.operation]);
        }
        for last in finals.iter().filter(|last| last.held.contains_key(&id)) {
            let message = format!("the release of grant {id} was acknowledged, and {} has it", last.member);
            verdict.violated(message, [released.operation]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::testing::{Run, grant};

    const A: &str = "host/default/default/a";
    const B: &str = "host/default/default/b";

    fn found(run: &Run) -> Vec<(String, Vec<u64>)> {
        let anomalies = run.verdict(&DurableAnswers).anomalies.into_iter();
        anomalies.map(|anomaly| (anomaly.message, anomaly.operations)).collect()
    }

    #[test]
    fn grants_are_there_until_an_event_ends_them() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).allocated(2, "10.0.0.2", B);
        run.released(5, 2, "10.0.0.2", B, "lease-ended").last_state(9, &[(1, "10.0.0.1", A)]);
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        run.call(2, Function::Allocate).endpoint(B).ok(&[grant(2, "10.0.0.2")]);
        assert_eq!(found(&run), []);
    }

    #[test]
    fn a_lost_grant_is_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).last_state(9, &[(1, "10.0.0.1", A)]).last_state(9, &[]);
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        let lost = run.call(2, Function::Allocate).endpoint(B).ok(&[grant(2, "10.0.0.2")]);
        let found = found(&run);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].0.contains("lost on n2"));
        assert!(found[1].0.contains("in no event"));
        assert_eq!(found[1].1, [lost, lost + 1]);
    }

    #[test]
    fn a_grant_with_another_holder_is_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", B);
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        assert!(found(&run)[0].0.contains("in the journal"));
    }

    #[test]
    fn a_release_without_an_effect_is_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).last_state(9, &[(1, "10.0.0.1", A)]);
        let held = [grant(1, "10.0.0.1")];
        run.call(1, Function::Allocate).endpoint(A).ok(&held);
        run.call(1, Function::Release).endpoint(A).grants(&held).info();
        run.call(1, Function::Release).endpoint(A).grants(&held).ok(&[]);
        assert_eq!(found(&run), []);
        run.call(1, Function::Release).endpoint(A).grants(&held).ok(&held);
        assert_eq!(found(&run).len(), 2);
    }

    #[test]
    fn an_address_of_cni_that_was_never_allocated_is_found() {
        let mut run = Run::default();
        let pod = "pod/default/default/a";
        run.allocated(1, "10.0.0.1", pod);
        run.call(1, Function::Add).endpoint(pod).ok(&[grant(0, "10.0.0.1")]);
        assert_eq!(found(&run), []);
        run.call(1, Function::Add).endpoint(pod).ok(&[grant(0, "10.0.0.2")]);
        assert!(found(&run)[0].0.contains("never allocated"));
    }

    #[test]
    fn operations_that_a_restore_undid_are_exempt() {
        let mut run = Run::default();
        let epoch = 1 << 41;
        run.allocated(1, "10.0.0.1", A).other(epoch + 1, "epoch.begun", "2", "restored from revision 3");
        run.last_state(epoch + 4, &[(1, "10.0.0.1", A)]);
        let held = [grant(1, "10.0.0.1")];
        run.call(1, Function::Allocate).endpoint(A).ok(&held);
        run.call(2, Function::Allocate).endpoint(B).revision(5).ok(&[grant(5, "10.0.0.2")]);
        run.call(1, Function::Release).endpoint(A).grants(&held).revision(6).ok(&held);
        assert_eq!(found(&run), []);
        run.call(1, Function::Release).endpoint(A).grants(&held).revision(epoch + 3).ok(&held);
        assert_eq!(found(&run).len(), 2);
    }
}
