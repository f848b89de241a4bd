//! Status of a claim, in both versions of the contract.
//!
//! Each version has two families of conditions: those of `metav1`, and the former ones of Cluster API. Both
//! are written, so that a consumer of either version and either family sees the same.

use ipam_api::limits::KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX;
use ipam_api::name::ObjectName;
use ipam_api::time::Timestamp;
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::claim::ClaimFacts;
use super::json::at;

const READY: &str = "Ready";
/// Reason of a fulfilled claim.
const ALLOCATED: &str = "Allocated";
/// Newest version of the contract.
const V1BETA2: &str = "v1beta2";

/// State of a claim as its status shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The address exists.
    Allocated,
    /// There is no address, for this reason.
    Unfulfilled { reason: &'static str, message: String },
}

/// No pool of the claim has a free address.
pub(crate) const POOL_EXHAUSTED: &str = "PoolExhausted";
/// The pool allocates nothing now.
pub(crate) const POOL_NOT_READY: &str = "PoolNotReady";
/// Any other refusal.
pub(crate) const ALLOCATION_FAILED: &str = "AllocationFailed";

/// Status that a claim should have. Conditions of other controllers stay.
pub(crate) fn status(
    resource: &ApiResource,
    name: &ObjectName,
    claim: &ClaimFacts,
    shown: &Shown,
    now: Timestamp,
) -> Value {
    let former = &claim.status;
    let is_new = resource.version == V1BETA2;
    let (of_metav1, of_cluster_api) = match is_new {
        true => ("/conditions", "/deprecated/v1beta1/conditions"),
        false => ("/v1beta2/conditions", "/conditions"),
    };
    let (of_metav1, of_cluster_api) = (at(former, of_metav1), at(former, of_cluster_api));
    let metav1 = with_ready(of_metav1, now, |since| {
        let (state, reason, message) = match shown {
            Shown::Allocated => ("True", ALLOCATED, ""),
            Shown::Unfulfilled { reason, message } => ("False", *reason, message.as_str()),
        };
        json!({
            "type": READY, "status": state, "reason": reason, "message": short(message),
            "observedGeneration": claim.metadata.generation, "lastTransitionTime": since,
        })
    });
    let cluster_api = with_ready(of_cluster_api, now, |since| match shown {
        Shown::Allocated => json!({"type": READY, "status": "True", "lastTransitionTime": since}),
        Shown::Unfulfilled { reason, message } => json!({
            "type": READY, "status": "False", "severity": "Warning", "reason": reason,
            "message": short(message), "lastTransitionTime": since,
        }),
    });
    let mut status = former.as_object().cloned().unwrap_or_default();
    if *shown == Shown::Allocated {
        status.insert("addressRef".to_owned(), json!({"name": name}));
    } else if at(former, "/addressRef/name") != "" {
        // In v1beta1, an empty reference means that there is no address.
        status.remove("addressRef");
    }
    if is_new {
        status.insert("conditions".to_owned(), metav1);
        status.insert("deprecated".to_owned(), json!({"v1beta1": {"conditions": cluster_api}}));
    } else {
        status.insert("conditions".to_owned(), cluster_api);
        status.insert("v1beta2".to_owned(), json!({"conditions": metav1}));
    }
    Value::Object(status)
}

fn short(message: &str) -> String {
    message.chars().take(KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX).collect()
}

/// Conditions with a new `Ready`, which keeps its time until its status changes.
fn with_ready(former: &Value, now: Timestamp, ready: impl Fn(&str) -> Value) -> Value {
    let all = former.as_array().into_iter().flatten();
    let (was, others): (Vec<&Value>, Vec<&Value>) = all.partition(|one| one["type"] == READY);
    let now = seconds(now);
    let fresh = ready(&now);
    let was = was.first().filter(|was| at(was, "/status") == at(&fresh, "/status"));
    let since = was.and_then(|was| at(was, "/lastTransitionTime").as_str());
    let ready = since.map_or(fresh, ready);
    std::iter::once(ready).chain(others.into_iter().cloned()).collect()
}

/// Time in seconds, as `metav1.Time` has it.
pub(crate) fn seconds(at: Timestamp) -> String {
    Timestamp(at.0 / 1000 * 1000).to_string().replace(".000Z", "Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_api::address::CONTRACT_GROUP;
    use kube::api::DynamicObject;

    fn resource(version: &str) -> ApiResource {
        ApiResource {
            group: CONTRACT_GROUP.to_owned(),
            version: version.to_owned(),
            api_version: format!("{CONTRACT_GROUP}/{version}"),
            kind: "IPAddressClaim".to_owned(),
            plural: "ipaddressclaims".to_owned(),
        }
    }

    fn claim(status: Value) -> ClaimFacts {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "m-0", "namespace": "shop", "uid": "u", "generation": 3},
            "spec": {"poolRef": {"apiGroup": "ipam.ipamd.internal", "kind": "IPPool", "name": "web"}},
            "status": status,
        }))
        .unwrap();
        ClaimFacts::of(object, None).unwrap().1
    }

    fn full() -> Shown {
        Shown::Unfulfilled { reason: POOL_EXHAUSTED, message: "no address is free".to_owned() }
    }

    #[test]
    fn both_versions_show_both_families() {
        let name = ObjectName::new("m-0").unwrap();
        let of = |version, shown: &Shown| {
            status(&resource(version), &name, &claim(json!({})), shown, Timestamp(1999))
        };
        let since = "1970-01-01T00:00:01Z";
        let metav1 = json!([{
            "type": "Ready", "status": "False", "reason": "PoolExhausted", "message": "no address is free",
            "observedGeneration": 3, "lastTransitionTime": since,
        }]);
        let cluster_api = json!([{
            "type": "Ready", "status": "False", "severity": "Warning", "reason": "PoolExhausted",
            "message": "no address is free", "lastTransitionTime": since,
        }]);
        let new = json!({"conditions": metav1, "deprecated": {"v1beta1": {"conditions": cluster_api}}});
        let old = json!({"conditions": cluster_api, "v1beta2": {"conditions": metav1}});
        assert_eq!((of("v1beta2", &full()), of("v1beta1", &full())), (new, old));
        let ready = of("v1beta2", &Shown::Allocated);
        assert_eq!(ready["addressRef"], json!({"name": "m-0"}));
        let condition = &ready["conditions"][0];
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("Allocated")));
    }

    #[test]
    fn a_condition_keeps_its_time_and_those_of_others() {
        let name = ObjectName::new("m-0").unwrap();
        let next = |former: &Value, shown: &Shown, at| {
            status(&resource("v1beta2"), &name, &claim(former.clone()), shown, Timestamp(at))
        };
        let other = json!({"type": "Paused", "status": "False"});
        let mut first = next(&json!({"conditions": [other]}), &full(), 1000);
        assert_eq!(first["conditions"][1], other);
        assert_eq!(next(&first, &full(), 5000), first);
        // Without a difference there is no write.
        for version in ["v1beta1", "v1beta2"] {
            let of = |former: &Value, at| {
                status(&resource(version), &name, &claim(former.clone()), &full(), Timestamp(at))
            };
            let shown = of(&json!({"addressRef": {"name": ""}}), 1000);
            assert_eq!(of(&shown, 9000), shown, "{version}");
        }
        first = next(&first, &Shown::Allocated, 7000);
        assert_eq!(first["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:07Z");
    }
}
