//! I12: counts add up and match the lists; prefixes and addresses are disjoint; pairs are whole.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipam_api::address::number;
use ipam_api::resource::{Allocation, Counts, Prefix};

use super::intervals::operations;
use super::record::Final;
use super::{Anomaly, Checker, Record, Verdict};
use crate::history::{Function, Type};

/// Checker of I12.
#[derive(Debug)]
pub(super) struct Conservation;

impl Checker for Conservation {
    fn id(&self) -> &'static str {
        "I12"
    }

    fn name(&self) -> &'static str {
        "conservation"
    }

    fn promises(&self) -> &'static [u8] {
        &[1, 4, 9]
    }

    fn about(&self) -> &'static str {
        "Counts of each pool add up and match the lists; prefixes and addresses are disjoint; pairs whole."
    }

    fn check(&self, record: &Record) -> Verdict {
        let mut verdict = Verdict::default();
        for last in &record.finals {
            check_counts(last, &mut verdict);
            check_disjoint(last, &mut verdict);
        }
        check_pairs(record, &mut verdict);
        verdict
    }
}

/// Sum of all states of addresses.
fn sum(counts: &Counts) -> u128 {
    let Counts { size: _, allocated, cooling, quarantined, reserved, excluded, free, saturated: _ } = *counts;
    [allocated, cooling, quarantined, reserved, excluded, free].map(u128::from).iter().sum()
}

fn check_counts(last: &Final, verdict: &mut Verdict) {
    let mut held: BTreeMap<&str, u128> = BTreeMap::new();
    for allocation in &last.allocations {
        *held.entry(allocation.pool.as_str()).or_default() += 1;
    }
    for prefix in last.prefixes.iter().filter(|prefix| prefix.parent.is_none()) {
        let Some((first, end)) = bounds(prefix) else { continue };
        *held.entry(prefix.pool.as_str()).or_default() += (end - first).saturating_add(1);
    }
    for pool in &last.pools {
        let (name, counts) = (pool.spec.name.as_str(), &pool.status.counts);
        // A saturated count is only a bound, so the sum proves nothing.
        if counts.saturated {
            continue;
        }
        verdict.checked += 1;
        if sum(counts) != u128::from(counts.size) {
            let message = format!("{}: pool {name} does not add up: {}", last.member, shown(counts));
            verdict.violated(message, []);
        }
        if pool.status.revision == last.revision {
            let listed = held.get(name).copied().unwrap_or_default();
            if listed != u128::from(counts.allocated) {
                let message = format!(
                    "{}: pool {name} counts {} held addresses, and its lists have {listed}",
                    last.member, counts.allocated
                );
                verdict.violated(message, []);
            }
        }
    }
}

fn shown(counts: &Counts) -> String {
    format!(
        "free {} + allocated {} + cooling {} + quarantined {} + reserved {} + excluded {} ≠ size {}",
        counts.free,
        counts.allocated,
        counts.cooling,
        counts.quarantined,
        counts.reserved,
        counts.excluded,
        counts.size
    )
}

/// First and last address of a prefix as numbers; none while the prefix waits for a CIDR.
fn bounds(prefix: &Prefix) -> Option<(u128, u128)> {
    prefix.cidr.map(|cidr| (number(cidr.network()), number(cidr.broadcast())))
}

/// Checks that addresses have one holder, and that prefixes and addresses are disjoint. A prefix may be
/// nested in its parents only.
fn check_disjoint(last: &Final, verdict: &mut Verdict) {
    let mut holders: BTreeMap<(&str, IpAddr), &Allocation> = BTreeMap::new();
    for allocation in &last.allocations {
        verdict.checked += 1;
        let key = (allocation.network.as_str(), allocation.address.addr());
        if let Some(other) = holders.insert(key, allocation) {
            let message = format!(
                "{}: address {} in {} has two holders, {} ({}) and {} ({})",
                last.member, key.1, key.0, other.endpoint, other.id, allocation.endpoint, allocation.id
            );
            verdict.violated(message, []);
        }
    }
    let mut prefixes: Vec<(&str, bool, u128, u128, &Prefix)> = last
        .prefixes
        .iter()
        .filter_map(|prefix| {
            let (first, end) = bounds(prefix)?;
            let is_v6 = prefix.cidr.is_some_and(|cidr| cidr.addr().is_ipv6());
            Some((prefix.network.as_str(), is_v6, first, end, prefix))
        })
        .collect();
    // Larger prefixes first among those that begin together: a parent comes before its children.
    prefixes.sort_unstable_by_key(|(network, is_v6, first, end, prefix)| {
        (*network, *is_v6, *first, u128::MAX - *end, prefix.parent.is_some(), prefix.id)
    });
    let mut open: Vec<(&str, bool, u128, u64)> = Vec::new();
    for (network, is_v6, first, end, prefix) in &prefixes {
        verdict.checked += 1;
        while open.last().is_some_and(|(of, six, to, _)| (*of, *six) != (*network, *is_v6) || to < first) {
            open.pop();
        }
        let around = open.last().map(|(_, _, to, id)| (*to, *id));
        if around.map(|(_, id)| id) != prefix.parent {
            let message = format!(
                "{}: prefix {} ({}) is inside {}, and its parent is {}",
                last.member,
                prefix.cidr.map(|cidr| cidr.to_string()).unwrap_or_default(),
                prefix.id,
                around.map_or_else(|| "no prefix".to_owned(), |(_, id)| format!("prefix {id}")),
                prefix.parent.map_or_else(|| "none".to_owned(), |id| format!("prefix {id}"))
            );
            verdict.violated(message, []);
        }
        open.push((network, *is_v6, *end, prefix.id));
    }
    // Only roots matter: all others are inside them.
    let roots: Vec<_> = prefixes.iter().filter(|prefix| prefix.4.parent.is_none()).collect();
    for ((network, address), allocation) in &holders {
        let key = (*network, address.is_ipv6(), number(*address));
        let after = roots.partition_point(|(of, is_v6, first, ..)| (*of, *is_v6, *first) <= key);
        let Some((of, is_v6, _, end, prefix)) = after.checked_sub(1).and_then(|at| roots.get(at)) else {
            continue;
        };
        if (*of, *is_v6) == (key.0, key.1) && key.2 <= *end {
            let message = format!(
                "{}: address {address} of {} is inside prefix {} of {}",
                last.member, allocation.endpoint, prefix.id, prefix.path
            );
            verdict.violated(message, []);
        }
    }
}

/// Checks that an allocation of both families ends the run with both addresses or with none.
///
/// An address that was released or reclaimed by its own id, without the other one, ends the pair.
fn check_pairs(record: &Record, verdict: &mut Verdict) {
    let Some(last) = record.finals.first() else { return };
    let present: BTreeSet<u64> = last.allocations.iter().map(|allocation| allocation.id).collect();
    let mut releases: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    for event in record.journal.iter().filter(|event| event.event_type == "address.released") {
        if let Some(id) = event.allocation {
            releases.insert(id, (event.revision, event.id()));
        }
    }
    for interval in operations(&record.history) {
        let f = interval.begin.f;
        if interval.kind() != Type::Ok || !matches!(f, Function::Allocate | Function::Add) {
            continue;
        }
        let grants = &interval.value().grants;
        let families: BTreeSet<bool> = grants.iter().map(|grant| grant.address.contains(':')).collect();
        if families.len() < 2 {
            continue;
        }
        verdict.checked += 1;
        let (here, gone): (Vec<_>, Vec<_>) = grants.iter().partition(|grant| present.contains(&grant.id));
        if here.is_empty() || gone.is_empty() {
            continue;
        }
        // A pair may end by halves only by a release that the journal explains.
        let events: Vec<String> =
            gone.iter().filter_map(|grant| releases.get(&grant.id)).map(|(_, id)| id.clone()).collect();
        if events.len() == gone.len() {
            continue;
        }
        verdict.add(Anomaly {
            message: format!(
                "half a pair: {} is held at the end, and {} is neither held nor released",
                listed(&here),
                listed(&gone)
            ),
            operations: interval.indexes().collect(),
            events,
        });
    }
}

fn listed(grants: &[&crate::history::Grant]) -> String {
    grants.iter().map(|grant| grant.address.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::{Script, allocation, final_state, pool, prefix};
    use crate::checker::testing::grant;
    use crate::history::Value;

    fn check(last: Final) -> Verdict {
        Conservation.check(&Record { finals: vec![last], ..Record::default() })
    }

    #[test]
    fn counts_that_add_up_and_match_the_lists_hold() {
        let mut last = final_state("n1");
        last.allocations.push(allocation(5, "10.0.0.5/24", "p"));
        last.prefixes.push(prefix(6, "10.0.0.16/28", "p", None));
        last.prefixes.push(prefix(7, "10.0.0.16/30", "p", Some(6)));
        last.pools.push(pool("p", last.revision, [17, 3, 1, 2, 4, 229]));
        let verdict = check(last);
        assert!(verdict.holds(), "{:?}", verdict.anomalies);
        assert_eq!(verdict.checked, 4);
    }

    #[test]
    fn a_lost_address_and_a_wrong_count_are_violations() {
        let mut last = final_state("n1");
        last.pools.push(pool("p", last.revision, [0, 0, 0, 0, 0, 255]));
        last.pools.push(pool("q", last.revision, [1, 0, 0, 0, 0, 255]));
        let verdict = check(last);
        assert_eq!(verdict.violations, 2);
        assert!(verdict.anomalies[0].message.contains("pool p does not add up"));
        assert!(verdict.anomalies[1].message.contains("pool q counts 1"));
    }

    #[test]
    fn two_holders_and_overlaps_of_prefixes_are_violations() {
        let mut last = final_state("n1");
        last.allocations.push(allocation(5, "10.0.0.5/24", "p"));
        last.allocations.push(allocation(6, "10.0.0.5/24", "p"));
        last.allocations.push(allocation(7, "10.0.0.17/24", "p"));
        last.prefixes.push(prefix(8, "10.0.0.16/28", "p", None));
        last.prefixes.push(prefix(9, "10.0.0.20/30", "p", None));
        let messages: Vec<String> =
            check(last).anomalies.into_iter().map(|anomaly| anomaly.message).collect();
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[0].contains("two holders"));
        assert!(messages[1].contains("its parent is none"));
        assert!(messages[2].contains("inside prefix 8"));
    }

    #[test]
    fn half_a_pair_is_a_violation() {
        let grants = vec![grant(5, "10.0.0.5"), grant(6, "fd00::5")];
        let mut script = Script::default();
        script.ok(1, Function::Allocate, Value::default(), Value { grants, ..Value::default() });
        let mut last = final_state("n1");
        last.allocations.push(allocation(5, "10.0.0.5/24", "p"));
        let mut record = Record { history: script.history(), finals: vec![last], ..Record::default() };
        assert_eq!(Conservation.check(&record).violations, 1);
        record.finals[0].allocations.push(allocation(6, "fd00::5/64", "p"));
        assert!(Conservation.check(&record).holds());
        record.finals[0].allocations.clear();
        assert!(Conservation.check(&record).holds());
    }
}
