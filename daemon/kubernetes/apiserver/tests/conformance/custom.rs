//! Custom resources: definitions, discovery, versions, subresources and tables.

use reqwest::Method;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};

use super::cluster::{Answer, Cluster, name};

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Definition of a test, with the schema of its `spec`.
pub(super) fn definition(group: &str, spec: Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": spec,
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    })
}

/// Group of a test alone.
pub(super) fn group() -> String {
    format!("{}.ipamd.test", name("g"))
}

/// Object of the definition.
pub(super) fn widget(group: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

fn is_established(answer: &Answer) -> bool {
    let conditions = answer.body["status"]["conditions"].as_array();
    let is_it = |one: &Value| one["type"] == "Established" && one["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is_it))
}

/// Creates a definition, and waits until its resource is served. Returns the path of its definition.
pub(super) async fn define(cluster: &mut Cluster, definition: Value) -> String {
    let created = cluster.create(DEFINITIONS, definition).await;
    let path = format!("{DEFINITIONS}/{}", created["metadata"]["name"].as_str().unwrap());
    cluster.until(&path, is_established).await;
    let group = created["spec"]["group"].as_str().unwrap();
    for version in created["spec"]["versions"].as_array().unwrap() {
        let all = format!("/apis/{group}/{}/widgets", version["name"].as_str().unwrap());
        cluster.until(&all, |answer| answer.code == 200).await;
    }
    path
}

fn integer() -> Value {
    json!({"type": "object", "properties": {"size": {"type": "integer"}, "replicas": {"type": "integer"}}})
}

#[tokio::test]
async fn a_definition_serves_its_resource_until_it_is_removed() {
    let mut cluster = Cluster::start().await;
    let group = group();
    let path = define(&mut cluster, definition(&group, integer())).await;
    let defined = cluster.get(&path).await.expect(200);
    assert_eq!(defined["spec"]["names"]["singular"], "widget");
    assert_eq!(defined["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(
        (&defined["status"]["storedVersions"], &defined["spec"]["conversion"]["strategy"]),
        (&json!(["v1"]), &json!("None"))
    );
    let is_listed = |answer: &Answer| {
        let resources = answer.body["resources"].as_array().cloned().unwrap_or_default();
        let named = |name: &str| resources.iter().find(|one| one["name"] == name).cloned();
        named("widgets").is_some_and(|one| {
            one["shortNames"] == json!(["wd"])
                && one["categories"] == json!(["all"])
                && one["singularName"] == "widget"
        }) && named("widgets/status").is_some()
    };
    cluster.until(&format!("/apis/{group}/v1"), is_listed).await;
    let found = cluster.until(&format!("/apis/{group}"), |answer| answer.code == 200).await;
    assert_eq!(found.body["preferredVersion"]["version"], "v1");
    let all = cluster.collection(&format!("{group}/v1/widgets"));
    let created = cluster.post(&all, &widget(&group, "one", json!({"size": 1}))).await.expect(201);
    assert_eq!((&created["metadata"]["generation"], &created["kind"]), (&json!(1), &json!("Widget")));
    let list = cluster.get(&all).await.expect(200);
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("WidgetList"), 1));
    let mut untyped = widget(&group, "two", json!({}));
    untyped.as_object_mut().unwrap().remove("kind");
    cluster.post(&all, &untyped).await.refused(400, "BadRequest");
    cluster.delete(&path, json!({})).await.expect(200);
    cluster.until_gone(&path).await;
    cluster.until_gone(&all).await;
}

#[tokio::test]
async fn the_status_of_a_custom_resource_has_its_own_path() {
    let mut cluster = Cluster::start().await;
    let group = group();
    define(&mut cluster, definition(&group, integer())).await;
    let all = cluster.collection(&format!("{group}/v1/widgets"));
    let mut object = widget(&group, "one", json!({"size": 1}));
    object["status"] = json!({"phase": "Early"});
    assert!(cluster.post(&all, &object).await.expect(201)["status"].is_null());
    let one = format!("{all}/one");
    let patch = json!({"spec": {"size": 2}, "status": {"phase": "Ready"}});
    let status = cluster.merge(&format!("{one}/status"), patch.clone()).await.expect(200);
    assert_eq!((&status["status"], &status["spec"]), (&json!({"phase": "Ready"}), &json!({"size": 1})));
    assert_eq!(status["metadata"]["generation"], 1);
    let spec =
        cluster.merge(&one, json!({"spec": {"size": 2}, "status": {"phase": "Lost"}})).await.expect(200);
    assert_eq!((&spec["status"], &spec["spec"]), (&json!({"phase": "Ready"}), &json!({"size": 2})));
    assert_eq!(spec["metadata"]["generation"], 2);
    cluster.get(&format!("{one}/scale")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn the_scale_of_a_custom_resource_is_its_replicas() {
    let mut cluster = Cluster::start().await;
    let group = group();
    let mut definition = definition(&group, integer());
    definition["spec"]["versions"][0]["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    define(&mut cluster, definition).await;
    let all = cluster.collection(&format!("{group}/v1/widgets"));
    cluster.post(&all, &widget(&group, "one", json!({"replicas": 3}))).await.expect(201);
    let path = format!("{all}/one/scale");
    let mut scale = cluster.get(&path).await.expect(200);
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(3)));
    scale["spec"]["replicas"] = json!(5);
    assert_eq!(cluster.put(&path, &scale).await.expect(200)["spec"]["replicas"], 5);
    cluster.put(&path, &scale).await.refused(409, "Conflict");
    assert_eq!(
        cluster.merge(&path, json!({"spec": {"replicas": 7}})).await.expect(200)["spec"]["replicas"],
        7
    );
    assert_eq!(cluster.get(&format!("{all}/one")).await.expect(200)["spec"]["replicas"], 7);
}

#[tokio::test]
async fn several_versions_show_one_object() {
    let mut cluster = Cluster::start().await;
    let group = group();
    let mut definition = definition(&group, integer());
    let mut beta = definition["spec"]["versions"][0].clone();
    (beta["name"], beta["storage"]) = (json!("v1beta1"), json!(false));
    definition["spec"]["versions"].as_array_mut().unwrap().push(beta);
    define(&mut cluster, definition.clone()).await;
    let (v1, beta) = (
        cluster.collection(&format!("{group}/v1/widgets")),
        cluster.collection(&format!("{group}/v1beta1/widgets")),
    );
    let mut object = widget(&group, "one", json!({"size": 1}));
    object["apiVersion"] = json!(format!("{group}/v1beta1"));
    assert_eq!(cluster.post(&beta, &object).await.expect(201)["apiVersion"], object["apiVersion"]);
    cluster.post(&v1, &object).await.refused(400, "BadRequest");
    // An invalid object is refused as such, even if an object of its name exists.
    let wrong = widget(&group, "one", json!({"size": "large"}));
    cluster.post(&v1, &wrong).await.refused(422, "Invalid");
    let seen = cluster.get(&format!("{v1}/one")).await.expect(200);
    assert_eq!((&seen["apiVersion"], &seen["spec"]), (&json!(format!("{group}/v1")), &json!({"size": 1})));
    let mut watch = cluster.watch(&format!("{v1}?watch=true")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["apiVersion"], seen["apiVersion"]);
}

#[tokio::test]
async fn a_deprecated_version_warns() {
    let mut cluster = Cluster::start().await;
    let group = group();
    let mut definition = definition(&group, integer());
    let mut beta = definition["spec"]["versions"][0].clone();
    (beta["name"], beta["storage"], beta["deprecated"]) = (json!("v1beta1"), json!(false), json!(true));
    definition["spec"]["versions"].as_array_mut().unwrap().push(beta);
    define(&mut cluster, definition).await;
    for (version, expected) in [
        ("v1beta1", Some(format!("299 - \"{group}/v1beta1 Widget is deprecated; use {group}/v1 Widget\""))),
        ("v1", None),
    ] {
        let answer = cluster.get(&cluster.collection(&format!("{group}/{version}/widgets"))).await;
        let warning = answer.headers.get("warning").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(warning, expected);
    }
}

#[tokio::test]
async fn a_wrong_definition_is_refused() {
    let cluster = Cluster::start().await;
    let group = group();
    let refused = async |change: &dyn Fn(&mut Value), field: &str| {
        let mut definition = definition(&group, integer());
        change(&mut definition);
        let answer = cluster.post(DEFINITIONS, &definition).await;
        answer.refused(422, "Invalid");
        let causes = answer.body["details"]["causes"].as_array().unwrap();
        let has = |one: &Value| one["field"].as_str().unwrap().starts_with(field);
        assert!(causes.iter().any(has), "{field}: {causes:?}");
    };
    refused(&|one| one["metadata"]["name"] = json!("other.example.com"), "metadata.name").await;
    refused(&|one| one["spec"]["versions"][0]["storage"] = json!(false), "spec.versions").await;
    let properties = "spec.validation.openAPIV3Schema.properties[spec]";
    let spec = |one: &mut Value, field: &str, value: Value| {
        one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][field] = value;
    };
    let list = |one: &mut Value| spec(one, "properties", json!({"x": {"type": "array"}}));
    refused(&list, &format!("{properties}.properties[x].items")).await;
    let rule = |one: &mut Value| spec(one, "x-kubernetes-validations", json!([{"rule": "self.size >"}]));
    refused(&rule, &format!("{properties}.x-kubernetes-validations[0].rule")).await;
    let alternative = |one: &mut Value| spec(one, "anyOf", json!([{"type": "object"}]));
    refused(&alternative, &format!("{properties}.anyOf[0].type")).await;
}

#[tokio::test]
async fn tables_have_the_columns_of_the_definition() {
    let mut cluster = Cluster::start().await;
    let group = group();
    let mut definition = definition(&group, integer());
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "priority": 1},
    ]);
    define(&mut cluster, definition).await;
    let all = cluster.collection(&format!("{group}/v1/widgets"));
    cluster.post(&all, &widget(&group, "one", json!({"size": 4}))).await.expect(201);
    let table = async |path: &str| {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        let response = cluster.request(Method::GET, path).header(ACCEPT, accept).send().await.unwrap();
        serde_json::from_slice::<Value>(&response.bytes().await.unwrap()).unwrap()
    };
    let list = table(&all).await;
    let names: Vec<&str> = list["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!((&list["kind"], names), (&json!("Table"), vec!["Name", "Size", "Ready", "Age"]));
    let (cells, object) = (&list["rows"][0]["cells"], &list["rows"][0]["object"]);
    assert_eq!((&cells[0], &cells[1], &cells[2]), (&json!("one"), &json!(4), &Value::Null));
    assert!(cells[3].as_str().unwrap().ends_with('s'), "{cells}");
    assert_eq!(object["kind"], "PartialObjectMetadata");
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.merge(&format!("{all}/one/status"), status).await.expect(200);
    let one = table(&format!("{all}/one?includeObject=None")).await;
    assert_eq!(one["rows"][0]["cells"][2], "True");
    assert!(one["rows"][0]["object"].is_null());
    let pods = table(&cluster.collection("v1/configmaps")).await;
    assert_eq!(pods["columnDefinitions"][0]["name"], "Name");
}
