//! Versions that a server serves, and their change while it runs.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use test_apiserver::{ApiServer, ClusterApi, ClusterApiVersion};

use super::objects::{BOTH, V1BETA1, V1BETA2, claim, condition, created, patched, path, server};
use crate::client::{ask, get, watched};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ipaddressclaims.ipam.cluster.x-k8s.io";

/// Versions that the server serves.
async fn served(server: &ApiServer) -> Vec<String> {
    let group = get(server, "/apis/ipam.cluster.x-k8s.io").await.1;
    let versions = group["versions"].as_array().unwrap();
    versions.iter().map(|one| one["version"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn one_version_alone_is_served() {
    for (versions, own, other) in
        [(ClusterApi::V1Beta1Only, V1BETA1, V1BETA2), (ClusterApi::V1Beta2Only, V1BETA2, V1BETA1)]
    {
        let server = server(versions);
        assert_eq!(served(&server).await, [own]);
        let shown = created(&server, "ipaddressclaims", &claim(own, "one")).await;
        // Nothing is converted.
        assert!(shown.get("status").is_none(), "{shown}");
        assert_eq!(get(&server, &format!("{}/one", path(other, "ipaddressclaims"))).await.0, 404);
        let definition = get(&server, DEFINITION).await.1;
        assert_eq!(definition["status"]["storedVersions"], json!([own]));
    }
}

#[tokio::test]
async fn an_upgrade_keeps_objects_and_ends_watches() {
    let server = server(ClusterApi::V1Beta1Only);
    created(&server, "ipaddressclaims", &claim(V1BETA1, "one")).await;
    let old = path(V1BETA1, "ipaddressclaims");
    let mut watch = watched(&server, &format!("{old}?watch=1")).await;
    assert_eq!(watch.change().await.unwrap(), "ADDED one");
    server.serve_cluster_api(BOTH);
    assert_eq!(watch.change().await, None);
    assert_eq!(served(&server).await, [V1BETA2, V1BETA1]);
    let new = path(V1BETA2, "ipaddressclaims");
    let shown = get(&server, &format!("{new}/one")).await.1;
    assert_eq!(shown["spec"], claim(V1BETA2, "one")["spec"]);
    // An unchanged definition is no change.
    let mut watch = watched(&server, &format!("{old}?watch=1")).await;
    assert_eq!(watch.change().await.unwrap(), "ADDED one");
    server.serve_cluster_api(BOTH);
    created(&server, "ipaddressclaims", &claim(V1BETA2, "two")).await;
    assert_eq!(watch.change().await.unwrap(), "ADDED two");
    server.serve_cluster_api(ClusterApi::V1Beta2Only);
    assert_eq!(watch.change().await, None);
    assert_eq!(get(&server, &old).await.0, 404);
    assert_eq!(get(&server, &new).await.1["items"].as_array().unwrap().len(), 2);
    let definition = get(&server, DEFINITION).await.1;
    assert_eq!(definition["status"]["storedVersions"], json!([V1BETA1, V1BETA2]));
}

#[tokio::test]
async fn a_write_without_a_change_migrates_an_object() {
    let server = server(ClusterApi::Both { storage: ClusterApiVersion::V1Beta1 });
    let before = created(&server, "ipaddressclaims", &claim(V1BETA2, "one")).await;
    let one = format!("{}/one", path(V1BETA2, "ipaddressclaims"));
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&patched(&server, &one, json!({})).await), version(&before));
    server.serve_cluster_api(BOTH);
    let migrated = patched(&server, &one, json!({})).await;
    assert_ne!(version(&migrated), version(&before));
    assert_eq!(version(&patched(&server, &one, json!({})).await), version(&migrated));
}

#[tokio::test]
async fn a_change_of_the_storage_under_load_loses_nothing() {
    const CLAIMS: usize = 30;
    let server = Arc::new(server(ClusterApi::Both { storage: ClusterApiVersion::V1Beta1 }));
    let write = async |server: Arc<ApiServer>, version: &'static str, step: usize| {
        for number in (0..CLAIMS).filter(|number| number % 2 == step) {
            let name = format!("claim-{number}");
            created(&server, "ipaddressclaims", &claim(version, &name)).await;
            let one = format!("{}/{name}", path(version, "ipaddressclaims"));
            patched(&server, &one, json!({"metadata": {"finalizers": ["test.dev/hold"]}})).await;
            let conditions = json!({"conditions": [condition("Ready", "PoolExhausted")]});
            let status = if version == V1BETA1 { json!({"v1beta2": conditions}) } else { conditions };
            patched(&server, &format!("{one}/status"), json!({"status": status})).await;
        }
    };
    let writers = [
        tokio::spawn(write(Arc::clone(&server), V1BETA1, 0)),
        tokio::spawn(write(Arc::clone(&server), V1BETA2, 1)),
    ];
    let mut storage = ClusterApiVersion::V1Beta1;
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        storage = match storage {
            ClusterApiVersion::V1Beta1 => ClusterApiVersion::V1Beta2,
            ClusterApiVersion::V1Beta2 => ClusterApiVersion::V1Beta1,
        };
        server.serve_cluster_api(ClusterApi::Both { storage });
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    for (version, conditions) in [(V1BETA1, "/status/v1beta2/conditions"), (V1BETA2, "/status/conditions")] {
        let list = get(&server, &path(version, "ipaddressclaims")).await.1;
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), CLAIMS);
        for item in items {
            let reason = item.pointer(conditions).map(|all| all[0]["reason"].clone());
            assert_eq!(reason, Some(json!("PoolExhausted")), "{item}");
            assert_eq!(item["metadata"]["finalizers"], json!(["test.dev/hold"]));
        }
    }
    let one = format!("{}/claim-0", path(V1BETA1, "ipaddressclaims"));
    assert_eq!(ask(&server, Method::GET, &one, Value::Null).await.0, 200);
}
