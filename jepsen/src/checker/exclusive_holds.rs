//! I1: no two grants hold one address at the same time.
//!
//! A hold is *definite* from the first answer that names its grant to the earliest instant at which anything
//! can have ended it. Two definite holds of one address, or of a prefix and an address in it, never overlap,
//! nor does a prefix overlap an older prefix inside it. Grants of one id are one hold: a sticky endpoint with
//! several attachments is one holder.
//!
//! The end of a hold is the later of two lower bounds: the begin of the first operation that may have
//! released it, and the earliest commit time of the event that ended it. A grant that the journal doesn't end
//! is held until the run ends.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::address::AddressRange;

use super::block::is_single;
use super::pairs::{Ack, Pairs, figure, may_release};
use super::space::Space;
use super::{Checker, Record, Verdict};
use crate::history::{Function, Type};

/// Checker of I1.
pub(super) struct ExclusiveHolds;

impl Checker for ExclusiveHolds {
    fn id(&self) -> &'static str {
        "I1"
    }

    fn name(&self) -> &'static str {
        "exclusive holds"
    }

    fn promises(&self) -> &'static [u8] {
        &[1, 10]
    }

    fn about(&self) -> &'static str {
        "At no instant do two grants hold one address of one network."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let holds = holds(&pairs);
        let mut verdict = Verdict { checked: holds.len() as u64, ..Verdict::default() };
        figure(&mut verdict, "definite holds", holds.len());
        sweep(&holds, &mut verdict);
        verdict
    }
}

/// Definite hold.
#[derive(Debug, Clone)]
struct Hold<'a> {
    id: u64,
    network: &'a str,
    block: AddressRange,
    holder: &'a str,
    begin_ns: u64,
    end_ns: u64,
    /// First call that names the grant.
    call: usize,
    /// Operation of that call.
    operation: u64,
}

fn holds<'a>(pairs: &Pairs<'a>) -> Vec<Hold<'a>> {
    let mut holds: BTreeMap<u64, Hold<'a>> = BTreeMap::new();
    for ack in pairs.acks.iter().filter(|ack| ack.id != 0) {
        let Some(call) = pairs.call(ack.call) else { continue };
        let (begin_ns, operation) = (call.end_ns(), call.begin.index);
        let known = holds.get(&ack.id);
        if known.is_some_and(|known| known.begin_ns <= begin_ns) {
            continue;
        }
        let Ack { id, call: at, block, grant, holder } = *ack;
        let network = grant.network.as_str();
        holds.insert(id, Hold { id, network, block, holder, begin_ns, end_ns: 0, call: at, operation });
    }
    let mut holds: Vec<Hold<'a>> = holds.into_values().collect();
    for hold in &mut holds {
        hold.end_ns = end_ns(pairs, hold);
    }
    holds.retain(|hold| hold.begin_ns < hold.end_ns);
    holds
}

/// Time before which the hold has surely not ended.
fn end_ns(pairs: &Pairs<'_>, hold: &Hold<'_>) -> u64 {
    let journal = &pairs.journal;
    if journal.is_lost(hold.id) {
        let restore = journal.restore_after(hold.id).map(|restore| restore.from + 1);
        return restore.map_or(0, |lost| pairs.timeline.earliest_ns(lost)).min(first_release_ns(pairs, hold));
    }
    // What happened between a backup and its restore is unknown.
    let unknown = journal.restores.iter().find(|restore| restore.from >= hold.id);
    let unknown_ns = unknown.map_or(u64::MAX, |restore| pairs.timeline.earliest_ns(restore.from + 1));
    let known = journal.lifetimes.get(&hold.id);
    let known_ns = match known.map(|known| known.ended) {
        Some(None) => u64::MAX,
        Some(Some(end)) => {
            pairs.timeline.earliest_ns(end.revision).max(requested_ns(pairs, hold, end.reason.as_deref()))
        }
        None => first_release_ns(pairs, hold),
    };
    known_ns.min(unknown_ns)
}

/// Lower bound from the operations that may have caused a requested end; 0 without one, a case of I9.
fn requested_ns(pairs: &Pairs<'_>, hold: &Hold<'_>, reason: Option<&str>) -> u64 {
    let is_requested = matches!(reason, Some("allocation-released" | "endpoint-released"));
    let first = is_requested.then(|| releases(pairs, hold).min()).flatten();
    first.unwrap_or(0)
}

/// Time before which no operation and no expiry can have ended a hold that the journal lacks.
fn first_release_ns(pairs: &Pairs<'_>, hold: &Hold<'_>) -> u64 {
    let Some(call) = pairs.call(hold.call) else { return 0 };
    let by_task = match (call.begin.f, call.begin.value.ttl_ms) {
        // Tasks may reclaim an attachment at any time.
        (Function::Add, _) => 0,
        (_, Some(ttl_ms)) => call.begin_ns().saturating_add(ttl_ms.saturating_mul(1_000_000)),
        (_, None) => u64::MAX,
    };
    releases(pairs, hold).min().unwrap_or(u64::MAX).min(by_task)
}

/// Begins of the operations that may have released a hold.
fn releases(pairs: &Pairs<'_>, hold: &Hold<'_>) -> impl Iterator<Item = u64> {
    let made_ns = pairs.call(hold.call).map_or(0, |call| call.begin_ns());
    let calls = pairs.calls_naming(hold.id).chain(pairs.calls_of(hold.holder));
    let releases = calls.filter(move |(_, call)| {
        // An indeterminate operation may take effect at any later time.
        may_release(call.begin.f)
            && (call.kind() == Type::Info || (call.kind() == Type::Ok && call.end_ns() >= made_ns))
    });
    releases.map(|(_, call)| call.begin_ns())
}

/// Active holds that may not exist beside a new one.
fn conflicts<'h, 'a>(active: &Space<'a, &'h Hold<'a>>, new: &Hold<'a>) -> Vec<&'h Hold<'a>> {
    let is_address = is_single(&new.block);
    let mut found: Vec<&Hold<'_>> = active.at(new.network, new.block).collect();
    // An older prefix may be divided: nested prefixes are legal, addresses in a prefix are not.
    found.extend(active.around(new.network, new.block).filter(|outer| is_address || outer.id > new.id));
    let inner = active.inside(new.network, new.block);
    found.extend(inner.filter(|inner| is_single(&inner.block) || inner.id < new.id));
    found
}

/// Passes over all begins and ends in the order of time.
fn sweep(holds: &[Hold<'_>], verdict: &mut Verdict) {
    // Ends come before begins of the same instant.
    let mut turns: Vec<(u64, bool, &Hold<'_>)> = Vec::with_capacity(holds.len() * 2);
    for hold in holds {
        turns.push((hold.begin_ns, true, hold));
        turns.push((hold.end_ns, false, hold));
    }
    turns.sort_by_key(|(time_ns, begins, hold)| (*time_ns, *begins, hold.id));
    let mut active = Space::default();
    let mut reported = BTreeSet::new();
    for (_, begins, hold) in turns {
        if !begins {
            active.remove(hold.network, hold.block, |other: &&Hold<'_>| other.id == hold.id);
            continue;
        }
        for other in conflicts(&active, hold) {
            if reported.insert((other.id, hold.id)) {
                let message = format!(
                    "{} of {} holds {} by grant {} while {} holds {} by grant {}",
                    hold.holder, hold.network, hold.block, hold.id, other.holder, other.block, other.id
                );
                verdict.violated(message, [other.operation, hold.operation]);
            }
        }
        active.add(hold.network, hold.block, hold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::testing::{Run, grant};

    const A: &str = "host/default/default/a";
    const B: &str = "host/default/default/b";

    #[test]
    fn a_released_address_may_be_allocated_again() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).released(2, 1, "10.0.0.1", A, "allocation-released");
        run.allocated(3, "10.0.0.1", B);
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        // The release is under way when the next holder has its answer.
        let release = run.call(1, Function::Release).endpoint(A).grants(&[grant(1, "10.0.0.1")]).begin();
        run.call(2, Function::Allocate).endpoint(B).ok(&[grant(3, "10.0.0.1")]);
        run.end(release, Type::Ok, Some(&[grant(1, "10.0.0.1")]));
        let verdict = run.verdict(&ExclusiveHolds);
        assert!(verdict.holds(), "{verdict:?}");
        assert_eq!(verdict.checked, 2);
    }

    #[test]
    fn a_release_without_an_answer_may_take_effect_later() {
        let mut run = Run::default();
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        run.call(1, Function::Release).endpoint(A).grants(&[grant(1, "10.0.0.1")]).info();
        run.call(2, Function::Allocate).endpoint(B).ok(&[grant(3, "10.0.0.1")]);
        assert!(run.verdict(&ExclusiveHolds).holds());
    }

    #[test]
    fn two_holders_of_one_address_are_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).allocated(3, "10.0.0.1", B);
        let first = run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        let second = run.call(2, Function::Allocate).endpoint(B).ok(&[grant(3, "10.0.0.1")]);
        let verdict = run.verdict(&ExclusiveHolds);
        assert_eq!(verdict.violations, 1);
        assert_eq!(verdict.anomalies[0].operations, [first, second]);
    }

    #[test]
    fn an_end_in_the_journal_before_the_release_began_is_no_excuse() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).released(2, 1, "10.0.0.1", A, "allocation-released");
        run.allocated(3, "10.0.0.1", B);
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        run.call(2, Function::Allocate).endpoint(B).ok(&[grant(3, "10.0.0.1")]);
        run.call(1, Function::Release)
            .endpoint(A)
            .grants(&[grant(1, "10.0.0.1")])
            .ok(&[grant(1, "10.0.0.1")]);
        assert_eq!(run.verdict(&ExclusiveHolds).violations, 1);
    }

    #[test]
    fn an_address_in_a_prefix_is_found_and_a_divided_prefix_is_legal() {
        let mut run = Run::default();
        run.prefix(4, "prefix.delegated", 4, "10.0.0.16/28").prefix(5, "prefix.delegated", 5, "10.0.0.16/30");
        run.allocated(6, "10.0.0.20", A);
        // The child is acknowledged before its parent.
        run.call(1, Function::Delegate).ok(&[grant(5, "10.0.0.16/30")]);
        let prefix = run.call(1, Function::Delegate).ok(&[grant(4, "10.0.0.16/28")]);
        assert!(run.verdict(&ExclusiveHolds).holds());
        let address = run.call(2, Function::Allocate).endpoint(A).ok(&[grant(6, "10.0.0.20")]);
        let verdict = run.verdict(&ExclusiveHolds);
        assert_eq!(verdict.anomalies.len(), 1);
        assert_eq!(verdict.anomalies[0].operations, [prefix, address]);
    }

    #[test]
    fn a_prefix_around_an_older_prefix_or_an_address_is_found() {
        let mut run = Run::default();
        run.prefix(4, "prefix.delegated", 4, "10.0.0.16/30").allocated(5, "10.0.0.30", A);
        run.prefix(6, "prefix.delegated", 6, "10.0.0.16/28");
        run.call(1, Function::Delegate).ok(&[grant(4, "10.0.0.16/30")]);
        run.call(2, Function::Allocate).endpoint(A).ok(&[grant(5, "10.0.0.30")]);
        run.call(1, Function::Delegate).ok(&[grant(6, "10.0.0.16/28")]);
        assert_eq!(run.verdict(&ExclusiveHolds).violations, 2);
    }

    #[test]
    fn the_same_address_of_two_networks_is_two_addresses() {
        let mut run = Run::default();
        let mut other = grant(3, "10.0.0.1");
        other.network = "lab".to_owned();
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        run.call(2, Function::Allocate).endpoint(B).ok(&[other]);
        assert!(run.verdict(&ExclusiveHolds).holds());
    }

    #[test]
    fn grants_that_a_restore_has_undone_hold_until_the_restore() {
        let mut run = Run::default();
        let epoch = 1 << 41;
        run.allocated(1, "10.0.0.1", A).other(epoch + 1, "epoch.begun", "2", "restored from revision 4");
        run.allocated(epoch + 9, "10.0.0.7", B);
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(6, "10.0.0.7")]);
        run.call(2, Function::Allocate).endpoint(B).ok(&[grant(epoch + 9, "10.0.0.7")]);
        assert!(run.verdict(&ExclusiveHolds).holds());
    }
}
