//! Outages and lies of the API server: known pods are served, and nothing is released.

use ipam_api::agent::Verdict;
use serde_json::json;
use test_apiserver::Fault;

use crate::kubernetes::scene::Scene;
use crate::support::ask::subnet_with_pool;
use crate::support::until;

/// Pods of the tests that lose some.
const COUNT: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn known_pods_are_served_without_the_api_server() {
    let mut scene = Scene::start("").await;
    let known = scene.pod("w", "web", json!({}));
    let living = scene.pod("l", "db", json!({}));
    scene.sees(2, Verdict::Ok).await;
    let held = scene.run("ADD", ("c1", "l", &living)).await.addresses();
    scene.api.stop();
    let detail = scene.sees(2, Verdict::Warning).await;
    assert!(detail.contains("the API server doesn't answer"), "{detail}");
    for round in 0..2 {
        // The second time by an agent that never saw the API server.
        let container = format!("c2-{round}");
        let given = scene.run("ADD", (&container, "w", &known)).await.addresses();
        assert!(given[0].to_string().starts_with("10.1.0."), "{given:?}");
        scene.run("DEL", (&container, "w", &known)).await.succeeds();
        // A restarted sandbox of a living pod has its address.
        let again = format!("c1-{round}");
        assert_eq!(scene.run("ADD", (&again, "l", &living)).await.addresses(), held);
        scene.agent.kill();
        scene.agent.start();
        scene.agent.serves().await;
    }
    // A pod that the view has lost has its address as long as its sandbox.
    scene.api.restart();
    scene.sees(2, Verdict::Ok).await;
    scene.remove("l");
    scene.sees(1, Verdict::Ok).await;
    scene.api.stop();
    assert_eq!(scene.run("ADD", ("c1-1", "l", &living)).await.addresses(), held);
    // Without the API server nothing is known of a new pod.
    let outcome = scene.run("ADD", ("c3", "new", "u-new")).await;
    let text = outcome.fails(11);
    assert!(text.contains("pod shop/new is unknown") && text.contains("doesn't answer"), "{text}");
    scene.api.restart();
    let new = scene.pod("new", "web", json!({}));
    assert!(scene.run("ADD", ("c4", "new", &new)).await.addresses()[0].to_string().starts_with("10.1.0."));
    scene.sees(2, Verdict::Ok).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_pod_is_refused_or_allowed_by_a_setting() {
    for (setting, is_allowed) in [("", false), ("unknown_pod = \"allow\"", true)] {
        let mut scene = Scene::start(setting).await;
        subnet_with_pool(&scene.cluster.ask(), "any", "10.6.0.0/24", json!({})).await;
        let (unnamed, mut named) = (scene.agent.network(&[]), scene.agent.network(&["any"]));
        // Members beside the agent don't get round its refusal.
        named["ipam"]["servers"] = json!(scene.cluster.urls());
        for is_up in [true, false] {
            if !is_up {
                scene.api.stop();
            }
            // Without pools its labels would choose.
            let text = scene.run_with("ADD", ("c1", "none", "u1"), &unnamed).await.fails(11);
            let why = if is_up { "has no such pod" } else { "doesn't answer" };
            assert!(text.contains("pod shop/none is unknown") && text.contains(why), "{text}");
            let (container, uid) = (format!("c-{is_up}"), format!("u-{is_up}"));
            let outcome = scene.run_with("ADD", (&container, "none", &uid), &named).await;
            if is_allowed {
                assert!(outcome.addresses()[0].to_string().starts_with("10.6.0."), "{outcome:?}");
            } else {
                outcome.fails(11);
            }
        }
        assert_eq!(scene.held().await.is_empty(), !is_allowed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_names_another_incarnation_is_refused() {
    let scene = Scene::start("").await;
    let uid = scene.pod("w", "web", json!({}));
    scene.sees(1, Verdict::Ok).await;
    let text = scene.run("ADD", ("c1", "w", "u-old")).await.fails(11);
    assert!(text.contains(&format!("another pod of this name, {uid}, and not u-old")), "{text}");
    scene.run("ADD", ("c2", "w", &uid)).await.succeeds();
}

/// Attaches pods, and returns them with their containers.
async fn attached(scene: &Scene) -> Vec<(String, String, String)> {
    let mut pods = Vec::new();
    for number in 0..COUNT {
        let name = format!("w-{number}");
        let uid = scene.pod(&name, "web", json!({}));
        let container = format!("c-{number}");
        scene.run("ADD", (&container, &name, &uid)).await.succeeds();
        pods.push((container, name, uid));
    }
    pods
}

/// The agent has compared its journal, its containers and the cluster, and all addresses are still held.
async fn all_is_held(scene: &Scene) {
    // Inventory and heartbeat run every 50 ms; a DEL and its delivery take longer than both.
    let uid = scene.pod("passing", "db", json!({}));
    for _ in 0..5 {
        scene.run("ADD", ("passing", "passing", &uid)).await.succeeds();
        scene.run("DEL", ("passing", "passing", &uid)).await.succeeds();
        until("the DEL is delivered", async || {
            let journal = scene.agent.check("journal").await;
            let is_done = journal.detail.starts_with(&format!("{COUNT} attachments, 0 releases"));
            if is_done { Ok(()) } else { Err(journal.detail) }
        })
        .await;
    }
    scene.remove("passing");
    assert_eq!(scene.held().await.len(), COUNT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_6_a_watch_or_list_without_a_pod_releases_nothing() {
    let mut scene = Scene::start("").await;
    // Lists show a node without pods from now on.
    scene.api.fault(Fault::Stale);
    let pods = attached(&scene).await;
    for step in ["dropped", "gone", "frozen", "restarted"] {
        match step {
            "dropped" => scene.api.fault(Fault::DropWatches),
            "gone" => scene.api.fault(Fault::Compact),
            "frozen" => {
                scene.api.fault(Fault::Freeze);
                scene.api.fault(Fault::Compact);
                scene.api.fault(Fault::DropWatches);
            }
            _ => {
                scene.agent.kill();
                scene.agent.start();
                scene.agent.serves().await;
            }
        }
        all_is_held(&scene).await;
    }
    scene.api.fault(Fault::Thaw);
    scene.api.fault(Fault::Fresh);
    scene.sees(COUNT, Verdict::Ok).await;
    // Deleted pods are the cluster's business, and their DELs the runtime's.
    for (_, name, _) in &pods {
        scene.remove(name);
    }
    scene.sees(0, Verdict::Ok).await;
    all_is_held(&scene).await;
    for (container, name, uid) in &pods {
        scene.run("DEL", (container, name, uid)).await.succeeds();
    }
    until("all is free after the DELs", async || match scene.held().await.len() {
        0 => Ok(()),
        held => Err(format!("{held} are held")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_are_deleted_while_the_watch_is_down_are_forgotten() {
    let mut scene = Scene::start("").await;
    for number in 0..COUNT {
        scene.pod(&format!("w-{number}"), "web", json!({}));
    }
    scene.sees(COUNT, Verdict::Ok).await;
    scene.api.stop();
    for number in 1..COUNT {
        scene.remove(&format!("w-{number}"));
    }
    scene.api.fault(Fault::Compact);
    scene.api.restart();
    scene.sees(1, Verdict::Ok).await;
}
