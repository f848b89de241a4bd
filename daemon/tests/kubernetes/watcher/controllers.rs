//! Replicas and the end of controllers, and machines that migrate.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_apiserver::Resource;

use super::scene::{Scene, add, del, names};
use crate::support::ask::{get, put, subnet_with_pool};
use crate::support::until;

const SETS: &str = "/apis/apps/v1/namespaces/shop/statefulsets";

fn resource(group: &str, plural: &str, kind: &str) -> Resource {
    let [group, plural, kind] = [group, plural, kind].map(str::to_owned);
    Resource { group, version: "v1".to_owned(), plural, kind, is_namespaced: true }
}

fn set(scene: &Scene, name: &str, replicas: u32) -> String {
    let set = json!({"metadata": {"name": name}, "spec": {"replicas": replicas}});
    scene.api.put(SETS, set)["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Reference to the set in the metadata of a pod.
fn owned(set: &str, uid: &str) -> Value {
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set, "uid": uid, "controller": true});
    json!({"ownerReferences": [owner]})
}

async fn start_pod(scene: &Scene, set: &str, uid: &str, number: u32, pool: &str) {
    let fields = json!({
        "controller": {"group": "apps", "kind": "StatefulSet", "name": set, "uid": uid},
        "interfaces": [{"name": "eth0", "ipv4_pools": [pool]}],
    });
    scene.attached(&format!("{set}-{number}"), "n1", owned(set, uid), fields).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_7_a_stateful_set_that_shrinks_frees_the_surplus_unless_the_pool_keeps_it() {
    let scene = Scene::start(1).await;
    scene.synced().await;
    let kept = json!({"scale_down": "keep", "cooling_ms": 0});
    subnet_with_pool(&scene.ask(), "kept", "10.5.0.0/24", kept).await;
    let sets = [("db", "web"), ("mail", "kept")];
    let mut uids = Vec::new();
    for (name, pool) in sets {
        let uid = set(&scene, name, 3);
        for number in 0..3 {
            start_pod(&scene, name, &uid, number, pool).await;
        }
        uids.push(uid);
    }
    let before = scene.held().await;
    for (name, _) in sets {
        set(&scene, name, 1);
        for number in [2, 1] {
            scene.delete_pod(&format!("{name}-{number}"));
        }
    }
    scene.only(&names(&["db-0", "mail-0", "mail-1", "mail-2"])).await;
    for ((name, pool), uid) in sets.iter().zip(&uids) {
        set(&scene, name, 3);
        for number in [1, 2] {
            start_pod(&scene, name, uid, number, pool).await;
        }
    }
    scene.scans(3).await;
    let after = scene.held().await;
    assert_eq!(after.len(), 6);
    let address = |held: &[ipam_api::resource::Allocation], name: &str| {
        held.iter().find(|one| one.endpoint.name.as_str() == name).map(|one| one.address)
    };
    for name in ["db-0", "mail-0", "mail-1", "mail-2"] {
        assert_eq!(address(&after, name), address(&before, name), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_set_that_is_deleted_frees_what_its_pods_kept() {
    let scene = Scene::start(1).await;
    scene.synced().await;
    let uid = set(&scene, "db", 2);
    for number in 0..2 {
        start_pod(&scene, "db", &uid, number, "web").await;
    }
    scene.delete_pod("db-1");
    scene.scans(3).await;
    assert_eq!(scene.holders().await, names(&["db-0", "db-1"]), "its controller wants it");
    assert!(scene.api.remove(&format!("{SETS}/db")));
    scene.delete_pod("db-0");
    scene.only(&names(&[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_8_a_machine_that_migrates_keeps_its_address_when_either_pod_ends() {
    let scene = Scene::start(1).await;
    scene.synced().await;
    for (plural, kind) in
        [("virtualmachines", "VirtualMachine"), ("virtualmachineinstances", "VirtualMachineInstance")]
    {
        scene.api.add_resource(resource("kubevirt.io", plural, kind));
        let collection = format!("/apis/kubevirt.io/v1/namespaces/shop/{plural}");
        scene.api.put(&collection, json!({"metadata": {"name": "mail"}}));
    }
    let machine = json!({
        "endpoint": {"kind": "vm", "namespace": "shop", "name": "mail"},
        "controller": {"group": "kubevirt.io", "kind": "VirtualMachineInstance", "name": "mail"},
    });
    for (source, target) in [("a", "b"), ("c", "d")] {
        let mut uids = BTreeMap::new();
        for (pod, node) in [(source, "n1"), (target, "n2")] {
            let name = format!("virt-launcher-mail-{pod}");
            let owner = json!([{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                                "name": "mail",
                                "uid": "vmi", "controller": true}]);
            let uid = scene.pod(&name, node, json!({"ownerReferences": owner}));
            add(&scene.ask(), "default", (&name, node, &uid), machine.clone()).await.unwrap();
            uids.insert(name, uid);
        }
        let held = scene.held().await;
        assert_eq!(held.len(), 1, "both pods have the address: {held:?}");
        // Either of the two ends first.
        let order =
            if source == "a" { [(source, "n1"), (target, "n2")] } else { [(target, "n2"), (source, "n1")] };
        for (pod, node) in order {
            let name = format!("virt-launcher-mail-{pod}");
            del(&scene, node, &uids[&name]).await;
            scene.delete_pod(&name);
            scene.scans(3).await;
            assert_eq!(scene.held().await.len(), 1, "the machine keeps its address: {name}");
        }
    }
    for plural in ["virtualmachineinstances", "virtualmachines"] {
        assert!(scene.api.remove(&format!("/apis/kubevirt.io/v1/namespaces/shop/{plural}/mail")));
    }
    until("the address of the machine is free", async || match scene.held().await.as_slice() {
        [] => Ok(()),
        held => Err(format!("{held:?} {:?}", scene.status("default").await)),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pool_of_a_deployment_follows_its_replicas_and_its_end() {
    let scene = Scene::start(1).await;
    scene.synced().await;
    let subnet = json!({"name": "own", "cidr": "10.6.0.0/24", "automatic": {}});
    put(&scene.ask(), "subnets", subnet).await;
    let deployment = |replicas: u32| {
        let object = json!({"metadata": {"name": "shop"}, "spec": {"replicas": replicas}});
        let object = scene.api.put("/apis/apps/v1/namespaces/shop/deployments", object);
        object["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let uid = deployment(2);
    let fields = json!({
        "controller": {"group": "apps", "kind": "Deployment", "name": "shop", "uid": uid},
        "interfaces": [{"name": "eth0", "subnets": ["own"]}],
        "replicas": 2,
        "automatic_pool": {"size": "+1"},
    });
    scene.attached("shop-1", "n1", json!({}), fields).await;
    let ranges = async || -> Result<Vec<Value>, String> {
        let pools: Value =
            get(&scene.ask(), "/v1/pools?subnet=own").await.map_err(|problem| problem.detail)?;
        Ok(pools["items"].as_array().unwrap().iter().map(|pool| pool["ranges"].clone()).collect())
    };
    assert_eq!(ranges().await.unwrap(), [json!(["10.6.0.1-10.6.0.3"])]);
    deployment(5);
    until("the pool has room for five and one more", async || match ranges().await? {
        found if found == [json!(["10.6.0.1-10.6.0.6"])] => Ok(()),
        found => Err(format!("{found:?}")),
    })
    .await;
    assert!(scene.api.remove("/apis/apps/v1/namespaces/shop/deployments/shop"));
    scene.delete_pod("shop-1");
    until("the pool is gone", async || match ranges().await?.as_slice() {
        [] => Ok(()),
        found => Err(format!("{found:?}")),
    })
    .await;
}

/// Kinds of other groups are not watched: a read finds out that the owner is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_of_another_group_ends_once_the_api_server_confirms_it() {
    let scene = Scene::start(1).await;
    scene.synced().await;
    scene.api.add_resource(resource("apps.kruise.io", "clonesets", "CloneSet"));
    let set = scene
        .api
        .put("/apis/apps.kruise.io/v1/namespaces/shop/clonesets", json!({"metadata": {"name": "db"}}));
    let uid = &set["metadata"]["uid"];
    // The second one is of a kind that the API server does not have.
    for (name, kind) in [("db-0", "CloneSet"), ("other-0", "Unknown")] {
        let owner = name.split('-').next().unwrap();
        let fields = json!({
            "controller": {"group": "apps.kruise.io", "kind": kind, "name": owner, "uid": uid},
            "sticky": true,
        });
        let pod = scene.attached(name, "n1", json!({}), fields).await;
        del(&scene, "n1", &pod).await;
        scene.delete_pod(name);
    }
    scene.scans(3).await;
    assert_eq!(scene.holders().await, names(&["db-0", "other-0"]));
    assert!(scene.api.remove("/apis/apps.kruise.io/v1/namespaces/shop/clonesets/db"));
    scene.only(&names(&["other-0"])).await;
}
