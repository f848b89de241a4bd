//! API server as the agent meets it: TLS, tokens that are replaced, and hostile answers.

use std::net::SocketAddr;

use ipam_api::agent::Verdict;
use serde_json::json;
use test_apiserver::{ApiServer, Fault, Hostility};

use crate::kubernetes::scene::{NODE, Scene};
use crate::support::agent::Agent;
use crate::support::programs;
use crate::support::tls::Ca;
use crate::support::until;

/// Memory of an agent, which is on every node.
const RESIDENT_KIB_MAX: usize = 20 << 10;
/// Part of it for the pods of a full node.
const PODS_KIB_MAX: usize = 6 << 10;
/// Part of it for pods and for the largest answers; the agent reads each answer whole.
const ANSWERS_KIB_MAX: usize = 16 << 10;
/// The same for hostile answers to several requests at once; the allocator keeps some of it.
const HOSTILE_KIB_MAX: usize = 40 << 10;
/// Pods of a full node, by the default of Kubernetes.
const PODS: usize = 110;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_verifies_the_server_and_reads_a_replaced_token() {
    let dir = tempfile::tempdir().unwrap();
    let address = format!("127.200.{}.{}", std::process::id() / 256 % 256, std::process::id() % 256);
    let ca = Ca::new(dir.path().join("ca"));
    let other = Ca::new(dir.path().join("other"));
    let at: SocketAddr = format!("{address}:0").parse().unwrap();
    let api = ApiServer::start_at(at, Some(ca.server(&address)));
    let token = dir.path().join("token");
    std::fs::write(&token, "one\n").unwrap();
    api.set_tokens(&["one"]);
    let settings = |ca: &Ca| {
        format!(
            "[kubernetes]\nserver = {:?}\nca_file = {:?}\ntoken_file = {token:?}",
            api.url(),
            ca.certificate()
        )
    };
    // Members that don't exist: the view needs none.
    let nowhere = ["http://127.0.0.1:1".to_owned()];
    let agent = Agent::up(&nowhere, NODE, &settings(&ca)).await;
    let stranger = Agent::up(&nowhere, NODE, &settings(&other)).await;
    let check = async |agent: &Agent, verdict: Verdict, text: &str| {
        until(&format!("the view is {verdict:?} with {text:?}"), async || {
            let check = agent.check("pods").await;
            let is_so = check.verdict == verdict && check.detail.contains(text);
            if is_so { Ok(()) } else { Err(format!("{check:?}")) }
        })
        .await;
    };
    check(&agent, Verdict::Ok, "0 pods").await;
    check(&stranger, Verdict::Warning, "CA that isn't trusted").await;
    api.set_tokens(&["two"]);
    api.fault(Fault::DropWatches);
    check(&agent, Verdict::Warning, "401 Unauthorized").await;
    // As the kubelet does it: the old name gets a new file.
    std::fs::write(dir.path().join("new"), "two\n").unwrap();
    std::fs::rename(dir.path().join("new"), &token).unwrap();
    check(&agent, Verdict::Ok, "0 pods").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_a_full_node_is_small_whatever_the_api_server_sends() {
    let scene = Scene::start("").await;
    let empty = scene.resident_kib();
    // A pod as it is in practice: some labels, annotations, and the fields' managers.
    let managers: Vec<_> =
        (0..4).map(|_| json!({"manager": "kubelet", "fieldsV1": {"f:x": "y".repeat(900)}})).collect();
    for number in 0..PODS {
        let labels = json!({"app": "web", "number": number.to_string(), "pod-template-hash": "6d4f5c7b8"});
        scene.pod(&format!("w-{number}"), "web", json!({"labels": labels, "managedFields": managers}));
    }
    scene.sees(PODS, Verdict::Ok).await;
    let full = scene.resident_kib();
    // The largest objects that a real API server stores.
    for number in 0..PODS {
        let annotations = json!({"a": "x".repeat(1 << 20)});
        scene.pod(
            &format!("w-{number}"),
            "web",
            json!({"annotations": annotations, "labels": {"app": "db"}}),
        );
    }
    let large = scene.resident_kib();
    scene.api.fault(Fault::Compact);
    scene.pod("last", "web", json!({}));
    scene.sees(PODS + 1, Verdict::Ok).await;
    let listed = scene.resident_kib();
    for hostility in [
        Hostility::Endless(vec![b'x'; 1 << 16]),
        Hostility::Endless(b"{\"items\":[".to_vec()),
        Hostility::Endless(b"{\"type\":\"ADDED\",\"object\":{}}\n".to_vec()),
        Hostility::Bytes(vec![0xff; 1 << 20]),
        Hostility::Bytes(format!("{{\"items\":[{}{{}}]}}", "{},".repeat(1 << 20)).into_bytes()),
    ] {
        scene.api.fault(Fault::Hostile(hostility));
        scene.api.fault(Fault::DropWatches);
        scene.sees(PODS + 1, Verdict::Warning).await;
        scene.run("ADD", ("c1", "none", "u1")).await.fails(11);
    }
    scene.api.fault(Fault::Heal);
    scene.sees(PODS + 1, Verdict::Ok).await;
    let hostile = scene.resident_kib();
    println!(
        "agent, resident KiB: {empty} without pods, {full} with {PODS}, {large} and {listed} with large \
         ones, {hostile} after hostile answers"
    );
    let most = full.max(large).max(listed);
    assert!(full - empty < PODS_KIB_MAX && most - empty < ANSWERS_KIB_MAX, "{empty} {full} {most} KiB");
    assert!(hostile - empty < HOSTILE_KIB_MAX, "{empty} {hostile} KiB");
    // The code of a test build alone has as much.
    if programs::shipped().is_some() {
        assert!(most < RESIDENT_KIB_MAX, "{most} KiB");
    }
}
