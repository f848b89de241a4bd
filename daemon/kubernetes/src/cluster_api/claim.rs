//! Claims of a management cluster.

use ipam_api::brand::CLUSTER_API_ADDRESS;
use ipam_api::limits::KUBERNETES_CUSTOM_STATUS_BYTES_MAX;
use ipam_api::name::ObjectName;
use ipam_api::resource::Labels;
use ipam_api::selector::check_label;
use kube::api::DynamicObject;
use serde_json::Value;

use super::json::{at, take};
use super::kind::PoolKey;
use super::metadata::{CLUSTER_NAME, Key, Metadata, is_selected, key, label};
use crate::custom::length;

/// Maximum number of characters that are kept of a requested address.
const REQUESTED_CHARS_MAX: usize = 128;

/// Claim for an address or a prefix of a pool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClaimFacts {
    pub(crate) metadata: Metadata,
    pub(crate) pool: PoolKey,
    /// Cluster that the claim belongs to.
    pub(crate) cluster: Option<ObjectName>,
    /// Labels by which pools select.
    pub(crate) labels: Labels,
    /// Requested address, as the annotation has it.
    pub(crate) requested: Option<String>,
    /// Present status; null if it is too long to compare.
    pub(crate) status: Value,
}

impl ClaimFacts {
    /// Key and facts of a claim; none if another provider serves it.
    pub(crate) fn of(object: DynamicObject, filter: Option<&str>) -> Option<(Key, Self)> {
        let DynamicObject { metadata: meta, mut data, .. } = object;
        let key = key(&meta)?;
        let pool = PoolKey::referred(at(&data, "/spec/poolRef"), &key.0)?;
        if !is_selected(&meta, filter) {
            return None;
        }
        let named = at(&data, "/spec/clusterName").as_str().filter(|name| !name.is_empty());
        let cluster = named.or_else(|| label(&meta, CLUSTER_NAME));
        let cluster = cluster.and_then(|name| ObjectName::new(name).ok());
        let status = take(&mut data, "status");
        let is_short = length(&status) <= KUBERNETES_CUSTOM_STATUS_BYTES_MAX;
        let annotations = meta.annotations.as_ref();
        let facts = Self {
            pool,
            cluster,
            requested: annotations.and_then(|all| all.get(CLUSTER_API_ADDRESS)).map(|text| short(text)),
            metadata: Metadata::of(&meta),
            labels: usable(meta.labels.unwrap_or_default()),
            status: if is_short { status } else { Value::Null },
        };
        Some((key, facts))
    }

    /// Name of the address in the status; none without one. v1beta1 then has a reference with an empty name.
    pub(crate) fn address_ref(&self) -> Option<&str> {
        at(&self.status, "/addressRef/name").as_str().filter(|name| !name.is_empty())
    }
}

/// Beginning of a text. A longer text is no address, so its rest need not be kept for each claim.
fn short(text: &str) -> String {
    text.chars().take(REQUESTED_CHARS_MAX).collect()
}

/// Labels that the servers accept.
fn usable(labels: Labels) -> Labels {
    let usable = labels.into_iter().filter(|(key, value)| check_label(key, value).is_ok());
    usable.take(ipam_api::limits::LABELS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(object: Value, filter: Option<&str>) -> Option<ClaimFacts> {
        let object = serde_json::from_value(object).unwrap();
        ClaimFacts::of(object, filter).map(|(_, facts)| facts)
    }

    fn claim(metadata: &Value, spec: &Value) -> Value {
        let mut object = json!({
            "metadata": {"name": "m-0", "namespace": "shop", "uid": "u"},
            "spec": {"poolRef": {"apiGroup": "ipam.ipamd.internal", "kind": "IPPool", "name": "web"}},
        });
        for (field, more) in [("metadata", metadata), ("spec", spec)] {
            object[field].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        object
    }

    #[test]
    fn the_cluster_is_in_the_spec_or_else_in_the_label() {
        let labels = json!({"labels": {CLUSTER_NAME: "labelled"}});
        for (metadata, spec, cluster) in [
            (json!({}), json!({}), None),
            (json!({}), json!({"clusterName": "named"}), Some("named")),
            (labels.clone(), json!({"clusterName": "named"}), Some("named")),
            (labels.clone(), json!({"clusterName": ""}), Some("labelled")),
            (labels, json!({}), Some("labelled")),
        ] {
            let facts = read(claim(&metadata, &spec), None).unwrap();
            assert_eq!(facts.cluster.as_ref().map(ObjectName::as_str), cluster, "{metadata} {spec}");
        }
    }

    #[test]
    fn claims_of_other_providers_and_other_filters_are_ignored() {
        let reference = json!({"poolRef": {"apiGroup": "x", "kind": "IPPool", "name": "web"}});
        assert_eq!(read(claim(&json!({}), &reference), None), None);
        let labels = json!({"labels": {"cluster.x-k8s.io/watch-filter": "blue"}});
        assert!(read(claim(&labels, &json!({})), Some("blue")).is_some());
        assert!(read(claim(&labels, &json!({})), None).is_some());
        assert_eq!(read(claim(&labels, &json!({})), Some("green")), None);
        assert_eq!(read(claim(&json!({}), &json!({})), Some("blue")), None);
    }

    #[test]
    fn unusable_labels_and_a_long_status_are_left_out() {
        let labels = json!({"labels": {"app": "web", "é": "x", "long": "x".repeat(5000)}});
        let mut object = claim(&labels, &json!({}));
        object["status"] = json!({"x": "y".repeat(1 << 20)});
        let facts = read(object, None).unwrap();
        assert_eq!(facts.labels.into_keys().collect::<Vec<_>>(), ["app"]);
        assert_eq!(facts.status, Value::Null);
    }
}
