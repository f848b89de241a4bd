//! Rules of the webhooks.

use reqwest::Method;
use serde_json::json;

use super::objects::{
    BOTH, V1BETA1, V1BETA2, address, claim, condition, created, patched, path, refused, server,
};
use crate::client::ask;

#[tokio::test]
async fn specs_are_immutable_in_both_versions() {
    let server = server(BOTH);
    created(&server, "ipaddressclaims", &claim(V1BETA2, "one")).await;
    created(&server, "ipaddresses", &address(V1BETA1, "one")).await;
    for version in [V1BETA1, V1BETA2] {
        let one = format!("{}/one", path(version, "ipaddressclaims"));
        let patch = json!({"spec": {"clusterName": "c2"}});
        let (code, message) = refused(&server, Method::PATCH, &one, patch).await;
        assert_eq!(code, 403);
        let expected = "admission webhook \"validation.ipaddressclaim.ipam.cluster.x-k8s.io\" denied the \
                        request: spec: Forbidden: IPAddressClaim spec is immutable. Diff: ";
        assert!(message.starts_with(expected) && message.contains("+ clusterName: \"c2\""), "{message}");
        let one = format!("{}/one", path(version, "ipaddresses"));
        let (code, message) = refused(&server, Method::PATCH, &one, json!({"spec": {"prefix": 25}})).await;
        assert_eq!(code, 403);
        assert!(message.contains("IPAddress spec is immutable. Diff: "), "{message}");
    }
}

#[tokio::test]
async fn metadata_and_status_change_freely() {
    let server = server(BOTH);
    let mut object = claim(V1BETA1, "one");
    // In the other version, the group is absent.
    object["spec"]["poolRef"]["apiGroup"] = json!("");
    created(&server, "ipaddressclaims", &object).await;
    for version in [V1BETA1, V1BETA2] {
        let one = format!("{}/one", path(version, "ipaddressclaims"));
        // The newer schema needs the group.
        if version == V1BETA1 {
            let labels = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["test.dev/hold"]}});
            let labelled = patched(&server, &one, labels).await;
            assert_eq!(labelled["metadata"]["labels"]["a"], "b");
        } else {
            let labels = json!({"metadata": {"labels": {"a": "b"}}});
            assert_eq!(ask(&server, Method::PATCH, &one, labels).await.0, 422);
        }
    }
    created(&server, "ipaddressclaims", &claim(V1BETA2, "two")).await;
    let two = format!("{}/two", path(V1BETA2, "ipaddressclaims"));
    let status = json!({"spec": {"clusterName": "c2"}, "status": {"conditions": [condition("Ready", "x")]}});
    let shown = patched(&server, &format!("{two}/status"), status).await;
    assert_eq!((&shown["spec"]["clusterName"], &shown["metadata"]["generation"]), (&json!("c1"), &json!(1)));
}

#[tokio::test]
async fn a_wrong_address_is_refused() {
    let server = server(BOTH);
    let not_valid = "not a valid IP address";
    for (version, field, value, why) in [
        (V1BETA2, "address", json!("192.0.2.300"), not_valid),
        (V1BETA2, "address", json!("192.0.2.7/24"), not_valid),
        (V1BETA2, "gateway", json!("router"), not_valid),
        (V1BETA2, "prefix", json!(33), "prefix is too large for an IPv4 address"),
        (V1BETA1, "prefix", json!(-1), "prefix cannot be negative"),
        (V1BETA1, "prefix", json!(33), "prefix is too large for an IPv4 address"),
    ] {
        let mut object = address(version, "one");
        object["spec"][field] = value.clone();
        let (code, message) = refused(&server, Method::POST, &path(version, "ipaddresses"), object).await;
        assert_eq!(code, 403, "{message}");
        let cause = format!("spec.{field}: Invalid value: {value}: {why}");
        assert!(message.contains(&cause), "{cause}: {message}");
    }
    let mut object = address(V1BETA1, "one");
    (object["spec"]["address"], object["spec"]["prefix"]) = (json!("2001:db8::1"), json!(129));
    let (_, message) = refused(&server, Method::POST, &path(V1BETA1, "ipaddresses"), object.clone()).await;
    assert!(message.contains("prefix is too large for an IPv6 address"), "{message}");
    object["spec"]["prefix"] = json!(128);
    created(&server, "ipaddresses", &object).await;
}

#[tokio::test]
async fn an_address_is_of_the_pool_of_its_claim() {
    let server = server(BOTH);
    let elsewhere = "the referenced pool is different from the pool referenced by the claim this address \
                     should fulfill";
    created(&server, "ipaddressclaims", &claim(V1BETA1, "one")).await;
    for version in [V1BETA1, V1BETA2] {
        for field in ["apiGroup", "kind", "name"] {
            let mut object = address(version, "one");
            object["spec"]["poolRef"][field] = json!("other");
            let (code, message) = refused(&server, Method::POST, &path(version, "ipaddresses"), object).await;
            assert_eq!(code, 403);
            assert!(message.contains(elsewhere), "{version} {field}: {message}");
        }
    }
    created(&server, "ipaddresses", &address(V1BETA2, "one")).await;
    // A claim may be absent.
    created(&server, "ipaddresses", &address(V1BETA2, "two")).await;
}
