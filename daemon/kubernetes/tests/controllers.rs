//! Ends of controllers.

use serde_json::{Value, json};
use test_apiserver::{Fault, Resource};

use crate::fixture::{Fixture, Recorder, Running, endpoint};

fn ends(servers: &Recorder) -> Vec<Value> {
    servers.sent("/v1/controllers/end").into_iter().map(|sent| sent.body["controller"].clone()).collect()
}

/// Holds an address of a sticky endpoint whose pod is not there.
fn hold(fixture: &Fixture, controller: &Value) {
    let mut row = endpoint("pod", "web-0", "", controller.clone());
    row.as_object_mut().unwrap().remove("uid");
    row["uid"] = Value::Null;
    fixture.servers.hold(row);
}

async fn with_node(fixture: &Fixture) -> Running {
    fixture.node("n1");
    fixture.synced().await
}

#[tokio::test]
async fn a_deleted_controller_ends() {
    for (group, kind, plural) in [
        ("apps", "Deployment", "deployments"),
        ("apps", "StatefulSet", "statefulsets"),
        ("apps", "DaemonSet", "daemonsets"),
        ("batch", "Job", "jobs"),
        ("batch", "CronJob", "cronjobs"),
    ] {
        let fixture = Fixture::new();
        let path = format!("/apis/{group}/v1/namespaces/shop/{plural}");
        fixture.cluster.put(&path, json!({"metadata": {"name": "web", "uid": "c1"}}));
        let controller = json!({"group": group, "kind": kind, "name": "web", "uid": "c1"});
        hold(&fixture, &controller);
        let mut running = with_node(&fixture).await;
        running.until(|status| status.counts.controllers == 1).await;
        assert!(fixture.cluster.remove(&format!("{path}/web")));
        fixture.servers.until(kind, |servers| (ends(servers) == [controller.clone()]).then_some(())).await;
    }
}

#[tokio::test]
async fn a_controller_that_went_unwatched_ends_after_two_scans_and_a_quorum_read() {
    let fixture = Fixture::new();
    let controller = json!({"group": "apps", "kind": "StatefulSet", "name": "web", "uid": "c1"});
    let path = "/apis/apps/v1/namespaces/shop/statefulsets";
    fixture.cluster.put(path, json!({"metadata": {"name": "web", "uid": "c2"}}));
    hold(&fixture, &controller);
    let mut running = with_node(&fixture).await;
    fixture.servers.until("the end", |servers| (ends(servers) == [controller.clone()]).then_some(())).await;
    running.scans(4).await;
    assert_eq!(ends(&fixture.servers).len(), 1, "it ends once");
}

#[tokio::test]
async fn a_controller_of_another_kind_ends_once_its_object_is_gone() {
    let fixture = Fixture::new();
    let text = |text: &str| text.to_owned();
    let controller = json!({"group": "example.com", "kind": "Rollout", "name": "web", "uid": "r1"});
    hold(&fixture, &controller);
    let mut running = with_node(&fixture).await;
    running.scans(4).await;
    assert!(ends(&fixture.servers).is_empty(), "the API server does not know its kind");
    fixture.cluster.fault(Fault::Forbid { verb: "get", plural: "rollouts" });
    fixture.cluster.add_resource(Resource {
        group: text("example.com"),
        version: text("v1alpha1"),
        plural: text("rollouts"),
        kind: text("Rollout"),
        is_namespaced: true,
    });
    running.scans(4).await;
    assert!(ends(&fixture.servers).is_empty(), "the API server does not show it");
    let path = "/apis/example.com/v1alpha1/namespaces/shop/rollouts";
    fixture.cluster.put(path, json!({"metadata": {"name": "web", "uid": "r1"}}));
    fixture.cluster.fault(Fault::Heal);
    running.scans(4).await;
    assert!(ends(&fixture.servers).is_empty(), "it exists");
    assert!(fixture.cluster.remove(&format!("{path}/web")));
    fixture.servers.until("the end", |servers| (ends(servers) == [controller.clone()]).then_some(())).await;
}

#[tokio::test]
async fn a_machine_ends_with_its_vm() {
    let fixture = Fixture::new();
    for (plural, kind) in
        [("virtualmachines", "VirtualMachine"), ("virtualmachineinstances", "VirtualMachineInstance")]
    {
        let (group, version) = ("kubevirt.io".to_owned(), "v1".to_owned());
        let (plural, kind) = (plural.to_owned(), kind.to_owned());
        fixture.cluster.add_resource(Resource { group, version, plural, kind, is_namespaced: true });
    }
    let below = |plural: &str| format!("/apis/kubevirt.io/v1/namespaces/shop/{plural}");
    let (vms, machines) = (below("virtualmachines"), below("virtualmachineinstances"));
    fixture.cluster.put(&vms, json!({"metadata": {"name": "db", "uid": "v1"}}));
    fixture.cluster.put(&machines, json!({"metadata": {"name": "db", "uid": "m1"}}));
    let controller =
        json!({"group": "kubevirt.io", "kind": "VirtualMachineInstance", "name": "db", "uid": "m1"});
    hold(&fixture, &controller);
    let mut running = with_node(&fixture).await;
    running.until(|status| status.counts.controllers == 2).await;
    assert!(fixture.cluster.remove(&format!("{machines}/db")));
    running.until(|status| status.counts.controllers == 1).await;
    running.scans(4).await;
    assert!(ends(&fixture.servers).is_empty(), "the VM is stopped");
    assert!(fixture.cluster.remove(&format!("{vms}/db")));
    fixture.servers.until("the end", |servers| (ends(servers) == [controller.clone()]).then_some(())).await;
}
