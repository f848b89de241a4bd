//! Status of an object: conditions, and the counts of its resource.

use ipam_api::Problem;
use ipam_api::limits::KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX;
use ipam_api::resource::Condition;
use ipam_api::time::Timestamp;
use serde_json::{Map, Value, json};

use super::kind::CustomKind;
use crate::host_policies::Rollout;

/// Condition that every object has.
const READY: &str = "Ready";
/// Condition for the roll-out of a resource.
const AVAILABLE: &str = "Available";
/// Reason of a resource that has no conditions of its own.
const APPLIED: &str = "Applied";

/// Result for one generation of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// Refusal; none if the resource matches the object.
    pub(crate) refusal: Option<Problem>,
}

/// Status of an object with this resource. Conditions keep the time of their last transition.
pub(crate) fn status<K: CustomKind>(
    decision: &Decision,
    resource: Option<&K::Status>,
    rollout: Option<&Rollout>,
    (former, now): (&Value, Timestamp),
) -> Value {
    let mut status = match resource.map(K::shown) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let generation = decision.generation;
    let condition = |kind: &str, state: &str, reason: &str, message: &str| {
        condition((former, generation, now), kind, state, reason, message)
    };
    let own = resource.map(K::conditions).unwrap_or_default();
    let of_resource = |one: &Condition| condition(&one.kind, &one.status, &one.reason, &one.message);
    let ready = match (&decision.refusal, own.iter().find(|one| one.kind == READY)) {
        (Some(problem), _) => condition(READY, "False", &problem.code.reason(), &message(problem)),
        (None, Some(ready)) => of_resource(ready),
        (None, None) => condition(READY, "True", APPLIED, ""),
    };
    let others = own.iter().filter(|one| one.kind != READY).map(of_resource);
    let progress =
        rollout.map(|rollout| condition(AVAILABLE, rollout.status, &rollout.reason, &rollout.message));
    status.extend(rollout.map(|rollout| rollout.fields.clone()).unwrap_or_default());
    status.insert("conditions".to_owned(), [ready].into_iter().chain(others).chain(progress).collect());
    status.insert("observedGeneration".to_owned(), generation.into());
    Value::Object(status)
}

/// Condition of an object. It keeps the time of its last transition, which the former status shows.
pub(crate) fn condition(
    (former, generation, now): (&Value, i64, Timestamp),
    kind: &str,
    state: &str,
    reason: &str,
    message: &str,
) -> Value {
    let was = former["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == kind);
    let since = was.filter(|was| was["status"] == state).and_then(|was| was["lastTransitionTime"].as_str());
    let message: String = message.chars().take(KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX).collect();
    json!({
        "type": kind, "status": state, "reason": reason, "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": since.map_or_else(|| now.to_string(), str::to_owned),
    })
}

/// Text of a problem, with the place in the spec and the remedy.
pub(crate) fn message(problem: &Problem) -> String {
    let place = problem.errors.first().filter(|error| !error.pointer.is_empty());
    let place = place.map_or_else(String::new, |error| format!("{}: ", error.pointer));
    format!("{place}{}. {}", problem.detail.trim_end_matches('.'), problem.help)
}

/// Merge patch (RFC 7396) from one value to another.
pub(crate) fn changes(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else { return to.clone() };
    let removed = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(*value));
    let changed = changed.map(|(key, value)| {
        let change = old.get(key).map_or_else(|| value.clone(), |old| changes(old, value));
        (key.clone(), change)
    });
    Value::Object(removed.chain(changed).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use ipam_api::Code;
    use ipam_api::resource::{PoolStatus, ReservationStatus};

    use super::super::pool::Pools;
    use super::super::reservation::Reservations;
    use super::*;

    fn decision(refusal: Option<Problem>) -> Decision {
        Decision { uid: "u".to_owned(), generation: 3, refusal }
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let refused = decision(Some(Problem::new(Code::NotFound, "subnet lan does not exist").at("/subnet")));
        let first = status::<Pools>(&refused, None, None, (&Value::Null, Timestamp(1000)));
        assert_eq!(
            first,
            json!({"observedGeneration": 3, "conditions": [{
                "type": "Ready", "status": "False", "reason": "NotFound", "observedGeneration": 3,
                "message": "/subnet: subnet lan does not exist. Check the name against the list of existing \
                            resources.",
                "lastTransitionTime": "1970-01-01T00:00:01.000Z",
            }]})
        );
        let again = status::<Pools>(&refused, None, None, (&first, Timestamp(2000)));
        assert_eq!(again, first);
        let held = ReservationStatus { held: 2, conflicts: Vec::new() };
        let ready = status::<Reservations>(&decision(None), Some(&held), None, (&first, Timestamp(3000)));
        let condition = &ready["conditions"][0];
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("Applied")));
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:03.000Z");
        assert_eq!(ready["held"], 2);
    }

    #[test]
    fn a_pool_has_its_own_conditions_and_counts() {
        let pool: PoolStatus = serde_json::from_value(json!({
            "revision": 9, "family": 4, "cidr": "10.0.0.0/24",
            "counts": {"size": 5, "allocated": 5, "cooling": 0, "quarantined": 0, "reserved": 0,
                       "excluded": 0, "free": 0, "saturated": false},
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "Exhausted", "message": "0 free of 5",
                 "since": "2026-01-01T00:00:00Z"},
                {"type": "IPCollision", "status": "True", "reason": "TwoStations", "message": "m",
                 "since": "2026-01-01T00:00:00Z"},
            ],
        }))
        .unwrap();
        let shown = status::<Pools>(&decision(None), Some(&pool), None, (&Value::Null, Timestamp(0)));
        assert_eq!(shown["counts"]["allocated"], 5);
        assert!(shown.get("revision").is_none(), "it changes with every command");
        let reasons: Vec<_> =
            shown["conditions"].as_array().unwrap().iter().map(|one| one["reason"].clone()).collect();
        assert_eq!(reasons, ["Exhausted", "TwoStations"]);
    }

    #[test]
    fn a_merge_patch_has_the_differences_only() {
        let from = json!({"a": 1, "b": {"c": 2, "d": [3]}, "e": 4});
        let to = json!({"a": 1, "b": {"c": 5, "d": [3]}, "f": 6});
        assert_eq!(changes(&from, &to), json!({"b": {"c": 5}, "e": null, "f": 6}));
        assert_eq!(changes(&Value::Null, &to), to);
        assert_eq!(changes(&to, &to), json!({}));
    }
}
