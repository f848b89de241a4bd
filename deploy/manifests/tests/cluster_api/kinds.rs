//! Definitions of the pool kinds in an API server: specs that it accepts, and specs that it refuses.

use ipam_api::client::{Options, http};
use ipam_api::cluster_api::{IpPoolSpec, PrefixPoolSpec};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use test_apiserver::ApiServer;

use super::components;

const GROUP: &str = "/apis/ipam.ipamd.internal/v1";

/// API server with the definitions.
pub(super) struct Server {
    api: ApiServer,
    client: Client,
}

impl Server {
    /// Server that has accepted the definitions as `kubectl apply` sends them.
    pub(super) async fn start() -> Self {
        let server = Self { api: ApiServer::start(), client: http(&Options::default()).unwrap() };
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let objects = components();
        for one in objects.iter().filter(|one| one["kind"] == "CustomResourceDefinition") {
            server.send(Method::POST, definitions, one).await.unwrap();
        }
        server
            .send(Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "shop"}}))
            .await
            .unwrap();
        server
    }

    /// Answer to a request, or the message of its refusal.
    pub(super) async fn send(&self, method: Method, path: &str, object: &Value) -> Result<Value, String> {
        let merge = method == Method::PATCH;
        let media_type = if merge { "application/merge-patch+json" } else { "application/json" };
        let url = format!("{}{path}", self.api.url());
        let request = self.client.request(method, url).header("content-type", media_type);
        let response = request.body(object.to_string()).send().await.unwrap();
        let is_done = response.status().is_success();
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        if is_done { Ok(body) } else { Err(body["message"].as_str().unwrap().to_owned()) }
    }
}

/// Path of the collection of a kind.
pub(super) fn collection(plural: &str) -> String {
    let is_global = plural.starts_with("global");
    format!("{GROUP}/{}{plural}", if is_global { "" } else { "namespaces/shop/" })
}

fn pool(plural: &str, name: &str, spec: &Value) -> Value {
    let kind = match plural {
        "ippools" => "IPPool",
        "globalippools" => "GlobalIPPool",
        "prefixpools" => "PrefixPool",
        _ => "GlobalPrefixPool",
    };
    json!({
        "apiVersion": "ipam.ipamd.internal/v1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    })
}

const IP: [&str; 2] = ["ippools", "globalippools"];
const PREFIX: [&str; 2] = ["prefixpools", "globalprefixpools"];

fn entries(count: usize) -> Value {
    (0..count).map(|number| Value::from(format!("10.0.{}.{}", number / 250, number % 250))).collect()
}

#[tokio::test]
async fn c5_17_specs_that_the_provider_reads_are_accepted() {
    let server = Server::start().await;
    let ip = [
        json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24}),
        json!({"addresses": ["10.0.0.10"], "prefix": 0, "gateway": "192.168.0.1"}),
        json!({
            "addresses": ["10.0.0.0/24", "10.0.0.7"], "prefix": 24, "gateway": "10.0.0.1",
            "allocateReservedIPAddresses": true, "excludedAddresses": ["10.0.0.2-10.0.0.9"],
            "addressReuseGracePeriodSeconds": 0, "network": "blue",
        }),
        json!({"addresses": ["fd00::1-fd00::ffff:ffff"], "prefix": 128, "gateway": "fe80::1"}),
        json!({"addresses": entries(1024), "excludedAddresses": entries(1024), "prefix": 16}),
        json!({"poolRef": {"name": "web"}}),
        json!({"poolRef": {"name": "web"}, "addresses": [], "allocateReservedIPAddresses": false}),
    ];
    let prefix = [
        json!({"prefixes": ["fd00::/62"]}),
        json!({"prefixes": ["fd00::/48"], "allocationPrefixLength": 128, "gateway": "fd00::1"}),
        json!({"prefixes": ["10.0.0.0/16"], "allocationPrefixLength": 24, "network": "blue"}),
        json!({"prefixes": ["fd00::/48"], "excludedPrefixes": ["fd00:0:0:1::/64", "fd00:0:0:2::1"]}),
        json!({"poolRef": {"name": "blocks"}, "allocationPrefixLength": 56, "gateway": "fd00::1"}),
    ];
    for (plurals, specs) in [(IP, &ip[..]), (PREFIX, &prefix[..])] {
        for plural in plurals {
            for (number, spec) in specs.iter().enumerate() {
                let object = pool(plural, &format!("p-{number}"), spec);
                let created = server.send(Method::POST, &collection(plural), &object).await.unwrap();
                // No field is pruned, and the type reads the spec.
                assert_eq!(created["spec"], *spec, "{plural}");
                let is_ip = plurals == IP;
                let read = if is_ip {
                    serde_json::from_value::<IpPoolSpec>(spec.clone()).map(drop)
                } else {
                    serde_json::from_value::<PrefixPoolSpec>(spec.clone()).map(drop)
                };
                read.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn c5_17_wrong_specs_are_refused_with_a_reason() {
    let server = Server::start().await;
    let address = json!(["10.0.0.10"]);
    let block = json!(["fd00::/62"]);
    let reference = json!({"name": "web"});
    let long = json!(["1".repeat(92)]);
    let ip = [
        (json!({}), "addresses is required"),
        (json!({"addresses": [], "prefix": 24}), "addresses is required"),
        (json!({"prefix": 24}), "addresses is required"),
        (json!({"addresses": address}), "a valid prefix is required"),
        (json!({"addresses": address, "prefix": -1}), "spec.prefix"),
        (json!({"addresses": address, "prefix": 9999}), "spec.prefix"),
        (json!({"addresses": address, "prefix": 33}), "provided prefix is not valid"),
        (json!({"addresses": entries(1025), "prefix": 16}), "spec.addresses"),
        (json!({"addresses": long, "prefix": 24}), "spec.addresses[0]"),
        (json!({"addresses": address, "prefix": 24, "excludedAddresses": entries(1025)}), "spec.excluded"),
        (json!({"addresses": ["10.0.0.1", "fd00::1"], "prefix": 24}), "provided addresses are of mixed"),
        (
            json!({"addresses": address, "prefix": 24, "gateway": "fd00::1"}),
            "provided gateway and addresses are of mixed IP families",
        ),
        (
            json!({"addresses": address, "prefix": 24, "excludedAddresses": ["10.0.0.1", "fd00::1"]}),
            "addresses and excluded addresses are of mixed IP families",
        ),
        (json!({"addresses": address, "prefix": 24, "addressReuseGracePeriodSeconds": -1}), "GracePeriod"),
        (json!({"addresses": address, "prefix": 24, "addressReuseGracePeriodSeconds": 604_801}), "GracePer"),
        (json!({"addresses": address, "prefix": 24, "network": "Blue"}), "spec.network"),
        (json!({"poolRef": {}}), "spec.poolRef.name"),
        (json!({"poolRef": reference, "addresses": address, "prefix": 24}), "poolRef takes the place"),
        (json!({"poolRef": reference, "prefix": 24}), "poolRef takes the place"),
        (json!({"poolRef": reference, "gateway": "10.0.0.1"}), "poolRef takes the place"),
        (json!({"poolRef": reference, "excludedAddresses": address}), "poolRef takes the place"),
        (json!({"poolRef": reference, "allocateReservedIPAddresses": true}), "poolRef takes the place"),
        (json!({"poolRef": reference, "addressReuseGracePeriodSeconds": 1}), "poolRef takes the place"),
        (json!({"poolRef": reference, "network": "blue"}), "poolRef takes the place"),
    ];
    let prefix = [
        (json!({}), "prefixes is required"),
        (json!({"allocationPrefixLength": 64}), "prefixes is required"),
        (json!({"prefixes": block, "allocationPrefixLength": 0}), "spec.allocationPrefixLength"),
        (json!({"prefixes": block, "allocationPrefixLength": 129}), "spec.allocationPrefixLength"),
        (json!({"prefixes": ["10.0.0.0/16"]}), "allocationPrefixLength is required for IPv4"),
        (json!({"prefixes": ["10.0.0.0/16"], "allocationPrefixLength": 33}), "of IPv4 is at most 32"),
        (json!({"prefixes": ["10.0.0.0/16", "fd00::/48"], "allocationPrefixLength": 24}), "of mixed IP"),
        (json!({"prefixes": block, "gateway": "10.0.0.1"}), "provided gateway and prefixes are of mixed"),
        (json!({"prefixes": block, "excludedPrefixes": ["10.0.0.1"]}), "prefixes and excluded prefixes are"),
        (json!({"prefixes": entries(1025)}), "spec.prefixes"),
        (json!({"prefixes": block, "excludedPrefixes": entries(1025)}), "spec.excludedPrefixes"),
        (json!({"poolRef": reference, "prefixes": block}), "poolRef takes the place of prefixes"),
        (json!({"poolRef": reference, "excludedPrefixes": block}), "poolRef takes the place of prefixes"),
        (json!({"poolRef": reference, "network": "blue"}), "poolRef takes the place of prefixes"),
    ];
    for (plurals, specs) in [(IP, &ip[..]), (PREFIX, &prefix[..])] {
        for plural in plurals {
            for (spec, reason) in specs {
                let object = pool(plural, "wrong", spec);
                let refused = server.send(Method::POST, &collection(plural), &object).await.unwrap_err();
                assert!(refused.contains(reason), "{plural} {spec}: {refused}");
            }
        }
    }
}

#[tokio::test]
async fn c5_17_constant_fields_of_a_spec_can_not_be_changed() {
    let server = Server::start().await;
    let addresses = json!({"addresses": ["10.0.0.10"], "prefix": 24});
    let blue = json!({"addresses": ["10.0.0.10"], "prefix": 24, "network": "blue"});
    let blocks = json!({"prefixes": ["fd00::/48"]});
    let reference = json!({"poolRef": {"name": "web"}});
    // Fields that are removed are null in a merge patch.
    let other_way = json!({"poolRef": null, "addresses": ["10.0.0.10"], "prefix": 24});
    let (network, pool_ref) = ("network is immutable", "poolRef is immutable");
    let length = "allocationPrefixLength is immutable";
    let cases = [
        (IP, &addresses, json!({"network": "blue"}), Some(network)),
        (IP, &blue, json!({"network": "red"}), Some(network)),
        (IP, &blue, json!({"network": null}), Some(network)),
        (IP, &reference, json!({"poolRef": {"name": "other"}}), Some(pool_ref)),
        (IP, &reference, other_way, Some(pool_ref)),
        (
            IP,
            &addresses,
            json!({"poolRef": {"name": "a"}, "addresses": null, "prefix": null}),
            Some(pool_ref),
        ),
        (IP, &blue, json!({"addresses": ["10.0.0.0/24"], "gateway": "10.0.0.1", "prefix": 16}), None),
        (PREFIX, &blocks, json!({"allocationPrefixLength": 56}), Some(length)),
        (PREFIX, &blocks, json!({"network": "blue"}), Some(network)),
        (PREFIX, &reference, json!({"poolRef": {"name": "other"}}), Some(pool_ref)),
        (PREFIX, &reference, json!({"allocationPrefixLength": 56}), Some(length)),
        // The default value, written out.
        (PREFIX, &blocks, json!({"allocationPrefixLength": 64, "prefixes": ["fd00::/40"]}), None),
    ];
    for (number, (plurals, before, patch, refusal)) in cases.iter().enumerate() {
        for plural in plurals {
            let name = format!("p-{number}");
            server.send(Method::POST, &collection(plural), &pool(plural, &name, before)).await.unwrap();
            let path = format!("{}/{name}", collection(plural));
            let answer = server.send(Method::PATCH, &path, &json!({"spec": patch})).await;
            match refusal {
                Some(reason) => assert!(answer.unwrap_err().contains(reason), "{plural} {patch}"),
                None => drop(answer.unwrap()),
            }
        }
    }
}

#[tokio::test]
async fn c5_17_a_status_has_conditions_and_numbers() {
    let server = Server::start().await;
    for (plurals, field) in [(IP, "ipAddresses"), (PREFIX, "prefixes")] {
        let spec = json!({"poolRef": {"name": "web"}});
        let counts = json!({"total": i64::MAX, "free": 5, "used": 2, "outOfRange": 1});
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Applied", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        });
        let status = json!({
            "conditions": [ready], "observedGeneration": 1, "pool": "web", field: counts,
        });
        for plural in plurals {
            server.send(Method::POST, &collection(plural), &pool(plural, "p", &spec)).await.unwrap();
            let path = format!("{}/p/status", collection(plural));
            let shown = server.send(Method::PATCH, &path, &json!({"status": status})).await.unwrap();
            assert_eq!(shown["status"], status, "{plural}");
            let incomplete = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
            server.send(Method::PATCH, &path, &incomplete).await.unwrap_err();
        }
    }
}

#[test]
fn c5_17_the_columns_show_the_state_of_a_pool() {
    let objects = components();
    for one in objects.iter().filter(|one| one["kind"] == "CustomResourceDefinition") {
        let version = &one["spec"]["versions"][0];
        let columns = version["additionalPrinterColumns"].as_array().unwrap();
        let names: Vec<&str> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["Ready", "Reason", "Pool", "Total", "Free", "Used", "Age"]);
        // Each number is a field of the schema.
        for column in &columns[3..6] {
            let path = column["jsonPath"].as_str().unwrap().trim_start_matches('.').split('.');
            let root = &version["schema"]["openAPIV3Schema"];
            let field = path.fold(root, |schema, name| &schema["properties"][name]);
            assert_eq!(field["type"], "integer", "{column}");
        }
    }
}

/// Places of a schema without a bound of their texts, lists or numbers. The API server estimates the cost of
/// a rule by these bounds.
fn unbounded(schema: &Value, path: &str, places: &mut Vec<String>) {
    let bounds: &[&str] = match schema["type"].as_str() {
        Some("string") => &["maxLength"],
        Some("array") => &["maxItems"],
        Some("integer") => &["minimum", "maximum"],
        _ => &[],
    };
    if bounds.iter().any(|bound| schema[bound].is_null()) {
        places.push(path.to_owned());
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        unbounded(field, &format!("{path}.{name}"), places);
    }
    if schema["items"].is_object() {
        unbounded(&schema["items"], &format!("{path}[]"), places);
    }
}

#[test]
fn c5_17_everything_in_a_spec_is_bounded() {
    let objects = components();
    for one in objects.iter().filter(|one| one["kind"] == "CustomResourceDefinition") {
        let schema = &one["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let mut places = Vec::new();
        unbounded(&schema["properties"]["spec"], "spec", &mut places);
        assert!(places.is_empty(), "{}: {places:?}", one["metadata"]["name"]);
    }
}
