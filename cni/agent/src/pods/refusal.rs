//! ADDs of pods that the agent doesn't know: refused, or allowed by a setting.

use ipam_api::problem::{Code, Problem};
use serde_json::{Map, Value};

use super::find::Wanted;

/// Fields of an interface that name pools.
const POOLS: [&str; 5] = ["subnets", "ipv4_pools", "ipv6_pools", "default_ipv4_pools", "default_ipv6_pools"];
/// Annotations that name pools or subnets for all interfaces.
const ANNOTATIONS: [&str; 4] = ["subnets", "subnet", "ippools", "ippool"];

/// Problem of an ADD whose pod is unknown.
#[must_use]
pub fn unknown(wanted: &Wanted, why: &str) -> Problem {
    let Wanted { namespace, name, .. } = wanted;
    Problem::new(
        Code::PodUnknown,
        format!("pod {namespace}/{name} is unknown to the agent of its node: {why}"),
    )
}

/// Returns true if each interface of the request names its pools, so that labels don't select them.
#[must_use]
pub fn is_allowed(body: &Map<String, Value>) -> bool {
    let annotations = body.get("annotations").and_then(Value::as_object);
    let is_annotated = annotations.is_some_and(|annotations| {
        let known = ANNOTATIONS.iter().map(|word| format!("{}{word}", ipam_api::annotations::PREFIX));
        known.into_iter().any(|key| annotations.contains_key(&key))
    });
    let has = |interface: &Value, field: &str| {
        interface.get(field).and_then(Value::as_array).is_some_and(|names| !names.is_empty())
    };
    let interfaces = body.get("interfaces").and_then(Value::as_array);
    let names_pools = |interface: &Value| POOLS.iter().any(|field| has(interface, field));
    is_annotated || interfaces.is_some_and(|all| !all.is_empty() && all.iter().all(names_pools))
}
