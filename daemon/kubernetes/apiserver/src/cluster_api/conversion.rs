//! Conversion of objects between the versions, as the conversion webhook makes it.
//!
//! The two families of conditions are kept apart: conditions of one family never become those of the other.

use serde_json::{Map, Value, json};

use super::definitions::KINDS;

/// Service of the webhooks.
pub(super) const WEBHOOK: &str = "capi-webhook-service";

/// Returns true for a definition whose objects the webhook converts.
pub(crate) fn converts(definition: &Value) -> bool {
    let spec = &definition["spec"];
    let is_known = |(group, plural, _): &(&str, &str, &str)| {
        spec["group"] == *group && spec["names"]["plural"] == *plural
    };
    spec["conversion"]["webhook"]["clientConfig"]["service"]["name"] == WEBHOOK && KINDS.iter().any(is_known)
}

/// Converts an object to a version of its group. An object of that version stays as it is.
pub(crate) fn convert(object: &mut Value, version: &str) {
    let Some((group, from)) = object["apiVersion"].as_str().and_then(|text| text.split_once('/')) else {
        return;
    };
    if from == version {
        return;
    }
    let api_version = format!("{group}/{version}");
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    match version {
        "v1beta1" => downgrade(object, &kind),
        _ => upgrade(object, &kind),
    }
    object["apiVersion"] = api_version.into();
}

/// Converts from `v1beta1` to `v1beta2`.
fn upgrade(object: &mut Value, kind: &str) {
    if let Some(spec) = object.get_mut("spec").filter(|_| kind != "Cluster") {
        if let Some(reference) = spec.get_mut("poolRef").and_then(Value::as_object_mut) {
            remove_empty(reference, "apiGroup");
        }
        if let Some(spec) = spec.as_object_mut() {
            remove_empty(spec, "gateway");
        }
    }
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let (legacy, new) = (taken(status, &["conditions"]), taken(status, &["v1beta2", "conditions"]));
    put(status, &["conditions"], new);
    put(status, &["deprecated", "v1beta1", "conditions"], legacy);
    if kind == "IPAddressClaim" {
        if let Some(reference) = status.get_mut("addressRef").and_then(Value::as_object_mut) {
            remove_empty(reference, "name");
        }
        status.retain(|_, value| *value != json!({}));
        if status.is_empty()
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
    }
}

/// Converts from `v1beta2` to `v1beta1`.
fn downgrade(object: &mut Value, kind: &str) {
    if kind == "IPAddressClaim" && object["status"].is_null() {
        object["status"] = json!({});
    }
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let legacy = taken(status, &["deprecated", "v1beta1", "conditions"]);
    let new = taken(status, &["conditions"]);
    put(status, &["conditions"], legacy);
    put(status, &["v1beta2", "conditions"], new);
    if kind == "IPAddressClaim" {
        // The older version has a reference without a name in place of none.
        status.entry("addressRef").or_insert_with(|| json!({}));
    }
}

/// Removes a field that is absent, empty or null in the other version.
fn remove_empty(fields: &mut Map<String, Value>, name: &str) {
    if fields.get(name).is_some_and(|value| value.is_null() || *value == "") {
        fields.remove(name);
    }
}

/// Takes the value at a path, and removes the objects that are empty without it.
fn taken(fields: &mut Map<String, Value>, path: &[&str]) -> Option<Value> {
    match path {
        [] => None,
        [name] => fields.remove(*name).filter(|value| !value.is_null()),
        [name, rest @ ..] => {
            let below = fields.get_mut(*name)?.as_object_mut()?;
            let value = taken(below, rest);
            if below.is_empty() {
                fields.remove(*name);
            }
            value
        }
    }
}

fn put(fields: &mut Map<String, Value>, path: &[&str], value: Option<Value>) {
    let (Some(value), Some((last, parents))) = (value, path.split_last()) else { return };
    let mut target = fields;
    for name in parents {
        let below = target.entry((*name).to_owned()).or_insert_with(|| json!({}));
        let Some(below) = below.as_object_mut() else { return };
        target = below;
    }
    target.insert((*last).to_owned(), value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(version: &str, pool: &Value, status: &Value) -> Value {
        json!({
            "apiVersion": format!("ipam.cluster.x-k8s.io/{version}"), "kind": "IPAddressClaim",
            "metadata": {"name": "one"}, "spec": {"poolRef": pool}, "status": status,
        })
    }

    #[test]
    fn conditions_of_both_families_survive_both_ways() {
        let pool = json!({"apiGroup": "test.dev", "kind": "Pool", "name": "p"});
        let (new, legacy) = (json!([{"type": "Ready", "status": "True"}]), json!([{"severity": "Info"}]));
        let old = claim(
            "v1beta1",
            &pool,
            &json!({"addressRef": {"name": "one"}, "conditions": legacy, "v1beta2": {"conditions": new}}),
        );
        let mut object = old.clone();
        convert(&mut object, "v1beta2");
        let status = json!({
            "addressRef": {"name": "one"}, "conditions": new,
            "deprecated": {"v1beta1": {"conditions": legacy}},
        });
        assert_eq!(object, claim("v1beta2", &pool, &status));
        convert(&mut object, "v1beta1");
        assert_eq!(object, old);
    }

    #[test]
    fn an_absent_group_and_an_absent_address_have_two_forms() {
        let (named, unnamed) =
            (json!({"kind": "Pool", "name": "p"}), json!({"apiGroup": "", "kind": "Pool"}));
        let mut object = claim("v1beta1", &unnamed, &json!({"addressRef": {"name": ""}}));
        convert(&mut object, "v1beta2");
        assert_eq!(object["spec"]["poolRef"], json!({"kind": "Pool"}));
        assert!(object.get("status").is_none(), "{object}");
        let mut object = claim("v1beta2", &named, &Value::Null);
        convert(&mut object, "v1beta1");
        assert_eq!((&object["spec"]["poolRef"], &object["status"]), (&named, &json!({"addressRef": {}})));
    }
}
