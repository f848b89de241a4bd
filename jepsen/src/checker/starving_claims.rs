//! Starving claims: claims that wait at the end of a run although their pool has free addresses.
//!
//! The command that frees an address serves the claims that wait for it, so none may be left over. Only
//! claims of one pool are judged: a claim of several pools may wait for an address of another pool.

use std::collections::BTreeMap;

use super::pairs::Pairs;
use super::{Final, Record, Verdict};
use crate::history::{Function, endpoint_name};

/// Adds a violation for each starving claim of the last state; returns their number.
pub(super) fn check_starving(record: &Record, pairs: &Pairs<'_>, last: &Final, verdict: &mut Verdict) -> u64 {
    let mut starving = 0;
    for (holder, revision) in waiting(record) {
        let claims = pairs.calls_of(&holder).map(|(_, call)| call.begin);
        let claims: Vec<_> = claims.filter(|begin| begin.f == Function::Claim).collect();
        let Some([pool]) = claims.last().map(|begin| begin.value.pools.as_slice()) else { continue };
        let Some(pool) = last.pools.iter().find(|row| row.spec.name.as_str() == pool) else { continue };
        verdict.checked += 1;
        let is_ready = pool.status.conditions.iter().all(|one| one.kind != "Ready" || one.status == "True");
        if !is_ready || pool.status.counts.free == 0 {
            continue;
        }
        starving += 1;
        let message = format!(
            "claim of {holder} has waited since revision {revision}, though pool {} has {} free addresses",
            pool.spec.name, pool.status.counts.free
        );
        let operations: Vec<u64> = claims.iter().map(|begin| begin.index).collect();
        let from = operations.len().saturating_sub(4);
        verdict.violated(message, operations.into_iter().skip(from));
    }
    starving
}

/// Endpoints whose claims wait at the end of the journal, with the first revision of the wait.
fn waiting(record: &Record) -> BTreeMap<String, u64> {
    let mut waiting = BTreeMap::new();
    for event in &record.journal {
        match (event.event_type.as_str(), &event.endpoint) {
            ("endpoint.waiting", Some(endpoint)) => {
                waiting.insert(endpoint_name(endpoint), event.revision);
            }
            ("endpoint.withdrawn" | "address.allocated", Some(endpoint)) => {
                waiting.remove(&endpoint_name(endpoint));
            }
            // The events between a backup and its restore are not those of the restored claims.
            ("epoch.begun", _) => waiting.clear(),
            _ => {}
        }
    }
    waiting
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checker::testing::Run;

    const A: &str = "claim/default/default/a";

    /// Number of starving claims at the end of a run, with free addresses in the only pool.
    fn starving(run: &mut Run, free: u64) -> u64 {
        run.last_state(9, &[]);
        let mut record = run.record();
        let counts = json!({"size": 9, "allocated": 9 - free, "cooling": 0, "quarantined": 0, "reserved": 0,
            "excluded": 0, "free": free, "saturated": false});
        let pool = json!({
            "name": "web", "subnet": "lan", "ranges": ["10.0.0.1-10.0.0.9"],
            "meta": {"id": 1, "revision": 1, "created_at": "2026-01-01T00:00:00Z", "created_by": "a",
                "updated_at": "2026-01-01T00:00:00Z", "updated_by": "a"},
            "status": {"revision": 9, "family": 4, "cidr": "10.0.0.0/24", "counts": counts, "conditions": []},
        });
        record.finals[0].pools = vec![serde_json::from_value(pool).unwrap()];
        let mut verdict = Verdict::default();
        check_starving(&record, &Pairs::of(&record), &record.finals[0], &mut verdict)
    }

    fn claim() -> Run {
        let mut run = Run::default();
        run.call(1, Function::Claim).endpoint(A).pools(&["web"]).ok(&[]);
        run.other(2, "endpoint.waiting", A, "PoolExhausted");
        run.last_event().endpoint = Some(A.parse().unwrap());
        run
    }

    #[test]
    fn a_claim_starves_only_beside_free_addresses() {
        assert_eq!(starving(&mut claim(), 1), 1);
        assert_eq!(starving(&mut claim(), 0), 0);
    }

    #[test]
    fn a_claim_that_was_served_or_withdrawn_waits_no_longer() {
        assert_eq!(starving(claim().allocated(3, "10.0.0.1", A), 1), 0);
        let mut withdrawn = claim();
        withdrawn.other(3, "endpoint.withdrawn", A, "");
        withdrawn.last_event().endpoint = Some(A.parse().unwrap());
        assert_eq!(starving(&mut withdrawn, 1), 0);
    }
}
