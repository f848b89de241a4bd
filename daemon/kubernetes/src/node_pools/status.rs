//! Status of an object: the offsets that are held, and the condition `Available` with the reasons of the
//! proposal for kubernetes-nmstate.

use std::collections::BTreeSet;

use ipam_api::address::offset::Offsets;
use ipam_api::limits::{JSON_INTEGER_MAX, NODE_POOL_OFFSETS_MAX};
use ipam_api::name::ObjectName;
use ipam_api::resource::{Allocation, IP_COLLISION, PoolStatus};
use ipam_api::time::Timestamp;
use ipam_api::{AddressRange, Code, Family, Problem};
use serde_json::{Map, Value, json};

use super::facts::PoolFacts;
use super::plan::Own;
use crate::custom::{condition, message};

/// Condition that every object has.
const AVAILABLE: &str = "Available";

/// Held addresses of a pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    /// Allocations, up to a limit.
    pub(crate) allocations: Vec<Allocation>,
    /// True if there are further allocations.
    pub(crate) has_more: bool,
}

/// Finding about an object.
#[derive(Debug, Clone)]
pub(crate) enum Shown<'a> {
    /// The object is being compared with the servers.
    Pending,
    /// The servers gave no answer for some time.
    Unreachable(&'a Problem),
    /// The object can't be applied. Other objects have addresses in common with it.
    Refused(&'a Problem, Vec<ObjectName>),
    /// The pool matches the object.
    Applied,
}

/// Status of an object with this pool. The condition keeps the time of its last transition.
pub(crate) fn status(
    facts: &PoolFacts,
    shown: &Shown<'_>,
    pool: Option<(&Own, &Held)>,
    former: &Value,
    now: Timestamp,
) -> Value {
    let mut fields = match (shown, former) {
        (Shown::Pending | Shown::Unreachable(_), Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    };
    if let (Some((own, held)), Shown::Refused(..) | Shown::Applied) = (pool, shown) {
        fields.extend(numbers(&own.row.spec.ranges, &own.status, held));
    }
    if !matches!(shown, Shown::Pending) {
        fields.insert("observedGeneration".to_owned(), facts.generation.into());
    }
    match &facts.reset {
        Some(reset) if matches!(shown, Shown::Applied | Shown::Refused(..)) => {
            fields.insert("observedReset".to_owned(), reset.as_str().into());
        }
        Some(_) => {}
        None => {
            fields.remove("observedReset");
        }
    }
    let (state, reason, text) = available(facts, shown, pool);
    let one = condition((former, facts.generation, now), AVAILABLE, state, reason, &text);
    fields.insert("conditions".to_owned(), json!([one]));
    Value::Object(fields)
}

/// Counts and offsets.
fn numbers(ranges: &[AddressRange], status: &PoolStatus, held: &Held) -> Map<String, Value> {
    let counts = status.counts;
    let mut fields = Map::new();
    fields.insert("cidr".to_owned(), status.cidr.to_string().into());
    fields.insert("total".to_owned(), counts.size.saturating_sub(counts.excluded).into());
    fields.insert("allocated".to_owned(), counts.allocated.into());
    fields.insert("free".to_owned(), counts.free.into());
    if held.has_more || counts.allocated > NODE_POOL_OFFSETS_MAX as u64 {
        fields.insert("truncated".to_owned(), true.into());
        return fields;
    }
    let of_pool = Offsets::new(Family::of(status.cidr.addr()), ranges);
    let offsets = held.allocations.iter().filter_map(|one| of_pool.offset(one.address.addr()));
    // JSON can't represent larger numbers exactly.
    let offsets = offsets.filter_map(|offset| u64::try_from(offset).ok());
    let offsets: BTreeSet<u64> = offsets.filter(|offset| *offset <= JSON_INTEGER_MAX).collect();
    fields.insert("allocatedOffsets".to_owned(), offsets.into_iter().collect());
    fields
}

/// Status, reason and message of the condition.
fn available(
    facts: &PoolFacts,
    shown: &Shown<'_>,
    pool: Option<(&Own, &Held)>,
) -> (&'static str, &'static str, String) {
    match shown {
        Shown::Pending => ("Unknown", "ReconcilingPool", "The pool is being updated".to_owned()),
        Shown::Unreachable(problem) => unsynchronized(problem),
        Shown::Refused(problem, others) if problem.code == Code::Overlap => {
            let first = others.first();
            let named = first.map(|other| format!("The NodeIPPool {other} is overlapping with this one. "));
            ("False", "OverlappingIPPool", named.unwrap_or_default() + &message(problem))
        }
        Shown::Refused(problem, _) => unsynchronized(problem),
        Shown::Applied => match pool {
            Some((own, held)) => of_pool(facts, own, held),
            None => ("Unknown", "ReconcilingPool", "The pool is being updated".to_owned()),
        },
    }
}

fn unsynchronized(problem: &Problem) -> (&'static str, &'static str, String) {
    let text = "Failed reconstructing the IP pool, it may be not in sync with nodes: ";
    ("False", "UnsyncronizedIPPool", text.to_owned() + &message(problem))
}

fn of_pool(facts: &PoolFacts, own: &Own, held: &Held) -> (&'static str, &'static str, String) {
    let collides = own.status.conditions.iter().find(|one| one.kind == IP_COLLISION && one.status == "True");
    if let Some(condition) = collides {
        let text = held.allocations.iter().find_map(|one| collision(one, &held.allocations));
        return ("False", "IPCollision", text.unwrap_or_else(|| condition.message.clone()));
    }
    let ready = own.status.conditions.iter().find(|one| one.kind == "Ready" && one.status == "False");
    match ready {
        Some(ready) if ready.reason == "Exhausted" => {
            let total = own.status.counts.size.saturating_sub(own.status.counts.excluded);
            let text = format!(
                "The IP pool has been depleted: none of {total} addresses is free. Manual intervention is \
                 needed: a larger range grows the pool in place, and held addresses stay."
            );
            ("False", "ExhaustedIPPool", text)
        }
        Some(ready) => {
            let text = "Failed reconstructing the IP pool, it may be not in sync with nodes: the pool is ";
            (
                "False",
                "UnsyncronizedIPPool",
                format!("{text}{}. {}", ready.reason.to_lowercase(), ready.message),
            )
        }
        None => {
            let range = facts.range.as_ref().ok();
            let hint = range.and_then(|range| Some((range.with_host_bits?, range.cidr)));
            let hint = hint.map_or_else(String::new, |(written, cidr)| {
                format!("; {written} has host bits, and the CIDR is {cidr}")
            });
            ("True", "ReconciledPool", format!("The pool is up to date{hint}"))
        }
    }
}

/// Sentence about an address for which another device answers.
fn collision(one: &Allocation, all: &[Allocation]) -> Option<String> {
    let mac = one.colliding?;
    let node = one.node.as_ref().unwrap_or(&one.endpoint.name);
    let other = all.iter().find(|other| other.mac.as_deref() == Some(mac.to_string().as_str()));
    let other = other.and_then(|other| other.node.as_ref());
    let with = other.map_or_else(|| format!("the device {mac}"), |node| format!("node {node} ({mac})"));
    let (address, interface) = (one.address.addr(), &one.interface);
    Some(format!(
        "The IP address {address} at node {node} and interface {interface} is colliding with {with}"
    ))
}

#[cfg(test)]
mod tests {
    use ipam_api::client::Expect;

    use super::super::plan::{Known, Step, plan};
    use super::*;
    use crate::custom::CustomObject;
    use crate::mirror::Row;

    fn facts(range: Value, reset: Option<&str>) -> PoolFacts {
        let annotations = reset.map(|value| json!({"nmstate.io/reset-ippool": value}));
        let object = json!({
            "metadata": {"name": "traffic-1", "uid": "u", "generation": 3, "annotations": annotations},
            "spec": {"range": range},
        });
        let object: CustomObject = serde_json::from_value(object).unwrap();
        PoolFacts::of(object).unwrap().1
    }

    /// Pool of an object as the servers would have it.
    fn own(facts: &PoolFacts, free: u64, conditions: Value) -> Own {
        let name = ObjectName::new("traffic-1").unwrap();
        let objects = [(name.clone(), facts.range.clone().unwrap())].into();
        let known = Known { manager: "m", objects, subnets: &[].into(), pools: &[].into() };
        let spec = plan(&known, |_| false).into_iter().find_map(|step| match step {
            Step::PutPool(_, spec, Expect::Absent) => Some(*spec),
            _ => None,
        });
        let status = serde_json::from_value(json!({
            "revision": 9, "family": 4, "cidr": facts.range.as_ref().unwrap().cidr, "conditions": conditions,
            "counts": {"size": 10, "allocated": 6, "cooling": 0, "quarantined": 0, "reserved": 0,
                       "excluded": 2, "free": free, "saturated": false},
        }));
        Own { row: Row { spec: spec.unwrap(), revision: 7 }, status: status.unwrap() }
    }

    fn held(addresses: &[&str]) -> Held {
        let one = |address: &&str| {
            serde_json::from_value(json!({
                "id": 1, "address": format!("{address}/24"), "network": "default", "subnet": "lan",
                "pool": "traffic-1", "interface": "eth1", "node": "n1", "lifecycle": "held", "checked": false,
                "endpoint": {"realm": "prod", "kind": "host", "namespace": "static-ip", "name": "n1"},
                "created_at": "2026-01-01T00:00:00Z", "created_by": "x",
            }))
            .unwrap()
        };
        Held { allocations: addresses.iter().map(one).collect(), has_more: false }
    }

    fn shown(facts: &PoolFacts, shown: &Shown<'_>, pool: Option<(&Own, &Held)>, former: &Value) -> Value {
        status(facts, shown, pool, former, Timestamp(1000))
    }

    fn reason(status: &Value) -> (&str, &str) {
        let one = &status["conditions"][0];
        (one["status"].as_str().unwrap(), one["reason"].as_str().unwrap())
    }

    #[test]
    fn n5_1_offsets_of_the_first_two_examples_of_the_proposal_are_as_printed() {
        let examples = [
            ("10.10.10.0/24", "10.10.10.1", "10.10.10.10", ["10.10.10.4", "10.10.10.7"], "10.10.10."),
            ("10.10.11.0/24", "10.10.11.1", "10.10.11.10", ["10.10.11.4", "10.10.11.7"], "10.10.11."),
        ];
        for (cidr, start, end, exclude, prefix) in examples {
            let facts = facts(json!({"cidr": cidr, "start": start, "end": end, "exclude": exclude}), None);
            let own = own(&facts, 2, json!([]));
            let addresses = ["8", "1", "2", "3", "5", "6"].map(|last| format!("{prefix}{last}"));
            let held = held(&addresses.each_ref().map(String::as_str));
            let status = shown(&facts, &Shown::Applied, Some((&own, &held)), &Value::Null);
            assert_eq!(status["allocatedOffsets"], json!([0, 1, 2, 4, 5, 7]));
            assert_eq!((&status["total"], &status["allocated"]), (&json!(8), &json!(6)));
            assert_eq!(reason(&status), ("True", "ReconciledPool"));
            assert_eq!(status["conditions"][0]["message"], "The pool is up to date");
        }
    }

    #[test]
    fn n5_1_offsets_of_the_wide_example_skip_the_ends_of_blocks_and_ipv6_is_plain() {
        let wide = json!({"cidr": "10.10.11.0/16", "start": "10.10.11.4", "end": "10.10.12.10",
                          "exclude": ["10.10.11.5", "10.10.12.7"]});
        let facts = facts(wide, None);
        let own = own(&facts, 2, json!([]));
        let addresses = [
            "10.10.11.4",
            "10.10.11.254",
            "10.10.12.1",
            "10.10.12.2",
            "10.10.12.8",
            "10.10.12.9",
            "10.10.12.10",
        ];
        let status = shown(&facts, &Shown::Applied, Some((&own, &held(&addresses))), &Value::Null);
        assert_eq!(status["allocatedOffsets"], json!([0, 250, 251, 252, 258, 259, 260]));
        let message = status["conditions"][0]["message"].as_str().unwrap();
        assert!(message.ends_with("10.10.11.0/16 has host bits, and the CIDR is 10.10.0.0/16"), "{message}");
        let ipv6: AddressRange = "2001:4860:4860::f-2001:4860:4860::ff".parse().unwrap();
        let ipv6 = Offsets::new(Family::V6, &[ipv6]);
        for (address, offset) in [("::f", 0), ("::10", 1), ("::1f", 16), ("::20", 17), ("::ff", 240)] {
            let address = format!("2001:4860:4860{address}").parse().unwrap();
            assert_eq!(ipv6.offset(address), Some(offset));
        }
    }

    #[test]
    fn n5_3_each_reason_has_its_status_and_its_message() {
        let facts = facts(json!({"cidr": "10.10.10.0/24"}), None);
        let condition = |kind: &str, status: &str, reason: &str| {
            json!([{"type": kind, "status": status, "reason": reason, "message": "m",
                    "since": "2026-01-01T00:00:00Z"}])
        };
        let fine = own(&facts, 4, condition("Ready", "True", "Serving"));
        let exhausted = own(&facts, 0, condition("Ready", "False", "Exhausted"));
        let disabled = own(&facts, 0, condition("Ready", "False", "Disabled"));
        let colliding = own(&facts, 4, condition("IPCollision", "True", "TwoStations"));
        let mut held = held(&["10.10.10.8", "10.10.10.9"]);
        held.allocations[0].colliding = Some("02:00:00:00:00:09".parse().unwrap());
        let overlap = Problem::new(Code::Overlap, "10.10.10.1 overlaps with pool traffic-2");
        let no_leader = Problem::new(Code::NoLeader, "no leader");
        let others = vec![ObjectName::new("traffic-2").unwrap()];
        let cases = [
            (Shown::Pending, None, ("Unknown", "ReconcilingPool"), "being updated"),
            (Shown::Applied, Some(&fine), ("True", "ReconciledPool"), "up to date"),
            (Shown::Applied, Some(&exhausted), ("False", "ExhaustedIPPool"), "none of 8 addresses is free"),
            (Shown::Unreachable(&no_leader), None, ("False", "UnsyncronizedIPPool"), "no leader"),
            (Shown::Applied, Some(&disabled), ("False", "UnsyncronizedIPPool"), "disabled"),
            (
                Shown::Refused(&overlap, others),
                None,
                ("False", "OverlappingIPPool"),
                "The NodeIPPool traffic-2 is overlapping with this one. 10.10.10.1 overlaps",
            ),
            (
                Shown::Applied,
                Some(&colliding),
                ("False", "IPCollision"),
                "The IP address 10.10.10.8 at node n1 and interface eth1 is colliding with the device \
                 02:00:00:00:00:09",
            ),
        ];
        for (finding, pool, expected, text) in cases {
            let status = shown(&facts, &finding, pool.map(|own| (own, &held)), &Value::Null);
            assert_eq!(reason(&status), expected, "{status}");
            let message = status["conditions"][0]["message"].as_str().unwrap();
            assert!(message.contains(text), "{message}");
        }
        held.allocations[1].mac = Some("02:00:00:00:00:09".to_owned());
        held.allocations[1].node = Some(ObjectName::new("n2").unwrap());
        let status = shown(&facts, &Shown::Applied, Some((&colliding, &held)), &Value::Null);
        let message = status["conditions"][0]["message"].as_str().unwrap();
        assert!(message.contains("colliding with node n2"), "{message}");
    }

    #[test]
    fn a_reset_is_observed_once_it_is_compared_and_offsets_are_bounded() {
        let facts = facts(json!({"cidr": "10.10.10.0/24"}), Some(""));
        let (own, few) = (own(&facts, 4, json!([])), held(&["10.10.10.1"]));
        let first = shown(&facts, &Shown::Applied, Some((&own, &few)), &Value::Null);
        assert_eq!(first["observedReset"], "");
        let again = PoolFacts { reset: Some("2".to_owned()), status: first.clone(), ..facts.clone() };
        assert!(again.is_pending() && !PoolFacts { status: first.clone(), ..facts.clone() }.is_pending());
        let pending = shown(&again, &Shown::Pending, None, &first);
        assert_eq!(reason(&pending), ("Unknown", "ReconcilingPool"));
        assert_eq!((&pending["observedReset"], &pending["allocatedOffsets"]), (&json!(""), &json!([0])));
        let many = Held { has_more: true, ..few };
        let status = shown(&facts, &Shown::Applied, Some((&own, &many)), &first);
        assert_eq!((&status["truncated"], status.get("allocatedOffsets")), (&json!(true), None));
    }
}
