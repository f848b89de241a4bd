//! Faults, and the handle of the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ipam_api::tls::{VERSIONS, provider};
use reqwest::Method;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCertUsingSni;
use serde_json::{Value, json};
use test_apiserver::{ApiServer, Fault, Hostility};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{ask, client, get, watched};

const PODS: &str = "/api/v1/namespaces/shop/pods";

fn pod(name: &str, node: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"nodeName": node}})
}

#[tokio::test]
async fn an_object_is_created_read_changed_and_deleted() {
    let server = ApiServer::start();
    server.put("/api/v1/namespaces", json!({"metadata": {"name": "shop"}}));
    let (code, created) = ask(&server, Method::POST, PODS, pod("web-0", "n1")).await;
    assert_eq!((code, created["kind"].as_str()), (201, Some("Pod")));
    assert!(created["metadata"]["uid"].is_string() && created["metadata"]["namespace"] == "shop");
    assert_eq!(ask(&server, Method::POST, PODS, pod("web-0", "n1")).await.1["reason"], "AlreadyExists");
    let one = format!("{PODS}/web-0");
    assert_eq!(get(&server, &one).await, (200, created.clone()));
    // Another version in between makes the first one stale.
    let patched =
        ask(&server, Method::PATCH, &one, json!({"metadata": {"labels": {"app": null, "tier": "a"}}}));
    assert_eq!(patched.await.1["metadata"]["labels"], json!({"tier": "a"}));
    assert_eq!(ask(&server, Method::PUT, &one, created).await.0, 409);
    let running = json!({"status": {"phase": "Running"}});
    let status = ask(&server, Method::PATCH, &format!("{one}/status"), running).await.1;
    assert_eq!(status["status"]["phase"], "Running");
    // A write of the object doesn't change its status.
    let ignored = ask(&server, Method::PATCH, &one, json!({"status": {"phase": "Failed"}}));
    assert_eq!(ignored.await.1["status"]["phase"], "Running");
    let finalized = json!({"metadata": {"finalizers": ["x/y"]}});
    assert_eq!(ask(&server, Method::PATCH, &one, finalized).await.0, 200);
    let now = json!({"gracePeriodSeconds": 0});
    assert!(ask(&server, Method::DELETE, &one, now).await.1["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(ask(&server, Method::PATCH, &one, json!({"metadata": {"finalizers": null}})).await.0, 200);
    assert_eq!(get(&server, &one).await.0, 404);
    let verbs: Vec<&str> = server.requests().iter().map(|request| request.verb).collect();
    assert_eq!(&verbs[..4], ["create", "create", "get", "patch"]);
}

#[tokio::test]
async fn lists_have_pages_and_selectors() {
    let server = ApiServer::start();
    for number in 0..5 {
        server.put(PODS, pod(&format!("web-{number}"), if number < 3 { "n1" } else { "n2" }));
    }
    let names = |list: &Value| {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let path = "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=2";
    let (_, first) = get(&server, path).await;
    assert_eq!((names(&first).as_str(), first["kind"].as_str()), ("web-0 web-1", Some("PodList")));
    let next = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = get(&server, &format!("{path}&continue={next}")).await;
    assert_eq!(names(&second), "web-2");
    assert!(second["metadata"]["continue"].is_null());
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    // A cached list has no pages.
    assert_eq!(names(&get(&server, "/api/v1/pods?limit=2&resourceVersion=0").await.1).split(' ').count(), 5);
    server.fault(Fault::Compact);
    assert_eq!(get(&server, &format!("{path}&continue={next}")).await.0, 410);
    server.fault(Fault::Stale);
    server.remove(&format!("{PODS}/web-4"));
    let n2 = "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2";
    assert_eq!(names(&get(&server, n2).await.1), "web-3 web-4");
    server.fault(Fault::Fresh);
    assert_eq!(names(&get(&server, n2).await.1), "web-3");
}

#[tokio::test]
async fn a_watch_has_changes_bookmarks_and_ends() {
    let server = ApiServer::start();
    server.put(PODS, pod("old", "n1"));
    let (_, list) = get(&server, "/api/v1/pods").await;
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!(
        "/api/v1/pods?watch=1&allowWatchBookmarks=true&fieldSelector=spec.nodeName=n1&resourceVersion={from}"
    );
    let mut watch = watched(&server, &path).await;
    server.put(PODS, pod("other", "n2"));
    server.put(PODS, pod("web-0", "n1"));
    assert_eq!(watch.change().await.unwrap(), "ADDED web-0");
    server.put(PODS, pod("web-0", "n1"));
    assert_eq!(watch.change().await.unwrap(), "MODIFIED web-0");
    // A pod that moves to the node is added, and a pod that leaves the node is deleted.
    server.put(PODS, pod("other", "n1"));
    assert_eq!(watch.change().await.unwrap(), "ADDED other");
    server.put(PODS, pod("other", "n2"));
    assert_eq!(watch.change().await.unwrap(), "DELETED other");
    server.remove(&format!("{PODS}/web-0"));
    assert_eq!(watch.change().await.unwrap(), "DELETED web-0");
    let bookmark = watch.next().await.unwrap();
    assert_eq!(
        (bookmark["type"].as_str(), bookmark["object"]["kind"].as_str()),
        (Some("BOOKMARK"), Some("Pod"))
    );
    server.fault(Fault::Freeze);
    server.put(PODS, pod("late", "n1"));
    let silent = tokio::time::timeout(Duration::from_millis(1500), watch.next()).await;
    assert!(silent.is_err(), "{silent:?}");
    server.fault(Fault::Thaw);
    assert_eq!(watch.change().await.unwrap(), "ADDED late");
    server.fault(Fault::Compact);
    assert_eq!(watch.change().await.unwrap(), "ERROR ");
    assert_eq!(watch.next().await, None);
    assert_eq!(get(&server, &path).await.0, 410);
    let mut all = watched(&server, "/api/v1/pods?watch=1&fieldSelector=spec.nodeName=n1").await;
    assert_eq!(all.change().await.unwrap(), "ADDED late");
    server.fault(Fault::DropWatches);
    while all.change().await.is_some() {}
}

#[tokio::test]
async fn metadata_alone_is_sent_on_request() {
    let server = ApiServer::start();
    server.put(PODS, pod("web-0", "n1"));
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let request = client().get(format!("{}/api/v1/pods", server.url())).header("accept", accept);
    let list: Value = serde_json::from_slice(&request.send().await.unwrap().bytes().await.unwrap()).unwrap();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert!(list["items"][0]["metadata"]["name"] == "web-0" && list["items"][0]["spec"].is_null());
    // An object is no list.
    let one = client().get(format!("{}{PODS}/web-0", server.url())).header("accept", accept);
    assert_eq!(one.send().await.unwrap().status(), 406);
}

#[tokio::test]
async fn faults_refuse_forbid_and_flood() {
    let server = ApiServer::start();
    server.fault(Fault::Fail { code: 429, count: 1, retry_after: Some(3) });
    let url = format!("{}/api/v1/pods", server.url());
    let response = client().get(&url).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (429, "3"));
    assert_eq!(get(&server, "/api/v1/pods").await.0, 200);
    server.fault(Fault::Forbid { verb: "list", plural: "pods" });
    assert_eq!(get(&server, "/api/v1/pods").await.1["reason"], "Forbidden");
    server.fault(Fault::Hostile(Hostility::Endless(b"x".to_vec())));
    let mut endless = client().get(&url).send().await.unwrap();
    for _ in 0..3 {
        assert!(!endless.chunk().await.unwrap().unwrap().is_empty());
    }
    server.fault(Fault::Heal);
    assert_eq!(get(&server, "/api/v1/pods").await.0, 200);
    server.set_tokens(&["good"]);
    assert_eq!(get(&server, "/api/v1/pods").await.0, 401);
    let good = client().get(&url).header("authorization", "Bearer good").send().await.unwrap();
    assert_eq!(good.status(), 200);
}

#[tokio::test]
async fn a_failure_of_no_request_is_no_fault() {
    let server = ApiServer::start();
    server.fault(Fault::Fail { code: 500, count: 0, retry_after: None });
    assert_eq!(get(&server, "/api/v1/pods").await.0, 200);
}

#[tokio::test]
async fn a_client_without_a_handshake_blocks_no_other_client() {
    // Without a certificate, each handshake fails. The test needs none that succeeds.
    let no_certificate = Arc::new(ResolvesServerCertUsingSni::new());
    let config = ServerConfig::builder_with_provider(provider());
    let config = config.with_protocol_versions(VERSIONS).unwrap().with_no_client_auth();
    let config = config.with_cert_resolver(no_certificate);
    let server = ApiServer::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), Some(Arc::new(config)));
    let address = server.url().replace("https://", "");
    let _silent = TcpStream::connect(&address).await.unwrap();
    let mut client = TcpStream::connect(&address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    // The server ends this connection, since its bytes are no handshake. A reset is an end, too.
    let mut answer = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(60), client.read_to_end(&mut answer)).await;
    assert!(end.is_ok(), "the server waits for the silent client");
}

#[tokio::test]
async fn a_stopped_server_refuses_connections_and_keeps_its_objects() {
    let mut server = ApiServer::start();
    server.put(PODS, pod("web-0", "n1"));
    let mut watch = watched(&server, "/api/v1/pods?watch=1").await;
    assert_eq!(watch.change().await.unwrap(), "ADDED web-0");
    let url = server.url();
    server.stop();
    assert!(watch.is_cut().await, "its connections are cut");
    assert!(client().get(format!("{url}/api/v1/pods")).send().await.is_err());
    server.restart();
    assert_eq!(server.url(), url);
    assert_eq!(get(&server, &format!("{PODS}/web-0")).await.0, 200);
}

#[tokio::test]
async fn a_definition_that_a_test_puts_is_served() {
    let server = ApiServer::start();
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}},
    }});
    let definition = json!({"metadata": {"name": "widgets.test.dev"}, "spec": {
        "group": "test.dev", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
    }});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.put(definitions, definition);
    let widgets = "/apis/test.dev/v1/namespaces/shop/widgets";
    server.put(widgets, json!({"metadata": {"name": "one"}, "spec": {}}));
    assert_eq!(get(&server, &format!("{widgets}/one")).await.1["spec"]["size"], 3);
    assert!(server.remove(&format!("{definitions}/widgets.test.dev")));
    assert_eq!(get(&server, widgets).await.0, 404);
}

#[tokio::test]
async fn resources_are_discovered() {
    let server = ApiServer::start();
    assert_eq!(get(&server, "/version").await.1["major"], "1");
    let apps = get(&server, "/apis/apps/v1").await.1;
    let is_listed = |one: &Value| one["name"] == "deployments" && one["namespaced"] == true;
    assert!(apps["resources"].as_array().unwrap().iter().any(is_listed), "{apps}");
    assert_eq!(get(&server, "/apis/unknown/v1").await.0, 404);
    assert_eq!(get(&server, "/api/v1/widgets").await.0, 404);
}

#[tokio::test]
async fn a_stale_cache_shows_in_lists_from_the_cache_alone() {
    let server = ApiServer::start();
    server.put(PODS, pod("web-0", "n1"));
    server.fault(Fault::StaleCache);
    server.put(PODS, pod("web-1", "n1"));
    let count = async |query: &str| {
        let (_, list) = get(&server, &format!("/api/v1/pods{query}")).await;
        list["items"].as_array().unwrap().len()
    };
    assert_eq!((count("?resourceVersion=0").await, count("").await), (1, 2));
    assert_eq!(get(&server, &format!("{PODS}/web-1?resourceVersion=0")).await.0, 200);
    server.fault(Fault::Fresh);
    assert_eq!(count("?resourceVersion=0").await, 2);
}

#[tokio::test]
async fn an_unavailable_server_cuts_and_refuses_connections_until_it_heals() {
    let server = ApiServer::start();
    server.put(PODS, pod("web-0", "n1"));
    let mut watch = watched(&server, "/api/v1/pods?watch=1").await;
    assert_eq!(watch.change().await.unwrap(), "ADDED web-0");
    server.fault(Fault::Unavailable);
    assert!(watch.is_cut().await, "its connections are cut");
    // A connection that the kernel accepted before is cut, and later ones are refused.
    while !client().get(format!("{}/api/v1/pods", server.url())).send().await.unwrap_err().is_connect() {}
    // Objects still change meanwhile, as through another server of the cluster.
    server.put(PODS, pod("web-1", "n1"));
    server.fault(Fault::Heal);
    assert_eq!(get(&server, &format!("{PODS}/web-1")).await.0, 200);
}

#[tokio::test]
async fn a_slow_server_answers_after_it_heals() {
    let server = ApiServer::start();
    server.fault(Fault::Slow { delay: Duration::from_secs(3600) });
    let request = client().get(format!("{}/api/v1/pods", server.url())).timeout(Duration::from_millis(200));
    assert!(request.send().await.unwrap_err().is_timeout());
    server.fault(Fault::Heal);
    assert_eq!(get(&server, "/api/v1/pods").await.0, 200);
}

#[tokio::test]
async fn times_of_objects_are_those_of_the_clock() {
    let server = ApiServer::start();
    server.put("/api/v1/namespaces", json!({"metadata": {"name": "shop"}}));
    server.set_clock("2026-03-01T12:00:00.5Z");
    let (_, created) = ask(&server, Method::POST, PODS, pod("web-0", "n1")).await;
    assert_eq!(created["metadata"]["creationTimestamp"], "2026-03-01T12:00:00Z");
    server.set_clock("2026-03-01T13:59:50Z");
    let one = format!("{PODS}/web-0");
    // The deletion timestamp includes the grace period in which a node stops the pod.
    let (_, deleted) = ask(&server, Method::DELETE, &one, Value::Null).await;
    assert_eq!(deleted["metadata"]["deletionTimestamp"], "2026-03-01T14:00:20Z");
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 30);
    let status = json!({"status": {"phase": "Failed"}});
    assert_eq!(ask(&server, Method::PATCH, &format!("{one}/status"), status).await.0, 200);
    let now = json!({"gracePeriodSeconds": 0});
    assert_eq!(ask(&server, Method::DELETE, &one, now).await.0, 200);
    assert_eq!(get(&server, &one).await.0, 404);
}
