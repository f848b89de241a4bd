//! Structural schemas: pruning, defaults, validation, and rules in CEL.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::custom::{define, definition, group, widget};

/// Cluster with a definition of this schema, and the collection of its objects.
async fn with_schema(spec: Value) -> (Cluster, String, String) {
    let mut cluster = Cluster::start().await;
    let group = group();
    define(&mut cluster, definition(&group, spec)).await;
    let all = cluster.collection(&format!("{group}/v1/widgets"));
    (cluster, group, all)
}

#[tokio::test]
async fn unknown_fields_are_pruned_and_defaults_added() {
    let schema = json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "default": "auto"},
            "deep": {
                "type": "object",
                "default": {},
                "properties": {"count": {"type": "integer", "default": 3}},
            },
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "port": {"x-kubernetes-int-or-string": true},
        },
    });
    let (cluster, group, all) = with_schema(schema).await;
    let spec = json!({
        "unknown": 1, "open": {"any": [1]}, "map": {"a": "b"}, "port": "http", "deep": {"unknown": 1},
    });
    let object = widget(&group, "one", spec.clone());
    let answer = cluster.post(&format!("{all}?fieldValidation=Warn"), &object).await;
    let warnings: Vec<&str> =
        answer.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect();
    assert!(warnings.iter().any(|warning| warning.contains("spec.unknown")), "{warnings:?}");
    let expected = json!({
        "mode": "auto", "deep": {"count": 3}, "open": {"any": [1]}, "map": {"a": "b"}, "port": "http",
    });
    assert_eq!(answer.expect(201)["spec"], expected);
    let strict = cluster.post(&format!("{all}?fieldValidation=Strict"), &widget(&group, "two", spec)).await;
    assert!(strict.refused(400, "BadRequest").contains("unknown field \"spec.unknown\""));
    let null = cluster.merge(&format!("{all}/one"), json!({"spec": {"mode": null}})).await.expect(200);
    assert_eq!(null["spec"]["mode"], "auto");
    let port = cluster.merge(&format!("{all}/one"), json!({"spec": {"port": 80}})).await.expect(200);
    assert_eq!(port["spec"]["port"], 80);
}

#[tokio::test]
async fn wrong_fields_are_named_with_their_reasons() {
    let schema = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 5},
            "few": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"],
                "items": {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}}},
            },
            "maybe": {"type": "string", "nullable": true},
        },
    });
    let (cluster, group, all) = with_schema(schema).await;
    for (spec, reason, field) in [
        (json!({}), "FieldValueRequired", "spec.name"),
        (json!({"name": 1}), "FieldValueTypeInvalid", "spec.name"),
        (json!({"name": "a"}), "FieldValueInvalid", "spec.name"),
        (json!({"name": "abcde"}), "FieldValueTooLong", "spec.name"),
        (json!({"name": "AB"}), "FieldValueInvalid", "spec.name"),
        (json!({"name": "ab", "color": "green"}), "FieldValueNotSupported", "spec.color"),
        (json!({"name": "ab", "count": 0}), "FieldValueInvalid", "spec.count"),
        (json!({"name": "ab", "count": 6}), "FieldValueInvalid", "spec.count"),
        (json!({"name": "ab", "count": 1.5}), "FieldValueTypeInvalid", "spec.count"),
        (json!({"name": "ab", "few": ["a", "b"]}), "FieldValueTooMany", "spec.few"),
        (json!({"name": "ab", "set": ["a", "a"]}), "FieldValueDuplicate", "spec.set[1]"),
        (json!({"name": "ab", "map": [{"key": "a"}, {"key": "a"}]}), "FieldValueDuplicate", "spec.map[1]"),
        (json!({"name": "ab", "map": [{}]}), "FieldValueRequired", "spec.map[0].key"),
    ] {
        let answer = cluster.post(&all, &widget(&group, "one", spec.clone())).await;
        assert!(answer.refused(422, "Invalid").contains("is invalid"), "{spec}");
        let causes = answer.body["details"]["causes"].as_array().unwrap();
        let has = |one: &Value| one["reason"] == reason && one["field"] == field;
        assert!(causes.iter().any(has), "{spec}: {causes:?}");
    }
    let good = json!({
        "name": "ab", "color": "red", "count": 5, "few": ["a"], "set": ["a", "b"],
        "map": [{"key": "a"}, {"key": "b"}], "maybe": null,
    });
    let created = cluster.post(&all, &widget(&group, "one", good.clone())).await.expect(201);
    assert_eq!(created["spec"], good);
}

#[tokio::test]
async fn rules_see_the_object_and_its_state_before() {
    let schema = json!({
        "type": "object",
        "properties": {
            "pool": {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "pool is immutable"}],
            },
            "min": {"type": "integer"},
            "max": {"type": "integer"},
            "names": {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.min) || self.min + 1 <= self.max", "message": "min is not below max"},
            {"rule": "!has(self.names) || size(self.names) < 3"},
            {
                "rule": "!has(self.names) || self.names.all(n, n.matches('^[a-z]+$'))",
                "message": "names are words",
            },
        ],
    });
    let (cluster, group, all) = with_schema(schema).await;
    let refused = async |answer: super::cluster::Answer, field: &str, message: &str| {
        assert!(answer.refused(422, "Invalid").contains(message), "{}", answer.body);
        assert_eq!(answer.body["details"]["causes"][0]["field"], field, "{}", answer.body);
    };
    for (spec, message) in [
        (json!({"min": 3, "max": 3}), "min is not below max"),
        (json!({"names": ["a", "b", "c"]}), "failed rule: !has(self.names) || size(self.names) < 3"),
        (json!({"names": ["A"]}), "names are words"),
    ] {
        refused(cluster.post(&all, &widget(&group, "one", spec)).await, "spec", message).await;
    }
    let spec = json!({"pool": "a", "min": 1, "max": 2, "names": ["a", "b"]});
    cluster.post(&all, &widget(&group, "one", spec)).await.expect(201);
    let one = format!("{all}/one");
    let other = cluster.merge(&one, json!({"spec": {"pool": "b"}})).await;
    refused(other, "spec.pool", "pool is immutable").await;
    cluster.merge(&one, json!({"spec": {"pool": "a", "max": 5}})).await.expect(200);
    // Without a value before or after the write, the transition rule does not apply.
    cluster.merge(&one, json!({"spec": {"pool": null}})).await.expect(200);
    cluster.merge(&one, json!({"spec": {"pool": "c"}})).await.expect(200);
}
