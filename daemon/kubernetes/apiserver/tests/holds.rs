//! Requests that the server holds.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use test_apiserver::{ApiServer, ClusterApi, Fault, Stage};
use tokio::task::JoinHandle;

use crate::client::{ask, client, get};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Creation of an object by a client of its own, which ends with the task.
fn create(server: &ApiServer, name: &str) -> JoinHandle<u16> {
    let (url, body) = (format!("{}{MAPS}", server.url()), map(name).to_string());
    let request = client().post(url).header("content-type", "application/json").body(body);
    tokio::spawn(async move { request.send().await.unwrap().status().as_u16() })
}

fn hold(verb: &'static str, plural: &'static str, skip: usize, stage: Stage) -> Fault {
    Fault::Hold { verb, plural, skip, stage }
}

#[tokio::test]
async fn the_first_request_after_those_skipped_is_held_until_the_server_heals() {
    let server = ApiServer::start();
    server.fault(hold("create", "configmaps", 1, Stage::Before));
    assert_eq!(ask(&server, Method::POST, MAPS, map("a")).await.0, 201);
    let second = create(&server, "b");
    let held = server.held().await;
    assert_eq!((held.verb, held.resource.as_str(), held.path.as_str()), ("create", "configmaps", MAPS));
    assert_eq!(get(&server, &format!("{MAPS}/b")).await.0, 404);
    // Later requests pass.
    assert_eq!(ask(&server, Method::POST, MAPS, map("c")).await.0, 201);
    assert!(!second.is_finished());
    server.fault(Fault::Heal);
    assert_eq!(second.await.unwrap(), 201);
    server.none_held().await;
    assert_eq!(get(&server, &format!("{MAPS}/b")).await.0, 200);
}

#[tokio::test]
async fn a_held_request_is_not_applied_after_the_end_of_its_connection() {
    for is_noticed in [true, false] {
        let server = ApiServer::start();
        server.fault(hold("create", "configmaps", 0, Stage::Before));
        let request = create(&server, "a");
        server.held().await;
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        if is_noticed {
            server.none_held().await;
        }
        server.fault(Fault::Heal);
        server.none_held().await;
        assert_eq!(ask(&server, Method::POST, MAPS, map("z")).await.0, 201);
        assert_eq!(get(&server, &format!("{MAPS}/a")).await.0, 404, "{is_noticed}");
    }
}

#[tokio::test]
async fn an_answer_is_held_after_its_request_is_applied() {
    let server = ApiServer::start();
    server.put(MAPS, map("taken"));
    server.fault(hold("create", "configmaps", 0, Stage::After));
    // A refused request isn't applied, and so not held.
    assert_eq!(ask(&server, Method::POST, MAPS, map("taken")).await.0, 409);
    let request = create(&server, "a");
    server.held().await;
    assert_eq!(get(&server, &format!("{MAPS}/a")).await.0, 200);
    assert!(!request.is_finished());
    request.abort();
    server.none_held().await;
    // The lost client repeats its request.
    assert_eq!(ask(&server, Method::POST, MAPS, map("a")).await.0, 409);
}

#[tokio::test]
async fn writes_of_a_status_are_held_apart() {
    let server = ApiServer::start();
    server.serve_cluster_api(ClusterApi::V1Beta2Only);
    let claims = "/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/default/ipaddressclaims";
    let pool = json!({"apiGroup": "test.dev", "kind": "Pool", "name": "p"});
    server.put(claims, json!({"metadata": {"name": "one"}, "spec": {"poolRef": pool}}));
    let one = format!("{claims}/one");
    server.fault(hold("patch", "ipaddressclaims/status", 0, Stage::Before));
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(ask(&server, Method::PATCH, &one, labels).await.0, 200);
    let status = json!({"status": {"addressRef": {"name": "one"}}});
    let path = format!("{one}/status");
    let (answer, held) = tokio::join!(ask(&server, Method::PATCH, &path, status), async {
        let held = server.held().await;
        let before = get(&server, &one).await.1;
        server.fault(Fault::Heal);
        assert!(before.get("status").is_none(), "{before}");
        held
    });
    assert_eq!((answer.0, held.resource.as_str()), (200, "ipaddressclaims/status"));
    assert_eq!(answer.1["status"]["addressRef"]["name"], "one");
}

#[tokio::test]
async fn a_hold_without_a_request_ends_as_well() {
    let server = ApiServer::start();
    server.fault(hold("create", "configmaps", 0, Stage::Before));
    let nothing = tokio::time::timeout(Duration::from_millis(50), server.held()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    server.fault(Fault::Heal);
    assert_eq!(ask(&server, Method::POST, MAPS, map("a")).await.0, 201);
}
