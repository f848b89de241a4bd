//! Numbers of replicas.

use serde_json::{Value, json};

use crate::fixture::{Fixture, Recorder, endpoint};

const SETS: &str = "/apis/apps/v1/namespaces/shop/statefulsets";

fn set(replicas: u32) -> Value {
    json!({"metadata": {"name": "db", "uid": "s1"}, "spec": {"replicas": replicas}})
}

fn held(fixture: &Fixture, kind: &str, name: &str) {
    let controller = json!({"group": "apps", "kind": kind, "name": name, "uid": "s1"});
    for number in 0..3 {
        let pod = format!("{name}-{number}");
        let uid = fixture.bare_pod(&pod, "n1");
        fixture.servers.hold(endpoint("pod", &pod, &uid, controller.clone()));
    }
}

fn scales(servers: &Recorder) -> Vec<Value> {
    servers.sent("/v1/controllers/scale").into_iter().map(|sent| sent.body["replicas"].clone()).collect()
}

#[tokio::test]
async fn a_stateful_set_is_scaled_down_and_up() {
    let fixture = Fixture::new();
    fixture.node("n1");
    fixture.cluster.put(SETS, set(3));
    held(&fixture, "StatefulSet", "db");
    let mut running = fixture.synced().await;
    running.scans(2).await;
    assert!(scales(&fixture.servers).is_empty(), "the servers have no other number");
    for (replicas, expected) in [(1, vec![json!(1)]), (3, vec![json!(1), json!(3)])] {
        fixture.cluster.put(SETS, set(replicas));
        let is_it = |servers: &Recorder| (scales(servers) == expected).then_some(());
        fixture.servers.until("the scale", is_it).await;
    }
    let sent = fixture.servers.sent("/v1/controllers/scale").remove(0).body;
    assert_eq!(
        sent,
        json!({"realm": "prod", "namespace": "shop", "replicas": 1, "start": 0,
               "controller": {"group": "apps", "kind": "StatefulSet", "name": "db", "uid": "s1"}})
    );
    running.scans(3).await;
    assert_eq!(scales(&fixture.servers).len(), 2);
}

#[tokio::test]
async fn a_scale_before_the_watch_is_sent_by_a_scan() {
    let fixture = Fixture::new();
    fixture.node("n1");
    fixture.cluster.put(SETS, set(1));
    held(&fixture, "StatefulSet", "db");
    let mut running = fixture.synced().await;
    fixture.servers.until("the scale", |servers| (scales(servers) == [json!(1)]).then_some(())).await;
    running.scans(3).await;
    assert_eq!(scales(&fixture.servers).len(), 1, "kept addresses do not repeat it");
}

#[tokio::test]
async fn a_controller_without_addresses_is_not_recorded() {
    let fixture = Fixture::new();
    fixture.node("n1");
    fixture.cluster.put(SETS, set(3));
    // This is another controller with the same name.
    let other = json!({"group": "example.com", "kind": "StatefulSet", "name": "db", "uid": "s1"});
    fixture.servers.hold(endpoint("host", "rack-1", "h1", other));
    let mut running = fixture.synced().await;
    running.until(|status| status.counts.controllers == 1).await;
    fixture.cluster.put(SETS, set(1));
    fixture.cluster.remove(&format!("{SETS}/db"));
    running.until(|status| status.counts.controllers == 0).await;
    running.scans(2).await;
    assert!(fixture.servers.sent("/v1/controllers").is_empty());
}

#[tokio::test]
async fn the_pool_of_a_deployment_follows_its_replicas() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let collection = "/apis/apps/v1/namespaces/shop/deployments";
    let deployment =
        |replicas: u32| json!({"metadata": {"name": "web", "uid": "d1"}, "spec": {"replicas": replicas}});
    fixture.cluster.put(collection, deployment(2));
    let application = json!({
        "realm": "prod", "namespace": "shop", "interface": "eth0", "size": "+1", "replicas": 2,
        "standing": "present",
        "controller": {"group": "apps", "kind": "Deployment", "name": "web", "uid": "d1"},
    });
    fixture.servers.change(|model| model.pools.push(json!({"status": {"application": application}})));
    let mut running = fixture.synced().await;
    running.scans(2).await;
    assert!(scales(&fixture.servers).is_empty());
    fixture.cluster.put(collection, deployment(5));
    fixture.servers.until("the scale", |servers| (scales(servers) == [json!(5)]).then_some(())).await;
}
