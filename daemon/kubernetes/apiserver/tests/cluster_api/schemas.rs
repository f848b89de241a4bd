//! Definitions: required fields, limits, subresources and categories.

use reqwest::Method;
use serde_json::{Value, json};

use super::objects::{BOTH, V1BETA1, V1BETA2, address, claim, created, path, refused, server};
use crate::client::{client, get};

/// Refusal of a new object after the change or the removal of one field.
async fn wrong(plural: &str, mut object: Value, field: &str, value: Value) -> (u16, String) {
    let server = server(BOTH);
    let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let (parent, name) = field.rsplit_once('/').unwrap();
    let fields = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => _ = fields.remove(name),
        value => _ = fields.insert(name.to_owned(), value),
    }
    refused(&server, Method::POST, &path(&version, plural), object).await
}

#[tokio::test]
async fn a_claim_needs_its_fields() {
    for (version, field, value) in [
        (V1BETA2, "/spec", Value::Null),
        (V1BETA2, "/spec/poolRef", Value::Null),
        (V1BETA2, "/spec/poolRef/name", Value::Null),
        (V1BETA2, "/spec/poolRef/kind", Value::Null),
        (V1BETA2, "/spec/poolRef/apiGroup", Value::Null),
        (V1BETA2, "/spec/poolRef/apiGroup", json!("Not A Group")),
        (V1BETA2, "/spec/poolRef/kind", json!("-x")),
        (V1BETA2, "/spec/poolRef/name", json!("x".repeat(254))),
        (V1BETA2, "/spec/clusterName", json!("x".repeat(64))),
        (V1BETA1, "/spec/poolRef", Value::Null),
        (V1BETA1, "/spec/poolRef/kind", Value::Null),
        (V1BETA1, "/spec/clusterName", json!("")),
    ] {
        let (code, message) = wrong("ipaddressclaims", claim(version, "one"), field, value).await;
        assert_eq!(code, 422, "{version} {field}: {message}");
        assert!(message.contains(&field[1..].replace('/', ".")), "{version} {field}: {message}");
    }
}

#[tokio::test]
async fn an_address_needs_its_fields() {
    for (version, field, value) in [
        (V1BETA2, "/spec/claimRef", Value::Null),
        (V1BETA2, "/spec/claimRef/name", Value::Null),
        (V1BETA2, "/spec/poolRef/apiGroup", Value::Null),
        (V1BETA2, "/spec/address", Value::Null),
        (V1BETA2, "/spec/address", json!("x".repeat(40))),
        (V1BETA2, "/spec/prefix", Value::Null),
        (V1BETA2, "/spec/prefix", json!(129)),
        (V1BETA2, "/spec/gateway", json!("")),
        (V1BETA1, "/spec/prefix", Value::Null),
        (V1BETA1, "/spec/address", Value::Null),
    ] {
        let (code, message) = wrong("ipaddresses", address(version, "one"), field, value).await;
        assert_eq!(code, 422, "{version} {field}: {message}");
        assert!(message.contains(&field[1..].replace('/', ".")), "{version} {field}: {message}");
    }
}

#[tokio::test]
async fn a_status_is_validated_and_addresses_have_none() {
    let server = server(BOTH);
    created(&server, "ipaddressclaims", &claim(V1BETA2, "one")).await;
    created(&server, "ipaddresses", &address(V1BETA2, "one")).await;
    let status = format!("{}/one/status", path(V1BETA2, "ipaddressclaims"));
    for (wrong, field) in [
        (json!({}), "status"),
        (json!({"addressRef": {}}), "status.addressRef.name"),
        (json!({"conditions": [{"type": "Ready", "status": "True"}]}), "status.conditions[0].reason"),
    ] {
        let mut object = claim(V1BETA2, "one");
        object["status"] = wrong;
        let (code, message) = refused(&server, Method::PUT, &status, object).await;
        assert_eq!(code, 422, "{message}");
        assert!(message.contains(field), "{field}: {message}");
    }
    let (code, _) = get(&server, &format!("{}/one/status", path(V1BETA2, "ipaddresses"))).await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn kinds_are_in_the_category_of_cluster_api() {
    let server = server(BOTH);
    for (group, plurals) in [
        ("ipam.cluster.x-k8s.io", &["ipaddressclaims", "ipaddresses"][..]),
        ("cluster.x-k8s.io", &["clusters"]),
    ] {
        let found = get(&server, &format!("/apis/{group}")).await.1;
        assert_eq!(found["preferredVersion"]["version"], V1BETA2);
        for version in [V1BETA1, V1BETA2] {
            let resources = get(&server, &format!("/apis/{group}/{version}")).await.1;
            let listed = resources["resources"].as_array().unwrap();
            for plural in plurals {
                let one = listed.iter().find(|one| one["name"] == *plural).unwrap();
                assert_eq!(one["categories"], json!(["cluster-api"]));
                let has_status = listed.iter().any(|one| one["name"] == format!("{plural}/status"));
                assert_eq!(has_status, *plural != "ipaddresses");
            }
        }
    }
}

#[tokio::test]
async fn the_older_version_warns() {
    let server = server(BOTH);
    let warning = async |version: &str| {
        let url = format!("{}{}", server.url(), path(version, "ipaddressclaims"));
        let response = client().get(url).send().await.unwrap();
        response.headers().get("warning").map(|value| value.to_str().unwrap().to_owned())
    };
    let expected = "299 - \"ipam.cluster.x-k8s.io/v1beta1 IPAddressClaim is deprecated; use \
                    ipam.cluster.x-k8s.io/v1beta2 IPAddressClaim\"";
    assert_eq!(warning(V1BETA1).await.as_deref(), Some(expected));
    assert_eq!(warning(V1BETA2).await, None);
}
