//! Orphans, a part of I8: allocations of containers whose network namespace was deleted.
//!
//! Workloads mark the end of a container by `detail.gone` of a `farm` operation. The agent of its node
//! reports the end after a grace period, and the cluster releases the addresses, with or without a DEL.

use super::pairs::{Pairs, figure, may_grant};
use super::{Final, Verdict};
use crate::history::{Function, endpoint_name};

/// Time within which an agent reports an ended container: its grace period and some inventories.
const BOUND_NS: u64 = 5_000_000_000;

/// Verifies that the last state has no address of a container that ended early enough.
pub(super) fn check(
    pairs: &Pairs<'_>,
    last: &Final,
    (healed_ns, over_ns): (u64, u64),
    verdict: &mut Verdict,
) {
    let (mut gone, mut left) = (0_u64, 0_u64);
    for call in pairs.calls.iter().filter(|call| call.begin.f == Function::Farm) {
        let value = &call.begin.value;
        let (Some(key), Some(endpoint)) = (value.key.as_deref(), value.endpoint.as_deref()) else { continue };
        let is_gone = value.detail.get("gone").is_some_and(|gone| *gone == true);
        let is_due = call.end_ns().max(healed_ns).saturating_add(BOUND_NS) < over_ns;
        // A later ADD makes another container of this id.
        let mut calls = pairs.by_key.get(key).into_iter().flatten().filter_map(|at| pairs.calls.get(*at));
        let is_again = calls.any(|other| may_grant(other.begin.f) && other.end_ns() >= call.begin_ns());
        if !is_gone || !is_due || is_again {
            continue;
        }
        gone += 1;
        let is_of_container = |address: &str| value.grants.iter().any(|grant| grant.address == address);
        for row in &last.allocations {
            let address = row.address.addr();
            // A restore brings released allocations back, and no agent knows their containers.
            let is_back = pairs.journal.restores.iter().any(|restore| restore.from >= row.id);
            let is_same = endpoint_name(&row.endpoint) == endpoint;
            if is_same && !is_back && is_of_container(&address.to_string()) {
                left += 1;
                verdict.violated(
                    format!(
                        "allocation {} of {address}: the container {key} is gone, and it is left",
                        row.id
                    ),
                    call.indexes(),
                );
            }
        }
    }
    verdict.checked += gone;
    figure(verdict, "containers gone", gone);
    figure(verdict, "orphans left", left);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checker::testing::{Run, grant};

    const POD: &str = "pod/default/default/a";
    const KEY: &str = "net/c/eth0@c1";

    fn violations(run: &Run) -> u64 {
        let record = run.record();
        let mut verdict = Verdict::default();
        let over_ns = record.history.last().unwrap().time_ns;
        check(&Pairs::of(&record), &record.finals[0], (0, over_ns), &mut verdict);
        verdict.violations
    }

    #[test]
    fn the_address_of_a_container_that_is_gone_is_not_left() {
        for (again, until_ms, expected) in [(false, 60_000, 1), (true, 60_000, 0), (false, 1_000, 0)] {
            let mut run = Run::default();
            run.last_state(9, &[(5, "10.0.0.1", POD)]);
            run.call(1, Function::Add).endpoint(POD).key(KEY).ok(&[grant(0, "10.0.0.1")]);
            let farm = run.call(1, Function::Farm).endpoint(POD).key(KEY).grants(&[grant(0, "10.0.0.1")]);
            farm.detail(json!({"answers": false, "gone": true})).ok(&[]);
            if again {
                run.call(1, Function::Add).endpoint(POD).key(KEY).ok(&[grant(0, "10.0.0.1")]);
            }
            run.at(until_ms).call(9, Function::Read).target("10.9.9.9").ok(&[]);
            assert_eq!(violations(&run), expected, "{again} {until_ms}");
        }
    }
}
