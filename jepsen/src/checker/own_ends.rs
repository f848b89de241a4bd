//! I9: an operation ends and renews only the grants that it names.
//!
//! Each release in the journal has an operation that named this allocation, its endpoint or its attachment
//! and that can have taken effect at that time. A DEL that ended before the ADD of an allocation began never
//! ends it. A renewal names only leases that are its own and not released.

use super::intervals::Interval;
use super::journal::Lifetime;
use super::late_requests;
use super::pairs::{Pairs, figure, may_grant, may_release};
use super::releases::releases;
use super::{Anomaly, Checker, Record, Verdict};
use crate::history::{Function, Type};

/// Checker of I9.
pub(super) struct OwnEnds;

impl Checker for OwnEnds {
    fn id(&self) -> &'static str {
        "I9"
    }

    fn name(&self) -> &'static str {
        "own ends"
    }

    fn promises(&self) -> &'static [u8] {
        &[5, 6]
    }

    fn about(&self) -> &'static str {
        "No stale or foreign operation ends or renews an allocation."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let mut verdict = Verdict::default();
        let mut ends = 0_u64;
        for lifetime in pairs.journal.lifetimes.values() {
            let Some(end) = lifetime.ended else { continue };
            // Endpoints without an operation in the history have other users.
            let is_known = pairs.calls_of(&lifetime.holder).any(|(_, call)| may_grant(call.begin.f));
            let reason = end.reason.as_deref().unwrap_or_default();
            let Some(problem) = problem(&pairs, lifetime, reason, end.revision).filter(|_| is_known) else {
                continue;
            };
            ends += 1;
            if let Err(problem) = problem {
                let message = format!(
                    "grant {} of {} to {} ended ({reason}), but {problem}",
                    lifetime.id, lifetime.block, lifetime.holder
                );
                let named = pairs.calls_naming(lifetime.id).chain(pairs.calls_of(&lifetime.holder));
                let mut operations: Vec<u64> = named.map(|(_, call)| call.begin.index).collect();
                operations.sort_unstable();
                operations.dedup();
                operations.drain(..operations.len().saturating_sub(8));
                verdict.add(Anomaly { message, operations, events: vec![end.id()] });
            }
        }
        verdict.checked += ends;
        figure(&mut verdict, "ends with an operation", ends);
        check_renewals(&pairs, &mut verdict);
        late_requests::check(&pairs, &mut verdict);
        verdict
    }
}

/// Checks an end that an operation caused; returns none for an end that a task caused.
fn problem(
    pairs: &Pairs<'_>,
    lifetime: &Lifetime<'_>,
    reason: &str,
    revision: u64,
) -> Option<Result<(), &'static str>> {
    let (earliest_ns, latest_ns) = (pairs.timeline.earliest_ns(revision), pairs.timeline.latest_ns(revision));
    let can = |call: &Interval<'_>| {
        let is_open = call.kind() == Type::Info || (call.kind() == Type::Ok && call.end_ns() >= earliest_ns);
        call.begin_ns() <= latest_ns && is_open
    };
    let by_id = || pairs.calls_naming(lifetime.id).map(|(_, call)| call);
    let by_endpoint = || pairs.calls_of(&lifetime.holder).map(|(_, call)| call);
    let names = |call: &Interval<'_>| call.begin.value.grants.iter().any(|grant| grant.id == lifetime.id);
    let is_caused = match reason {
        "allocation-released" | "released" => {
            by_id().any(|call| may_release(call.begin.f) && !is_del(call) && names(call) && can(call))
        }
        "endpoint-released" => by_endpoint().any(|call| {
            matches!(call.begin.f, Function::Release | Function::Transaction) && !is_del(call) && can(call)
        }),
        "DEL" => return Some(problem_of_del(pairs, lifetime, latest_ns)),
        _ => return None,
    };
    Some(if is_caused { Ok(()) } else { Err("no operation that named it can have ended it then") })
}

/// Finds the DEL that explains an end. The DEL must not end before the ADD began; agents may deliver it
/// later.
fn problem_of_del(pairs: &Pairs<'_>, lifetime: &Lifetime<'_>, latest_ns: u64) -> Result<(), &'static str> {
    let calls = || pairs.calls_of(&lifetime.holder).filter(|(_, call)| call.begin_ns() <= latest_ns);
    let dels = calls().filter(|(_, call)| may_end_attachment(call) && call.kind() != Type::Fail);
    let Some(last_ns) = dels.map(|(_, call)| call.end_ns()).max() else {
        return Err("no DEL of its endpoint can have ended it then");
    };
    let adds = calls().filter(|(at, call)| {
        let mut acks = pairs.acks_of(*at);
        let may_have_made = match call.kind() {
            Type::Ok => acks.any(|ack| ack.id == lifetime.id || ack.id == 0),
            Type::Fail => false,
            _ => true,
        };
        may_grant(call.begin.f) && may_have_made
    });
    match adds.map(|(_, call)| call.begin_ns()).min() {
        Some(first_ns) if last_ns < first_ns => Err("all DELs of its endpoint ended before its ADD began"),
        _ => Ok(()),
    }
}

/// Returns true for a DEL, and for an ADD without success. The agent of such an ADD ends the attachment if
/// another station has the addresses, or if it can't probe them.
fn may_end_attachment(call: &Interval<'_>) -> bool {
    is_del(call) || (call.begin.f == Function::Add && call.kind() != Type::Ok)
}

/// Returns true for a CNI DEL, and for the request of an agent.
fn is_del(call: &Interval<'_>) -> bool {
    let by_attachment = call.begin.value.detail.get("by").is_some_and(|by| by == "attachment");
    call.begin.f == Function::Del || (call.begin.f == Function::Release && by_attachment)
}

fn check_renewals(pairs: &Pairs<'_>, verdict: &mut Verdict) {
    let releases = releases(pairs);
    let mut renewals = 0_u64;
    for call in pairs.calls.iter().filter(|call| call.begin.f == Function::Renew && call.kind() == Type::Ok) {
        let begin = &call.begin.value;
        for grant in &call.value().grants {
            renewals += 1;
            let is_named = begin.grants.iter().any(|other| other.id == grant.id);
            let holder = pairs.journal.lifetimes.get(&grant.id).map(|lifetime| lifetime.holder.as_str());
            let is_foreign = holder.is_some_and(|holder| begin.endpoint.as_deref() != Some(holder));
            if is_foreign && (!is_named || begin.endpoint.is_some()) {
                let message = format!(
                    "a renewal for {} renewed grant {} of {}",
                    begin.endpoint.as_deref().unwrap_or("an allocation"),
                    grant.id,
                    holder.unwrap_or_default()
                );
                verdict.violated(message, call.indexes());
            }
            if let Some(released) =
                releases.get(&grant.id).filter(|released| released.end_ns < call.begin_ns())
            {
                let message = format!("grant {} was renewed after its release", grant.id);
                verdict.violated(message, [released.operation, call.begin.index]);
            }
        }
    }
    verdict.checked += renewals;
    figure(verdict, "renewed leases", renewals);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::testing::{Run, grant};

    const A: &str = "host/default/default/a";
    const B: &str = "host/default/default/b";
    const POD: &str = "pod/default/default/a";
    const KEY: &str = "net/c/eth0@c1";

    fn found(run: &Run) -> Vec<String> {
        run.verdict(&OwnEnds).anomalies.into_iter().map(|anomaly| anomaly.message).collect()
    }

    fn held() -> [crate::history::Grant; 1] {
        [grant(1, "10.0.0.1")]
    }

    #[test]
    fn a_lost_release_may_end_its_grant_later() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).released(9, 1, "10.0.0.1", A, "allocation-released");
        run.call(1, Function::Allocate).endpoint(A).ok(&held());
        run.call(1, Function::Release).endpoint(A).grants(&held()).info();
        assert_eq!(found(&run), Vec::<String>::new());
    }

    #[test]
    fn a_release_of_another_generation_is_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).released(2, 1, "10.0.0.1", A, "allocation-released");
        run.allocated(3, "10.0.0.1", A).released(4, 3, "10.0.0.1", A, "allocation-released");
        run.call(1, Function::Allocate).endpoint(A).ok(&held());
        run.call(1, Function::Release).endpoint(A).grants(&held()).ok(&held());
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(3, "10.0.0.1")]);
        run.call(1, Function::Release).endpoint(A).grants(&held()).ok(&[]);
        let found = found(&run);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("grant 3"));
    }

    #[test]
    fn a_late_del_does_not_end_a_newer_sandbox() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", POD).released(2, 1, "10.0.0.1", POD, "DEL");
        let add = |run: &mut Run, id| {
            run.call(1, Function::Add).endpoint(POD).key(KEY).ok(&[grant(id, "10.0.0.1")])
        };
        add(&mut run, 1);
        run.call(1, Function::Del).endpoint(POD).key(KEY).ok(&[]);
        assert_eq!(found(&run), Vec::<String>::new());
        run.allocated(3, "10.0.0.1", POD).released(4, 3, "10.0.0.1", POD, "DEL");
        add(&mut run, 3);
        assert!(found(&run)[0].contains("before its ADD began"));
        // A DEL after the ADD explains it.
        run.call(1, Function::Del).endpoint(POD).key(KEY).info();
        assert_eq!(found(&run), Vec::<String>::new());
    }

    #[test]
    fn an_end_without_a_request_is_found() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A).released(9, 1, "10.0.0.1", A, "endpoint-released");
        run.call(1, Function::Allocate).endpoint(A).ok(&held());
        run.call(1, Function::Release).endpoint(A).fail();
        run.call(1, Function::Release).endpoint(B).info();
        assert_eq!(found(&run).len(), 1);
    }

    #[test]
    fn foreign_and_released_leases_are_not_renewed() {
        let mut run = Run::default();
        run.allocated(1, "10.0.0.1", A);
        run.call(1, Function::Allocate).endpoint(A).ttl_ms(2_000).ok(&held());
        run.call(1, Function::Renew).endpoint(A).grants(&held()).ok(&held());
        assert_eq!(found(&run), Vec::<String>::new());
        run.call(1, Function::Renew).endpoint(B).ok(&held());
        run.call(1, Function::Release).endpoint(A).grants(&held()).ok(&held());
        run.call(1, Function::Renew).endpoint(A).grants(&held()).ok(&held());
        assert_eq!(found(&run).len(), 2);
    }
}
