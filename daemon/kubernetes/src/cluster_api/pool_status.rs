//! Status of a pool: conditions, and counts of the resource in ipamd.

use ipam_api::Problem;
use ipam_api::limits::KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX;
use ipam_api::name::Name;
use ipam_api::resource::Counts;
use ipam_api::time::Timestamp;
use serde_json::{Map, Value, json};

use super::claim_status::seconds;
use super::json::at;
use super::kind::PoolKind;
use super::pool::PoolFacts;
use crate::custom::message;

const READY: &str = "Ready";
const APPLIED: &str = "Applied";
/// Largest number of a status.
const COUNT_MAX: u64 = i64::MAX as u64;

/// Numbers of addresses or prefixes of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PoolCounts {
    pub(crate) total: u64,
    pub(crate) free: u64,
    pub(crate) used: u64,
    /// Allocated addresses or prefixes that the spec does not contain.
    pub(crate) out_of_range: u64,
}

impl PoolCounts {
    /// Numbers of addresses: those in any state in which the pool could allocate them add up to the total.
    pub(crate) fn of_addresses(counts: &Counts, planned: u64, out_of_range: u64) -> Self {
        let other = counts.cooling.saturating_add(counts.quarantined);
        let total = counts.free.saturating_add(counts.allocated).saturating_add(other);
        // A saturated count is replaced by the number that follows from the spec.
        let total = if counts.saturated { planned } else { total };
        let free = if counts.saturated { planned.saturating_sub(counts.allocated) } else { counts.free };
        Self { total, free, used: counts.allocated, out_of_range }
    }

    /// Numbers of prefixes.
    pub(crate) fn of_prefixes(total: u64, used: u64) -> Self {
        Self { total, free: total.saturating_sub(used), used, out_of_range: 0 }
    }
}

/// Status of a pool.
pub(crate) fn status(
    kind: PoolKind,
    facts: &PoolFacts,
    pool: Option<&Name>,
    refusal: Option<&Problem>,
    counts: Option<PoolCounts>,
    now: Timestamp,
) -> Value {
    let generation = facts.metadata.generation;
    let (state, reason, message) = match refusal {
        Some(problem) => ("False", problem.code.reason(), message(problem)),
        None => ("True", APPLIED.to_owned(), String::new()),
    };
    let message: String = message.chars().take(KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX).collect();
    let all = at(&facts.status, "/conditions").as_array().into_iter().flatten();
    let (was, others): (Vec<&Value>, Vec<&Value>) = all.partition(|one| one["type"] == READY);
    let was = was.first().filter(|was| was["status"] == state);
    let since = was.and_then(|was| was["lastTransitionTime"].as_str()).map(str::to_owned);
    let ready = json!({
        "type": READY, "status": state, "reason": reason, "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": since.unwrap_or_else(|| seconds(now)),
    });
    let conditions: Value = std::iter::once(ready).chain(others.into_iter().cloned()).collect();
    let mut status = Map::new();
    status.insert("conditions".to_owned(), conditions);
    status.insert("observedGeneration".to_owned(), generation.into());
    status.extend(pool.map(|pool| ("pool".to_owned(), pool.as_str().into())));
    if let Some(counts) = counts {
        let field = if kind.is_prefix() { "prefixes" } else { "ipAddresses" };
        let PoolCounts { total, free, used, out_of_range } = counts;
        let [total, free, used, out_of_range] =
            [total, free, used, out_of_range].map(|one| one.min(COUNT_MAX));
        let numbers = json!({"total": total, "free": free, "used": used, "outOfRange": out_of_range});
        status.insert(field.to_owned(), numbers);
    }
    Value::Object(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_add_up_to_the_total() {
        let counts = Counts {
            size: 20,
            allocated: 3,
            cooling: 2,
            quarantined: 1,
            reserved: 4,
            excluded: 5,
            free: 5,
            saturated: false,
        };
        let shown = PoolCounts::of_addresses(&counts, 7, 0);
        assert_eq!((shown.total, shown.free, shown.used), (11, 5, 3));
        let many = Counts { saturated: true, allocated: 3, ..counts };
        let shown = PoolCounts::of_addresses(&many, COUNT_MAX, 0);
        assert_eq!((shown.total, shown.free + shown.used), (COUNT_MAX, COUNT_MAX));
        assert_eq!(PoolCounts::of_prefixes(4, 5).free, 0);
    }
}
