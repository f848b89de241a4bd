//! Lists with pages, and watches with bookmarks and an end of their history.

use serde_json::{Value, json};
use test_apiserver::Fault;

use super::cluster::{Cluster, config_map};

fn names(list: &Value) -> String {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|one| one["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn pages_show_one_version_of_the_collection() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    for name in ["a", "b", "c", "d"] {
        cluster.post(&all, &config_map(name)).await.expect(201);
    }
    let path = format!("{all}?labelSelector=app%3Dweb&limit=2");
    let first = cluster.get(&path).await.expect(200);
    assert_eq!((names(&first).as_str(), first["kind"].as_str()), ("a b", Some("ConfigMapList")));
    let next = first["metadata"]["continue"].as_str().expect("another page");
    // The second page shows the version of the first page.
    cluster.delete(&format!("{all}/c"), json!({})).await.expect(200);
    cluster.post(&all, &config_map("e")).await.expect(201);
    let second = cluster.get(&format!("{path}&continue={next}")).await.expect(200);
    assert_eq!(names(&second), "c d");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert!(second["metadata"]["continue"].as_str().unwrap_or_default().is_empty());
    let by_name = cluster.get(&format!("{all}?fieldSelector=metadata.name%3Da")).await.expect(200);
    assert_eq!(names(&by_name), "a");
    let unknown = cluster.get(&format!("{all}?fieldSelector=spec.unknown%3Da")).await;
    unknown.refused(400, "BadRequest");
    cluster.get(&format!("{all}?continue=nonsense")).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn a_watch_continues_a_list() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    cluster.post(&all, &config_map("old")).await.expect(201);
    let list = cluster.get(&all).await.expect(200);
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let query = "watch=true&allowWatchBookmarks=true&labelSelector=app%3Dweb";
    let mut watch = cluster.watch(&format!("{all}?{query}&resourceVersion={from}")).await;
    cluster.post(&all, &config_map("new")).await.expect(201);
    assert_eq!(watch.change().await.unwrap(), "ADDED new");
    cluster.merge(&format!("{all}/new"), json!({"data": {"x": "y"}})).await.expect(200);
    assert_eq!(watch.change().await.unwrap(), "MODIFIED new");
    // For the watch, an object that no longer matches the selector is deleted.
    cluster.merge(&format!("{all}/old"), json!({"metadata": {"labels": {"app": "db"}}})).await.expect(200);
    assert_eq!(watch.change().await.unwrap(), "DELETED old");
    cluster.delete(&format!("{all}/new"), json!({})).await.expect(200);
    assert_eq!(watch.change().await.unwrap(), "DELETED new");
    let bookmark = watch.next().await.unwrap();
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("ConfigMap")));
    let version = bookmark["object"]["metadata"]["resourceVersion"].as_str().unwrap();
    assert!(version.parse::<u64>().unwrap() > from.parse::<u64>().unwrap(), "{bookmark}");
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_is_refused_with_410() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let Some(server) = cluster.own_server() else {
        println!("skipped: a real API server forgets nothing on request");
        return;
    };
    server.fault(Fault::Compact);
    cluster.get(&format!("{all}?watch=true&resourceVersion=1")).await.refused(410, "Expired");
}
