//! I8: allocations of dead holders are reclaimed, and nothing leaks.
//!
//! After the last fault, leases whose owners have stopped renewing them end within their TTL and a bound. In
//! the final states, each allocation of an endpoint of the history has an operation that may have left it
//! behind: an operation that no acknowledged release followed. An ADD that began before the DEL of its
//! attachment never leaves an allocation behind. No claim waits for a pool with free addresses.
//!
//! Log time stands still in an outage, so that only the time after the last fault counts.

use super::intervals::Interval;
use super::orphans;
use super::pairs::{Pairs, figure, may_grant};
use super::starving_claims::check_starving;
use super::{Checker, Final, Record, Verdict};
use crate::history::{Function, Type, endpoint_name};

/// Time within which a dead lease is reclaimed after its TTL: ticks of log time and a backlog of expiries.
const LEASE_BOUND_NS: u64 = 10_000_000_000;
/// Time within which agents deliver stored DELs after the last fault.
const DELIVERY_NS: u64 = 15_000_000_000;

/// Checker of I8.
pub(super) struct NoLeaks;

impl Checker for NoLeaks {
    fn id(&self) -> &'static str {
        "I8"
    }

    fn name(&self) -> &'static str {
        "no leaks"
    }

    fn promises(&self) -> &'static [u8] {
        &[3, 5]
    }

    fn about(&self) -> &'static str {
        "Dead leases end within a bound, no allocation is left over, no claim starves beside free addresses."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let mut verdict = Verdict::default();
        let ended_ns = record.history.last().map_or(0, |operation| operation.time_ns);
        let healed_ns = pairs.faults.iter().map(|fault| fault.end_ns().min(ended_ns)).max().unwrap_or(0);
        let (mut leaks, mut overdue, mut starving) = (0_u64, 0_u64, 0_u64);
        for last in record.finals.iter().take(1) {
            let over_ns = ended_ns.max(last.time_ns);
            leaks += check_left_over(&pairs, last, (healed_ns, over_ns), &mut verdict);
            overdue += check_leases(&pairs, last, (healed_ns, over_ns), &mut verdict);
            starving += check_starving(record, &pairs, last, &mut verdict);
            orphans::check(&pairs, last, (healed_ns, over_ns), &mut verdict);
        }
        figure(&mut verdict, "starving claims", starving);
        figure(&mut verdict, "leaked allocations", leaks);
        figure(&mut verdict, "overdue leases", overdue);
        verdict
    }
}

/// Checks for allocations of the last state that no operation may have left behind.
fn check_left_over(pairs: &Pairs<'_>, last: &Final, times: (u64, u64), verdict: &mut Verdict) -> u64 {
    let mut leaks = 0;
    for row in &last.allocations {
        let holder = endpoint_name(&row.endpoint);
        let makers: Vec<&Interval<'_>> = pairs
            .calls_of(&holder)
            .map(|(_, call)| call)
            .filter(|call| may_grant(call.begin.f) && call.kind() != Type::Fail)
            .collect();
        // Skips allocations that are older than the history, or that belong to other users.
        if pairs.calls_of(&holder).all(|(_, call)| !may_grant(call.begin.f)) {
            continue;
        }
        verdict.checked += 1;
        // A restore brings released allocations back.
        let is_back = pairs.journal.restores.iter().any(|restore| restore.from >= row.id);
        if is_back || makers.iter().any(|maker| may_be_left(pairs, maker, &holder, row.id, times)) {
            continue;
        }
        leaks += 1;
        let message = format!(
            "allocation {} of {} to {holder} is left over: all that may have made it was released",
            row.id,
            row.address.addr()
        );
        let operations: Vec<u64> = pairs.calls_of(&holder).map(|(_, call)| call.begin.index).collect();
        let from = operations.len().saturating_sub(6);
        verdict.violated(message, operations.into_iter().skip(from));
    }
    leaks
}

/// Returns true if no acknowledged release followed an operation.
fn may_be_left(pairs: &Pairs<'_>, maker: &Interval<'_>, holder: &str, id: u64, times: (u64, u64)) -> bool {
    let is_add = maker.begin.f == Function::Add;
    let effective_until_ns = match (maker.kind(), is_add) {
        // A killed ADD may still reach a server, which refuses it after the DEL.
        (_, true) | (Type::Ok, false) if maker.begin.f != Function::Claim => maker.end_ns(),
        _ => return !is_withdrawn(pairs, maker, holder),
    };
    let key = maker.begin.value.key.as_deref();
    let mut releases = pairs.calls_of(holder).map(|(_, call)| call).filter(|call| {
        call.kind() == Type::Ok && call.begin_ns() > effective_until_ns && !pairs.is_replayed(call)
    });
    !releases.any(|call| match call.begin.f {
        Function::Del => {
            let (healed_ns, over_ns) = times;
            let is_delivered = call.end_ns().max(healed_ns).saturating_add(DELIVERY_NS) < over_ns;
            is_add && call.begin.value.key.as_deref() == key && is_delivered
        }
        Function::Release => {
            let by_endpoint = call.begin.value.detail.get("by").is_some_and(|by| by == "endpoint");
            !is_add && (by_endpoint || call.value().grants.iter().any(|grant| grant.id == id))
        }
        _ => false,
    })
}

/// A claim that was acknowledged and then withdrawn by the release of its endpoint leaves nothing.
fn is_withdrawn(pairs: &Pairs<'_>, maker: &Interval<'_>, holder: &str) -> bool {
    let is_claim = maker.begin.f == Function::Claim && maker.kind() == Type::Ok;
    let mut releases = pairs.calls_of(holder).map(|(_, call)| call).filter(|call| {
        let by_endpoint = call.begin.value.detail.get("by").is_some_and(|by| by == "endpoint");
        call.begin.f == Function::Release && by_endpoint && call.kind() == Type::Ok
    });
    is_claim && releases.any(|call| call.begin_ns() > maker.end_ns() && !pairs.is_replayed(call))
}

/// Leases of the last state that should have ended.
fn check_leases(
    pairs: &Pairs<'_>,
    last: &Final,
    (healed_ns, over_ns): (u64, u64),
    verdict: &mut Verdict,
) -> u64 {
    let mut overdue = 0;
    for row in &last.allocations {
        let Some(lease) = &row.lease else { continue };
        let holder = endpoint_name(&row.endpoint);
        let renewals = pairs.calls_naming(row.id).chain(pairs.calls_of(&holder)).map(|(_, call)| call);
        let renewals = renewals.filter(|call| {
            (call.begin.f == Function::Renew || may_grant(call.begin.f)) && call.kind() != Type::Fail
        });
        // An indeterminate renewal takes effect within its own time or is refused past its budget.
        let renewed = renewals.map(|call| if call.end.is_some() { call.end_ns() } else { over_ns }).max();
        let Some(renewed_ns) = renewed else { continue };
        verdict.checked += 1;
        let ttl_ns = lease.ttl_ms.saturating_mul(1_000_000);
        let due_ns = renewed_ns.max(healed_ns).saturating_add(ttl_ns).saturating_add(LEASE_BOUND_NS);
        if due_ns < over_ns {
            overdue += 1;
            let late_ms = (over_ns - due_ns) / 1_000_000;
            let message = format!(
                "lease {} of {} to {holder} was last renewed {} ms before the end and is there still, \
                 {late_ms} ms \
                 after its bound",
                row.id,
                row.address.addr(),
                (over_ns - renewed_ns) / 1_000_000
            );
            let operations: Vec<u64> = pairs.calls_naming(row.id).map(|(_, call)| call.begin.index).collect();
            let from = operations.len().saturating_sub(4);
            verdict.violated(message, operations.into_iter().skip(from));
        }
    }
    overdue
}

#[cfg(test)]
mod tests {
    use ipam_api::resource::Lease;
    use ipam_api::time::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::checker::testing::{Run, grant};

    const A: &str = "host/default/default/a";
    const POD: &str = "pod/default/default/a";
    const KEY: &str = "net/c/eth0@c1";

    fn found(run: &Run) -> Vec<String> {
        run.verdict(&NoLeaks).anomalies.into_iter().map(|anomaly| anomaly.message).collect()
    }

    fn wait(run: &mut Run) {
        run.at(60_000).call(9, Function::Read).target("10.9.9.9").ok(&[]);
    }

    #[test]
    fn a_release_before_an_indeterminate_allocation_explains_a_rest() {
        let mut run = Run::default();
        run.last_state(9, &[(5, "10.0.0.1", A)]);
        let by = || json!({"by": "endpoint"});
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        run.call(1, Function::Allocate).endpoint(A).info();
        run.call(1, Function::Release).endpoint(A).detail(by()).ok(&[]);
        assert_eq!(found(&run), Vec::<String>::new());
    }

    #[test]
    fn a_rest_after_the_last_release_is_a_leak() {
        let mut run = Run::default();
        run.last_state(9, &[(5, "10.0.0.1", A)]);
        run.call(1, Function::Allocate).endpoint(A).ok(&[grant(1, "10.0.0.1")]);
        run.call(1, Function::Release)
            .endpoint(A)
            .detail(json!({"by": "endpoint"}))
            .ok(&[grant(1, "10.0.0.1")]);
        assert!(found(&run)[0].contains("left over"));
    }

    #[test]
    fn a_killed_add_before_the_del_leaves_nothing() {
        let mut run = Run::default();
        run.last_state(9, &[(5, "10.0.0.1", POD)]);
        run.call(1, Function::Add).endpoint(POD).key(KEY).info();
        run.call(1, Function::Del).endpoint(POD).key(KEY).ok(&[]);
        // The agent has had no time to deliver it.
        assert_eq!(found(&run), Vec::<String>::new());
        wait(&mut run);
        assert_eq!(found(&run).len(), 1);
        // The final states are read later than the last operation.
        let mut later = run.record();
        later.history.truncate(4);
        assert_eq!(NoLeaks.check(&later).violations, 0);
        later.finals[0].time_ns = 60_000_000_000;
        assert_eq!(NoLeaks.check(&later).violations, 1);
        run.at(70_000).call(1, Function::Add).endpoint(POD).key(KEY).info();
        assert_eq!(found(&run), Vec::<String>::new());
    }

    #[test]
    fn a_dead_lease_is_overdue_after_its_bound() {
        let mut run = Run::default();
        run.last_state(9, &[(5, "10.0.0.1", A)]);
        run.call(1, Function::Allocate).endpoint(A).ttl_ms(2_000).ok(&[grant(5, "10.0.0.1")]);
        let leased = |run: &Run| {
            let mut record = run.record();
            record.finals[0].allocations[0].lease = Some(Lease { ttl_ms: 2_000, ends_at: Timestamp(0) });
            NoLeaks.check(&record).violations
        };
        assert_eq!(leased(&run), 0);
        wait(&mut run);
        assert_eq!(leased(&run), 1);
    }
}
