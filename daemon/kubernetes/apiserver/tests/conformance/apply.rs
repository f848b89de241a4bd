//! Server-side apply, managers of fields, and strategic merge patches.

use reqwest::Method;
use serde_json::{Value, json};

use super::cluster::{Answer, Cluster, config_map};
use super::custom::{define, definition, group, widget};

/// Applies a configuration as a manager.
async fn apply(cluster: &Cluster, path: &str, manager: &str, config: &Value) -> Answer {
    let path = format!("{path}?fieldManager={manager}");
    cluster.send(Method::PATCH, &path, "application/apply-patch+yaml", &config.to_string()).await
}

async fn force(cluster: &Cluster, path: &str, manager: &str, config: &Value) -> Answer {
    apply(cluster, path, &format!("{manager}&force=true"), config).await
}

/// ConfigMap with this data alone.
fn data(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data})
}

/// Fields of a manager.
fn fields(object: &Value, manager: &str) -> Value {
    let all = object["metadata"]["managedFields"].as_array().expect("managers");
    let one = all.iter().find(|one| one["manager"] == manager);
    one.map(|one| one["fieldsV1"].clone()).unwrap_or_default()
}

#[tokio::test]
async fn managers_share_an_object_and_conflict_about_fields() {
    let cluster = Cluster::start().await;
    let one = format!("{}/one", cluster.collection("v1/configmaps"));
    let created = apply(&cluster, &one, "a", &data(json!({"x": "1", "y": "1"}))).await.expect(201);
    assert_eq!(fields(&created, "a"), json!({"f:data": {"f:x": {}, "f:y": {}}}));
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!((&entry["operation"], &entry["fieldsType"]), (&json!("Apply"), &json!("FieldsV1")));
    // An unchanged configuration is no change.
    let again = apply(&cluster, &one, "a", &data(json!({"x": "1", "y": "1"}))).await.expect(200);
    assert_eq!(again["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    // An equal value is shared, and a different value is a conflict.
    apply(&cluster, &one, "b", &data(json!({"x": "1", "z": "1"}))).await.expect(200);
    let conflict = apply(&cluster, &one, "b", &data(json!({"x": "2", "z": "1"}))).await;
    assert!(conflict.refused(409, "Conflict").contains("conflict with \"a\""));
    let cause = &conflict.body["details"]["causes"][0];
    assert_eq!((&cause["reason"], &cause["field"]), (&json!("FieldManagerConflict"), &json!(".data.x")));
    let taken = force(&cluster, &one, "b", &data(json!({"x": "2", "z": "1"}))).await.expect(200);
    assert_eq!(taken["data"], json!({"x": "2", "y": "1", "z": "1"}));
    assert_eq!(fields(&taken, "a"), json!({"f:data": {"f:y": {}}}));
    // A field that its only manager no longer applies is removed.
    let less = apply(&cluster, &one, "b", &data(json!({"x": "2"}))).await.expect(200);
    assert_eq!(less["data"], json!({"x": "2", "y": "1"}));
    // An update takes over the fields that it changes. Its manager differs from an apply manager of the same
    // name.
    let path = format!("{one}?fieldManager=a");
    let update = cluster.merge(&path, json!({"data": {"y": "3"}})).await.expect(200);
    let managers = update["metadata"]["managedFields"].as_array().unwrap().iter();
    let kinds: Vec<(&str, &str)> =
        managers.map(|one| (one["manager"].as_str().unwrap(), one["operation"].as_str().unwrap())).collect();
    assert_eq!(kinds, [("b", "Apply"), ("a", "Update")]);
    assert_eq!(fields(&update, "a"), json!({"f:data": {"f:y": {}}}));
    apply(&cluster, &one, "a", &data(json!({"y": "4"}))).await.refused(409, "Conflict");
    // A shared field outlives one of its managers.
    apply(&cluster, &one, "a", &data(json!({"x": "2"}))).await.expect(200);
    let shared = apply(&cluster, &one, "b", &data(json!({"w": "1"}))).await.expect(200);
    assert_eq!(shared["data"], json!({"x": "2", "y": "3", "w": "1"}));
}

#[tokio::test]
async fn an_apply_needs_a_manager_and_a_type() {
    let cluster = Cluster::start().await;
    let one = format!("{}/one", cluster.collection("v1/configmaps"));
    let media_type = "application/apply-patch+yaml";
    let config = data(json!({"x": "1"}));
    let unnamed = cluster.send(Method::PATCH, &one, media_type, &config.to_string()).await;
    assert!(unnamed.refused(422, "Invalid").contains("fieldManager"));
    let mut managed = config.clone();
    managed["metadata"]["managedFields"] = json!([{"manager": "a"}]);
    apply(&cluster, &one, "a", &managed).await.refused(400, "BadRequest");
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  x: '1'\n";
    let path = format!("{one}?fieldManager=a");
    let created = cluster.send(Method::PATCH, &path, media_type, yaml).await.expect(201);
    assert_eq!(created["data"], json!({"x": "1"}));
    let unforced = cluster.merge(&format!("{one}?force=true"), json!({})).await;
    unforced.refused(422, "Invalid");
}

#[tokio::test]
async fn an_object_before_its_first_apply_keeps_its_fields() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let mut object = config_map("one");
    object["metadata"]["labels"] = json!({"app": "web", "tier": "a"});
    cluster.post(&format!("{all}?fieldManager=creator"), &object).await.expect(201);
    let one = format!("{all}/one");
    apply(&cluster, &one, "a", &data(json!({"key": "other"}))).await.refused(409, "Conflict");
    let applied = apply(&cluster, &one, "a", &data(json!({"more": "1"}))).await.expect(200);
    assert_eq!(applied["data"], json!({"key": "value", "more": "1"}));
    assert_eq!(applied["metadata"]["labels"], object["metadata"]["labels"]);
}

#[tokio::test]
async fn lists_merge_by_the_keys_of_the_schema() {
    let mut cluster = Cluster::start().await;
    let group = group();
    let item = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    });
    let schema = json!({"type": "object", "properties": {
        "parts": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": item,
        },
        "words": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "all": {"type": "array", "items": {"type": "string"}},
    }});
    define(&mut cluster, definition(&group, schema)).await;
    let one = format!("{}/one", cluster.collection(&format!("{group}/v1/widgets")));
    let config = |spec| widget(&group, "one", spec);
    let a = json!({"parts": [{"name": "p", "size": 1}], "words": ["x"], "all": ["x"]});
    apply(&cluster, &one, "a", &config(a)).await.expect(201);
    let b = config(json!({"parts": [{"name": "q", "size": 2}], "words": ["y"]}));
    let both = apply(&cluster, &one, "b", &b).await.expect(200);
    let parts = json!([{"name": "p", "size": 1}, {"name": "q", "size": 2}]);
    assert_eq!((&both["spec"]["parts"], &both["spec"]["words"]), (&parts, &json!(["x", "y"])));
    let expected = json!({"f:spec": {
        "f:parts": {"k:{\"name\":\"q\"}": {".": {}, "f:name": {}, "f:size": {}}}, "f:words": {"v:\"y\"": {}},
    }});
    assert_eq!(fields(&both, "b"), expected);
    // A list without a type belongs to one manager as a whole.
    let other = apply(&cluster, &one, "b", &config(json!({"all": ["y"]}))).await;
    assert_eq!(other.body["details"]["causes"][0]["field"], ".spec.all");
    let less = apply(&cluster, &one, "a", &config(json!({"words": ["x"]}))).await.expect(200);
    let spec = json!({"parts": [{"name": "q", "size": 2}], "words": ["x", "y"]});
    assert_eq!(less["spec"], spec);
    // An item keeps its key while another manager has a field of it.
    let grown = json!({"spec": {"parts": [{"name": "q", "size": 3}]}});
    cluster.merge(&format!("{one}?fieldManager=c"), grown).await.expect(200);
    let left = apply(&cluster, &one, "b", &config(json!({"words": ["y"]}))).await.expect(200);
    assert_eq!(left["spec"]["parts"], json!([{"name": "q", "size": 3}]));
}

#[tokio::test]
async fn the_status_is_applied_by_its_own_path() {
    let mut cluster = Cluster::start().await;
    let group = group();
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    define(&mut cluster, definition(&group, spec)).await;
    let one = format!("{}/one", cluster.collection(&format!("{group}/v1/widgets")));
    let mut config = widget(&group, "one", json!({"size": 1}));
    config["status"] = json!({"phase": "Ready"});
    assert!(apply(&cluster, &one, "a", &config).await.expect(201)["status"].is_null());
    let applied = apply(&cluster, &format!("{one}/status"), "b", &config).await.expect(200);
    assert_eq!(
        (&applied["status"], fields(&applied, "b")),
        (&json!({"phase": "Ready"}), json!({"f:status": {"f:phase": {}}}))
    );
    let again = apply(&cluster, &one, "a", &config).await.expect(200);
    assert_eq!(again["status"]["phase"], "Ready");
}

#[tokio::test]
async fn a_strategic_merge_patch_merges_lists_of_built_in_kinds() {
    let mut cluster = Cluster::start().await;
    let all = cluster.collection("apps/v1/deployments");
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container("a", "x:1"), container("b", "x:1")]},
            },
        },
    });
    cluster.post(&all, &deployment).await.expect(201);
    let spec = json!({"containers": [{"name": "b", "image": "x:2"}]});
    let patch = json!({"spec": {"template": {"spec": spec}}}).to_string();
    let media_type = "application/strategic-merge-patch+json";
    let patched = cluster.send(Method::PATCH, &format!("{all}/one"), media_type, &patch).await.expect(200);
    let containers = patched["spec"]["template"]["spec"]["containers"].as_array().unwrap().iter();
    let images: Vec<&str> = containers.map(|one| one["image"].as_str().unwrap()).collect();
    assert_eq!(images, ["x:1", "x:2"]);
    let group = group();
    define(&mut cluster, definition(&group, json!({"type": "object"}))).await;
    let all = cluster.collection(&format!("{group}/v1/widgets"));
    cluster.post(&all, &widget(&group, "one", json!({}))).await.expect(201);
    let refused = cluster.send(Method::PATCH, &format!("{all}/one"), media_type, "{}").await;
    refused.refused(415, "UnsupportedMediaType");
}
