//! Rules of the validating webhooks.

use std::net::IpAddr;

use serde_json::Value;

use super::conversion::convert;
use crate::custom::{Cause, Reason};
use crate::path::Place;
use crate::server::State;
use crate::status::Refusal;
use crate::store::Key;

/// Version in which the webhooks see objects.
const VERSION: &str = "v1beta2";

/// Reviews a new or changed object. The webhooks see no writes of a status.
///
/// # Errors
/// 403 with the message of the webhook.
pub(crate) fn review(
    state: &State,
    place: &Place,
    present: Option<&Value>,
    object: &Value,
) -> Result<(), Refusal> {
    let kind = place.resource.kind.as_str();
    let is_reviewed = place.custom.as_ref().is_some_and(|custom| custom.has_webhook);
    if !is_reviewed || place.subresource.is_some() || !["IPAddress", "IPAddressClaim"].contains(&kind) {
        return Ok(());
    }
    let hub = |object: &Value| {
        let mut object = object.clone();
        convert(&mut object, VERSION);
        object
    };
    let object = hub(object);
    let causes = match (present.map(hub), kind) {
        (Some(present), _) => changed(kind, &present["spec"], &object["spec"]).into_iter().collect(),
        (None, "IPAddress") => new_address(state, place, &object["spec"]),
        (None, _) => Vec::new(),
    };
    let texts: Vec<String> = causes.iter().map(Cause::text).collect();
    let why = match texts.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    let webhook = format!("validation.{}.ipam.cluster.x-k8s.io", kind.to_lowercase());
    Err(Refusal::new(403, format!("admission webhook {webhook:?} denied the request: {why}")))
}

fn changed(kind: &str, before: &Value, after: &Value) -> Option<Cause> {
    if before == after {
        return None;
    }
    let why = format!("Forbidden: {kind} spec is immutable. Diff: {}", difference(before, after));
    Some(Cause::new(Reason::Forbidden, "spec", why))
}

/// Fields that differ, with a line for each side.
fn difference(before: &Value, after: &Value) -> String {
    let fields = |side: &Value| side.as_object().cloned().unwrap_or_default();
    let (before, after) = (fields(before), fields(after));
    let mut lines = vec!["{".to_owned()];
    for (sign, one, other) in [('-', &before, &after), ('+', &after, &before)] {
        let differing = one.iter().filter(|(name, value)| other.get(*name) != Some(value));
        lines.extend(differing.map(|(name, value)| format!("{sign} {name}: {value},")));
    }
    lines.push("}".to_owned());
    lines.join("\n")
}

fn new_address(state: &State, place: &Place, spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let address = spec["address"].as_str().and_then(parsed);
    if address.is_none() {
        causes.push(Cause::invalid("spec.address", &spec["address"], "not a valid IP address"));
    }
    let prefix = spec["prefix"].as_i64().unwrap_or_default();
    let why = match address {
        _ if prefix < 0 => Some("prefix cannot be negative"),
        Some(IpAddr::V4(_)) if prefix > 32 => Some("prefix is too large for an IPv4 address"),
        Some(IpAddr::V6(_)) if prefix > 128 => Some("prefix is too large for an IPv6 address"),
        _ => None,
    };
    causes.extend(why.map(|why| Cause::invalid("spec.prefix", &spec["prefix"], why)));
    if spec["gateway"].as_str().is_some_and(|gateway| parsed(gateway).is_none()) {
        causes.push(Cause::invalid("spec.gateway", &spec["gateway"], "not a valid IP address"));
    }
    // The claim may be absent, as while objects move to another cluster.
    let claim = Key {
        group: place.resource.group.clone(),
        plural: "ipaddressclaims".to_owned(),
        namespace: place.namespace.clone().unwrap_or_default(),
        name: spec["claimRef"]["name"].as_str().unwrap_or_default().to_owned(),
    };
    if let Some(mut claim) = state.store.objects.get(&claim).cloned() {
        convert(&mut claim, VERSION);
        let (pool, wanted) = (&spec["poolRef"], &claim["spec"]["poolRef"]);
        if ["apiGroup", "kind", "name"].iter().any(|field| pool[field] != wanted[field]) {
            let why = "the referenced pool is different from the pool referenced by the claim this address \
                       should fulfill";
            causes.push(Cause::invalid("spec.poolRef", pool, why));
        }
    }
    causes
}

/// Parses an address; an IPv6 address may have a zone.
fn parsed(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((address, zone)) => {
            address.parse().ok().filter(|address: &IpAddr| address.is_ipv6() && !zone.is_empty())
        }
        None => text.parse().ok(),
    }
}
