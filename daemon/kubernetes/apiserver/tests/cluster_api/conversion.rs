//! Conversion of claims and addresses.

use serde_json::{Value, json};

use super::objects::{
    BOTH, V1BETA1, V1BETA2, address, claim, condition, created, legacy_condition, patched, path, server,
};
use crate::client::{ask, get, watched};

#[tokio::test]
async fn each_family_of_conditions_is_that_of_its_version() {
    let server = server(BOTH);
    created(&server, "ipaddressclaims", &claim(V1BETA2, "one")).await;
    let (old, new) = (
        format!("{}/one", path(V1BETA1, "ipaddressclaims")),
        format!("{}/one", path(V1BETA2, "ipaddressclaims")),
    );
    let (exhausted, legacy) = (json!([condition("Ready", "PoolExhausted")]), json!([legacy_condition()]));
    let status = json!({"status": {"addressRef": {"name": "one"}, "conditions": exhausted}});
    patched(&server, &format!("{new}/status"), status).await;
    let shown = get(&server, &old).await.1["status"].clone();
    assert_eq!(shown, json!({"addressRef": {"name": "one"}, "v1beta2": {"conditions": exhausted}}));
    patched(&server, &format!("{old}/status"), json!({"status": {"conditions": legacy}})).await;
    let shown = get(&server, &new).await.1["status"].clone();
    let both = json!({
        "addressRef": {"name": "one"}, "conditions": exhausted,
        "deprecated": {"v1beta1": {"conditions": legacy}},
    });
    assert_eq!(shown, both);
    // A write in the older version changes the conditions of the newer family at its own path.
    let allocated = json!([condition("Ready", "Allocated")]);
    let status = json!({"status": {"v1beta2": {"conditions": allocated}}});
    patched(&server, &format!("{old}/status"), status).await;
    let shown = get(&server, &new).await.1["status"].clone();
    assert_eq!((&shown["conditions"], &shown["deprecated"]), (&allocated, &both["deprecated"]));
}

#[tokio::test]
async fn an_absent_status_has_an_empty_reference_in_the_older_version() {
    let server = server(BOTH);
    let shown = created(&server, "ipaddressclaims", &claim(V1BETA1, "one")).await;
    assert_eq!(shown["status"], json!({"addressRef": {"name": ""}}));
    let new = get(&server, &format!("{}/one", path(V1BETA2, "ipaddressclaims"))).await.1;
    assert!(new.get("status").is_none(), "{new}");
    assert_eq!(new["spec"], claim(V1BETA1, "one")["spec"]);
}

#[tokio::test]
async fn a_pool_without_a_group_has_none_in_both_versions() {
    let server = server(BOTH);
    let mut object = claim(V1BETA1, "one");
    object["spec"]["poolRef"]["apiGroup"] = json!("");
    created(&server, "ipaddressclaims", &object).await;
    for version in [V1BETA1, V1BETA2] {
        let shown = get(&server, &format!("{}/one", path(version, "ipaddressclaims"))).await.1;
        assert_eq!(shown["spec"]["poolRef"], json!({"kind": "GlobalIPPool", "name": "pool"}));
    }
}

#[tokio::test]
async fn lists_and_watches_of_each_version_show_all_objects() {
    let server = server(BOTH);
    created(&server, "ipaddresses", &address(V1BETA1, "a")).await;
    created(&server, "ipaddresses", &address(V1BETA2, "b")).await;
    for version in [V1BETA1, V1BETA2] {
        let all = path(version, "ipaddresses");
        let (_, list) = get(&server, &all).await;
        let mut watch = watched(&server, &format!("{all}?watch=1")).await;
        for name in ["a", "b"] {
            let index = usize::from(name == "b");
            let event = watch.next().await.unwrap();
            assert_eq!(event["type"], "ADDED");
            for object in [&list["items"][index], &event["object"]] {
                let expected = address(version, name);
                assert_eq!(
                    (&object["apiVersion"], &object["spec"]),
                    (&expected["apiVersion"], &expected["spec"])
                );
                assert_eq!(object["metadata"]["name"], name);
            }
        }
    }
}

#[tokio::test]
async fn events_of_one_version_are_those_of_the_other() {
    let server = server(BOTH);
    let mut watches = Vec::new();
    for version in [V1BETA1, V1BETA2] {
        let from = get(&server, &path(version, "ipaddressclaims")).await.1;
        let from = from["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let all = path(version, "ipaddressclaims");
        watches.push((version, watched(&server, &format!("{all}?watch=1&resourceVersion={from}")).await));
    }
    created(&server, "ipaddressclaims", &claim(V1BETA1, "one")).await;
    let one = format!("{}/one", path(V1BETA2, "ipaddressclaims"));
    let status = json!({"status": {"conditions": [condition("Ready", "PoolExhausted")]}});
    patched(&server, &format!("{one}/status"), status).await;
    ask(&server, reqwest::Method::DELETE, &one, Value::Null).await;
    for (version, watch) in &mut watches {
        for kind in ["ADDED", "MODIFIED", "DELETED"] {
            let event = watch.next().await.unwrap();
            assert_eq!(event["type"], kind);
            let object = &event["object"];
            assert_eq!(object["apiVersion"], format!("ipam.cluster.x-k8s.io/{version}"));
            let own = if *version == V1BETA1 { "/status/v1beta2/conditions" } else { "/status/conditions" };
            let reason = object.pointer(own).map(|all| all[0]["reason"].clone());
            assert_eq!(reason, (kind != "ADDED").then(|| json!("PoolExhausted")), "{version} {kind}");
        }
    }
}

#[tokio::test]
async fn a_cluster_is_paused_in_both_versions() {
    let server = server(BOTH);
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c1"},
        "spec": {"paused": true, "clusterNetwork": {"serviceDomain": "x"}},
    });
    created(&server, "clusters", &cluster).await;
    let one = format!("{}/c1", path(V1BETA2, "clusters"));
    assert_eq!(get(&server, &one).await.1["spec"], cluster["spec"]);
    patched(&server, &one, json!({"spec": {"paused": false}})).await;
    assert_eq!(get(&server, &format!("{}/c1", path(V1BETA1, "clusters"))).await.1["spec"]["paused"], false);
    let wrong = json!({"spec": {"paused": "yes"}});
    assert_eq!(ask(&server, reqwest::Method::PATCH, &one, wrong).await.0, 422);
}
