//! Labels and readiness of nodes, labels and default pools of namespaces.

use ipam_api::client::Call;
use serde_json::{Value, json};

use super::scene::{Scene, add};
use crate::support::ask::{get, subnet_with_pool};
use crate::support::{LONG, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_3_the_next_add_sees_changed_labels_of_its_namespace_and_its_node() {
    let scene = Scene::start(3).await;
    for (name, cidr, selector) in [
        ("rack", "10.2.0.0/24", json!({"node_selector": "zone=a"})),
        ("team", "10.3.0.0/24", json!({"namespace_selector": "team=blue"})),
        ("own", "10.4.0.0/24", json!({})),
    ] {
        subnet_with_pool(&scene.ask(), name, cidr, selector).await;
    }
    let pools = ["rack", "team"];
    let mut number = 0;
    let mut allocates = async |pool: Option<&str>| {
        number += 1;
        let interface =
            pool.map_or(json!({"name": "eth0"}), |pool| json!({"name": "eth0", "ipv4_pools": [pool]}));
        let (name, fields) = (format!("p{number}"), json!({"interfaces": [interface]}));
        add(&scene.ask(), "default", (&name, "n1", &name), fields).await
    };
    for pool in pools {
        allocates(Some(pool)).await.unwrap_err();
    }
    let began = std::time::Instant::now();
    scene.node("n1", json!({"zone": "a"}), true);
    scene.api.put("/api/v1/namespaces", json!({"metadata": {"name": "shop", "labels": {"team": "blue"}}}));
    for pool in pools {
        until(&format!("{pool} serves the pod"), async || {
            allocates(Some(pool)).await.map(drop).map_err(|problem| problem.detail)
        })
        .await;
    }
    println!("h6_3: both labels were seen {:?} after their change", began.elapsed());
    let annotations = json!({"ipam.spidernet.io/default-ipv4-ippool": "[\"own\"]"});
    scene.api.put(
        "/api/v1/namespaces",
        json!({"metadata": {"name": "shop", "labels": {"team": "blue"}, "annotations": annotations}}),
    );
    until("the default pool of the namespace is used", async || {
        let given = allocates(None).await.map_err(|problem| problem.detail)?;
        let address = given.interfaces[0].addresses[0].address.to_string();
        if address.starts_with("10.4.0.") { Ok(()) } else { Err(address) }
    })
    .await;
    // A label that is gone no longer counts.
    scene.node("n1", json!({}), true);
    until("the pool refuses the node", async || match allocates(Some("rack")).await {
        Err(_) => Ok(()),
        Ok(given) => Err(format!("{given:?}")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_another_manager_is_left_alone() {
    let scene = Scene::start(1).await;
    let node = json!({"name": "n2", "labels": {"zone": "b"}, "managed_by": "terraform"});
    let call = Call::put("/v1/nodes/default/n2").json(&node).unwrap().within(LONG);
    let _: Value = scene.ask().call(call).await.unwrap();
    scene.node("n2", json!({"zone": "a"}), true);
    scene.node("n3", json!({"zone": "a"}), true);
    until("the nodes are mirrored", async || {
        get::<Value>(&scene.ask(), "/v1/nodes/default/n3").await.map(drop).map_err(|problem| problem.detail)
    })
    .await;
    scene.scans(1).await;
    let kept: Value = get(&scene.ask(), "/v1/nodes/default/n2").await.unwrap();
    assert_eq!((&kept["labels"], &kept["managed_by"]), (&json!({"zone": "b"}), &json!("terraform")));
    let mirrored: Value = get(&scene.ask(), "/v1/nodes/default/n3").await.unwrap();
    assert_eq!(
        (&mirrored["labels"], &mirrored["managed_by"]),
        (&json!({"zone": "a"}), &json!("kubernetes/default"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reported_pod_that_its_cluster_lacks_is_forgotten() {
    let scene = Scene::start(1).await;
    scene.pod("web-0", "n1", json!({}));
    let endpoint = json!({"kind": "pod", "namespace": "shop", "name": "ghost"});
    let pods = json!([{"uid": "uid-of-ghost", "endpoint": endpoint, "node": "n1"}]);
    let call = Call::post("/v1/pods").json(&json!({"pods": pods})).unwrap().repeatable().within(LONG);
    scene.ask().send(call).await.unwrap();
    until("only the pod of the cluster is reported", async || {
        let shown: Value = get(&scene.ask(), "/v1/pods").await.map_err(|error| error.to_string())?;
        let names: Vec<_> =
            shown["items"].as_array().unwrap().iter().map(|row| &row["pod"]["endpoint"]["name"]).collect();
        if names == ["web-0"] { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
}
