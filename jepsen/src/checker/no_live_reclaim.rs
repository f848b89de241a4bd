//! I7: no task reclaims a live allocation or prefix.
//!
//! A lease that was renewed doesn't end before its TTL has passed since the begin of the renewal: log time is
//! never faster than the clients' monotonic clock. An allocation without a TTL doesn't end as a lease, and an
//! allocation that is on no node isn't reclaimed with a node. An address that answered on the wire for some
//! time isn't reclaimed for silence, nor as an orphan whose network namespace was deleted.

use std::collections::BTreeMap;

use ipam_api::address::AddressRange;
use ipam_api::limits::PREFIX_DAMPING_MS_MAX;

use super::block::block;
use super::intervals::Interval;
use super::journal::Lifetime;
use super::pairs::{Pairs, figure, may_grant};
use super::{Anomaly, Checker, Record, Verdict};
use crate::history::{Function, Type};
use crate::nemesis::Kind;

/// Longest difference between the monotonic clocks of two machines over one lease.
const SKEW_NS: u64 = 100_000_000;
/// Time for which an address must have answered before its end, unless it did so from its begin on.
const ALIVE_NS: u64 = 10_000_000_000;
/// Longest time from the answer of an ADD to the first answer on the wire.
const PLUG_NS: u64 = 2_000_000_000;
/// Reasons for which an address that answers is never reclaimed.
const SILENT: [&str; 2] = ["node-silent", "orphaned-netns-gone"];
/// Reasons that concern a node.
const OF_NODE: [&str; 5] =
    ["node-silent", "node-gone", "orphaned-netns-gone", "orphaned-earlier-boot", "orphaned-not-in-gc-list"];

/// Checker of I7.
pub(super) struct NoLiveReclaim;

impl Checker for NoLiveReclaim {
    fn id(&self) -> &'static str {
        "I7"
    }

    fn name(&self) -> &'static str {
        "no reclaim of live allocations"
    }

    fn promises(&self) -> &'static [u8] {
        &[6]
    }

    fn about(&self) -> &'static str {
        "No task ends a lease before its TTL, a held allocation, or an address that answers on the wire."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let answering = answering(&pairs);
        let mut verdict = Verdict::default();
        let mut reclaims: BTreeMap<&str, u64> = BTreeMap::new();
        for lifetime in pairs.journal.lifetimes.values() {
            let Some(end) = lifetime.ended else { continue };
            let reason = end.reason.as_deref().unwrap_or_default();
            let problem = match reason {
                "lease-ended" | "not-refreshed" => lease_problem(&pairs, lifetime, end.revision),
                _ if OF_NODE.contains(&reason) => {
                    let problem = end.node.is_none().then(|| ("is on no node".to_owned(), Vec::new()));
                    problem.or_else(|| wire_problem(&pairs, &answering, lifetime, end.revision, reason))
                }
                _ => continue,
            };
            *reclaims.entry(reason).or_default() += 1;
            verdict.checked += 1;
            if let Some((problem, operations)) = problem {
                let message = format!(
                    "grant {} of {} to {} ended ({reason}), but it {problem}",
                    lifetime.id, lifetime.block, lifetime.holder
                );
                verdict.add(Anomaly { message, operations, events: vec![end.id()] });
            }
        }
        for (reason, count) in reclaims {
            figure(&mut verdict, &format!("reclaimed: {reason}"), count);
        }
        verdict
    }
}

type Problem = Option<(String, Vec<u64>)>;

/// Problem of a lease that ended too early.
fn lease_problem(pairs: &Pairs<'_>, lifetime: &Lifetime<'_>, revision: u64) -> Problem {
    let named: Vec<(usize, &Interval<'_>)> = pairs.calls_naming(lifetime.id).collect();
    let latest_ns = pairs.timeline.latest_ns(revision);
    let restored = pairs.journal.restores.iter().any(|restore| restore.begun < revision);
    // Only answers that name the lease count: a renewal by endpoint may have renewed another lease.
    let tells = |at: usize, call: &Interval<'_>| {
        let is_renewed = call.begin.f == Function::Renew
            && call.value().grants.iter().any(|grant| grant.id == lifetime.id);
        is_renewed || pairs.acks_of(at).any(|ack| ack.id == lifetime.id)
    };
    let acks = named.iter().filter(|(at, call)| call.kind() == Type::Ok && tells(*at, call));
    if !lifetime.is_prefix
        && acks.clone().next().is_some()
        && acks.clone().all(|(_, call)| may_grant(call.begin.f) && call.value().ttl_ms.is_none())
        && !others(pairs, lifetime, 0).any(|call| call.value().ttl_ms.is_some())
    {
        let operations = acks.map(|(_, call)| call.begin.index).collect();
        return Some(("has no TTL".to_owned(), operations));
    }
    for (_, call) in acks {
        // A repeated key replays its answer and renews nothing; a restore may undo a renewal.
        let is_renewal = !pairs.is_repeated(call) && !restored;
        let Some(ttl_ms) = call.value().ttl_ms.filter(|_| is_renewal) else { continue };
        // Another operation may have shortened the lease meanwhile or later.
        let shortest =
            others(pairs, lifetime, call.begin_ns()).filter_map(|other| other.value().ttl_ms).min();
        let ttl_ms = shortest.unwrap_or(ttl_ms).min(ttl_ms);
        // A repeated delegation that would extend the prefix by less than the damping has no effect.
        let damping_ms = if is_repetition(call) { PREFIX_DAMPING_MS_MAX.min(ttl_ms / 4) } else { 0 };
        let ttl_ns = ttl_ms.saturating_sub(damping_ms).saturating_mul(1_000_000);
        let bound_ns = call.begin_ns().saturating_add(ttl_ns);
        if latest_ns.saturating_add(SKEW_NS) < bound_ns {
            let early_ms = (bound_ns - latest_ns) / 1_000_000;
            return Some((format!("was renewed and ended {early_ms} ms too early"), vec![call.begin.index]));
        }
    }
    None
}

/// True for a delegation that has returned an existing prefix.
fn is_repetition(call: &Interval<'_>) -> bool {
    call.begin.f == Function::Delegate
        && call.value().detail.get("repeated").and_then(serde_json::Value::as_bool) == Some(true)
}

fn may_set_ttl(f: Function) -> bool {
    f == Function::Renew || may_grant(f)
}

/// Operations that may have set the TTL of a grant after a time.
fn others<'p, 'a>(
    pairs: &'p Pairs<'a>,
    lifetime: &'p Lifetime<'a>,
    after_ns: u64,
) -> impl Iterator<Item = &'p Interval<'a>> {
    let calls = pairs.calls_naming(lifetime.id).chain(pairs.calls_of(&lifetime.holder)).map(|(_, call)| call);
    calls.filter(move |call| {
        let is_open = call.kind() == Type::Info || (call.kind() == Type::Ok && call.end_ns() >= after_ns);
        may_set_ttl(call.begin.f) && is_open
    })
}

/// Time in which an address answered on the wire, with the operation that began it.
#[derive(Debug, Clone, Copy)]
struct Answering {
    begin_ns: u64,
    end_ns: u64,
    operation: u64,
}

/// Times in which addresses surely answered.
fn answering<'a>(pairs: &Pairs<'a>) -> BTreeMap<(&'a str, AddressRange), Vec<Answering>> {
    let mut times: BTreeMap<(&str, AddressRange), Vec<Answering>> = BTreeMap::new();
    let mut hosts: Vec<(&str, &str, AddressRange)> = Vec::new();
    for call in pairs.calls.iter().filter(|call| call.begin.f == Function::Farm) {
        let value = &call.begin.value;
        let answers = value.detail.get("answers").and_then(serde_json::Value::as_bool) == Some(true);
        for grant in &value.grants {
            let Some(address) = block(&grant.address, false) else { continue };
            let place = (grant.network.as_str(), address);
            let known = times.entry(place).or_default();
            if !answers {
                // From the begin of this operation on, the address may be silent.
                close(known, call.begin_ns());
            } else if call.kind() == Type::Ok {
                close(known, call.begin_ns());
                let (begin_ns, operation) = (call.end_ns(), call.begin.index);
                known.push(Answering { begin_ns, end_ns: u64::MAX, operation });
                hosts.extend(value.host.as_deref().map(|host| (host, place.0, place.1)));
            }
        }
    }
    // The loss of a host ends its containers.
    for fault in &pairs.faults {
        let Kind::Nodes { hosts: lost } = &fault.fault.kind else { continue };
        for (_, network, address) in hosts.iter().filter(|(host, ..)| lost.iter().any(|other| other == host))
        {
            for time in times.get_mut(&(*network, *address)).into_iter().flatten() {
                if time.begin_ns <= fault.end_ns() {
                    time.end_ns = time.end_ns.min(fault.begin_ns().max(time.begin_ns));
                }
            }
        }
    }
    times
}

fn close(times: &mut [Answering], end_ns: u64) {
    if let Some(last) = times.last_mut() {
        last.end_ns = last.end_ns.min(end_ns);
    }
}

/// Problem of an allocation that was reclaimed for silence.
fn wire_problem(
    pairs: &Pairs<'_>,
    answering: &BTreeMap<(&str, AddressRange), Vec<Answering>>,
    lifetime: &Lifetime<'_>,
    revision: u64,
    reason: &str,
) -> Problem {
    if !SILENT.contains(&reason) {
        return None;
    }
    let (earliest_ns, latest_ns) = (pairs.timeline.earliest_ns(revision), pairs.timeline.latest_ns(revision));
    let made = pairs.calls_naming(lifetime.id).map(|(_, call)| call).find(|call| may_grant(call.begin.f))?;
    let times = answering.get(&(lifetime.network, lifetime.block)).into_iter().flatten();
    let alive = times.into_iter().find(|time| {
        let is_from_begin =
            time.begin_ns >= made.begin_ns() && time.begin_ns <= made.end_ns().saturating_add(PLUG_NS);
        let is_long = time.begin_ns.saturating_add(ALIVE_NS) <= earliest_ns;
        time.begin_ns <= earliest_ns && latest_ns < time.end_ns && (is_from_begin || is_long)
    })?;
    let operations = made.indexes().chain([alive.operation]).collect();
    Some(("answered on the wire all the time".to_owned(), operations))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checker::testing::{Run, grant};

    const A: &str = "host/default/default/a";
    const POD: &str = "pod/default/default/a";

    fn found(run: &Run) -> Vec<String> {
        run.verdict(&NoLiveReclaim).anomalies.into_iter().map(|anomaly| anomaly.message).collect()
    }

    /// A lease of 2 s, renewed at 1.5 s, that has certainly ended at this time.
    fn leased(gone_ms: u64, renewal: Type) -> Run {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).released(9, 1, "10.0.0.1", A, "lease-ended");
        let held = [grant(1, "10.0.0.1")];
        run.call(1, Function::Allocate).endpoint(A).ttl_ms(2_000).ok(&held);
        let renew = run.at(1_500).call(1, Function::Renew).endpoint(A).grants(&held).ttl_ms(2_000).begin();
        run.end(renew, renewal, Some(&held));
        run.at(gone_ms).call(2, Function::Read).target("10.0.0.1").revision(9).ok(&[]);
        run
    }

    #[test]
    fn a_lease_ends_after_its_ttl() {
        assert_eq!(found(&leased(3_600, Type::Ok)), Vec::<String>::new());
        assert_eq!(found(&leased(2_600, Type::Info)), Vec::<String>::new());
        let early = found(&leased(2_600, Type::Ok));
        assert!(early[0].contains("too early"), "{early:?}");
    }

    #[test]
    fn a_lease_that_may_have_been_shortened_ends_earlier() {
        let mut run = leased(2_600, Type::Ok);
        run.at(1_600).call(1, Function::Renew).endpoint(A).ttl_ms(500).info();
        assert_eq!(found(&run), Vec::<String>::new());
    }

    #[test]
    fn a_repeated_delegation_that_gains_little_has_no_effect() {
        let early = |repeated_at_ms| {
            let mut run = Run::default();
            run.prefix(1, "prefix.delegated", 1, "10.0.0.0/28");
            run.prefix(9, "prefix.released", 1, "10.0.0.0/28");
            run.last_event().reason = Some("not-refreshed".to_owned());
            let held = [grant(1, "10.0.0.0/28")];
            run.call(1, Function::Delegate).endpoint(A).ttl_ms(2_000).ok(&held);
            let repeated = run.at(repeated_at_ms).call(1, Function::Delegate).endpoint(A).ttl_ms(2_000);
            repeated.detail(json!({"repeated": true})).ok(&held);
            run.at(2_100).call(2, Function::Read).target("10.0.0.1").revision(9).ok(&[]);
            found(&run)
        };
        assert_eq!(early(400), Vec::<String>::new());
        assert!(early(800)[0].contains("too early"));
    }

    #[test]
    fn a_renewal_of_the_next_allocation_is_none_of_this_one() {
        let mut run = leased(3_600, Type::Ok);
        let next = [grant(10, "10.0.0.1")];
        run.call(1, Function::Renew).endpoint(A).grants(&[grant(1, "10.0.0.1")]).ttl_ms(2_000).ok(&next);
        assert_eq!(found(&run), Vec::<String>::new());
    }

    #[test]
    fn a_held_allocation_is_not_reclaimed() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).released(9, 1, "10.0.0.1", A, "lease-ended");
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        assert!(found(&run)[0].contains("no TTL"));
        let mut node = Run::default();
        node.allocated(1, "10.0.0.1", A).released(9, 1, "10.0.0.1", A, "node-gone");
        assert!(found(&node)[0].contains("on no node"));
    }

    /// An allocation on a node that answers from 3 ms on and is reclaimed between 21 s and 22 s.
    fn plugged(reason: &str) -> Run {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", POD).released(9, 1, "10.0.0.1", POD, reason);
        run.last_event().node = Some("c1".parse().unwrap());
        let held = [grant(1, "10.0.0.1")];
        run.call(1, Function::Add).endpoint(POD).ok(&held);
        run.call(1, Function::Farm).grants(&held).detail(json!({"answers": true})).ok(&held);
        run
    }

    fn reclaimed(run: &mut Run) {
        run.at(21_000).call(2, Function::Read).target("10.0.0.2").revision(8).ok(&[]);
        run.at(22_000).call(2, Function::Read).target("10.0.0.2").revision(9).ok(&[]);
    }

    #[test]
    fn an_address_that_answers_is_not_reclaimed_for_silence() {
        let mut alive = plugged("node-silent");
        reclaimed(&mut alive);
        assert!(found(&alive)[0].contains("answered on the wire"));
        // An authority reports that the node was deleted.
        let mut gone = plugged("node-gone");
        reclaimed(&mut gone);
        assert_eq!(found(&gone), Vec::<String>::new());
        let mut silent = plugged("node-silent");
        let held = [grant(1, "10.0.0.1")];
        silent.at(9_000).call(1, Function::Farm).grants(&held).detail(json!({"answers": false})).info();
        reclaimed(&mut silent);
        assert_eq!(found(&silent), Vec::<String>::new());
    }
}
