//! Attachments whose container is gone, and differences between the journal and the cluster.

use std::path::{Path, PathBuf};
use std::process::Command;

use ipam_api::agent::Verdict;
use ipam_api::client::Call;
use ipam_api::name::ObjectName;
use ipam_api::request::{AllocateRequest, Attachment, AttachmentKey, Started};
use serde_json::{Value, json};

use crate::support::agent::Agent;
use crate::support::ask::{allocate_request, allocations, get, make_pools};
use crate::support::plugin::Plugin;
use crate::support::{Cluster, programs, until};

async fn scene() -> (Cluster, Agent) {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let agent = Agent::up(&cluster.urls(), "node-1", "").await;
    (cluster, agent)
}

/// A file that stands for a container's network namespace: a path with an inode, as of a bind mount.
fn netns(agent: &Agent, name: &str) -> PathBuf {
    let path = agent.dir.path().join(name);
    std::fs::write(&path, "").unwrap();
    path
}

async fn add(container: &str, netns: &Path, conf: &Value) {
    Plugin::new("ADD", container, conf).netns(netns.to_str().unwrap()).run().await.succeeds();
}

/// Waits until exactly these containers hold an address.
async fn only(cluster: &Cluster, agent: &Agent, containers: &[&str]) {
    until(&format!("only {containers:?} hold an address"), async || {
        let held = allocations(&cluster.ask()).await;
        let mut names: Vec<String> = held.iter().map(|one| one.endpoint.name.to_string()).collect();
        names.sort();
        if names == containers { Ok(()) } else { Err(format!("{names:?}\n{}", agent.logged())) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_was_removed_without_del_loses_its_address() {
    let (cluster, mut agent) = scene().await;
    let conf = agent.network(&["web"]);
    let [one, two, three] = ["c1", "c2", "c3"].map(|name| netns(&agent, name));
    for (container, netns) in [("c1", &one), ("c2", &two), ("c3", &three)] {
        add(container, netns, &conf).await;
    }
    // Gone, and replaced by another namespace under the same path.
    std::fs::remove_file(&one).unwrap();
    std::fs::write(agent.dir.path().join("new"), "").unwrap();
    std::fs::rename(agent.dir.path().join("new"), &two).unwrap();
    only(&cluster, &agent, &["c3"]).await;
    // A restarted agent knows the rest from its journal.
    agent.kill();
    std::fs::remove_file(&three).unwrap();
    agent.start();
    only(&cluster, &agent, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_capabilities_sees_the_end_of_a_container_that_a_process_names() {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let mut agent = Agent::of(&cluster.urls(), "node-1", "");
    agent.is_unprivileged = true;
    agent.start();
    agent.serves().await;
    let conf = agent.network(&["web"]);
    let [mut one, mut two] = [(); 2].map(|()| Command::new("sleep").arg("1000").spawn().unwrap());
    for (container, process) in [("c1", &one), ("c2", &two)] {
        add(container, Path::new(&format!("/proc/{}/ns/net", process.id())), &conf).await;
    }
    one.kill().unwrap();
    one.wait().unwrap();
    only(&cluster, &agent, &["c2"]).await;
    two.kill().unwrap();
    two.wait().unwrap();
    only(&cluster, &agent, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gc_releases_what_its_runtime_does_not_list_and_nothing_of_another_runtime() {
    let (cluster, agent) = scene().await;
    let conf = |runtime: &str, verb: Value| {
        let mut conf = agent.network(&["web"]);
        conf["ipam"]["runtime"] = runtime.into();
        if !verb.is_null() {
            conf["cni.dev/valid-attachments"] = verb;
        }
        conf
    };
    for (container, runtime) in [("c1", "podman"), ("c2", "podman"), ("c3", "containerd")] {
        add(container, &netns(&agent, container), &conf(runtime, Value::Null)).await;
    }
    let gc = |runtime: &str, valid: Value| Plugin::new("GC", "", &conf(runtime, valid));
    // An absent list is no order to release everything.
    gc("podman", Value::Null).run().await.succeeds();
    gc("crio", json!([])).run().await.succeeds();
    let mut other = conf("podman", json!([]));
    other["name"] = "wan".into();
    Plugin::new("GC", "", &other).run().await.succeeds();
    only(&cluster, &agent, &["c1", "c2", "c3"]).await;
    gc("podman", json!([{"containerID": "c2", "ifname": "eth0"}])).run().await.succeeds();
    assert_eq!(allocations(&cluster.ask()).await.len(), 2, "released before GC returns");
    only(&cluster, &agent, &["c2", "c3"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_its_journal_takes_over_what_the_cluster_has() {
    let (cluster, mut agent) = scene().await;
    let conf = agent.network(&["web"]);
    add("c1", &netns(&agent, "c1"), &conf).await;
    agent.kill();
    std::fs::remove_dir_all(agent.state()).unwrap();
    agent.start();
    until("the journal has the attachment", async || {
        if agent.logged().contains("take-cluster") { Ok(()) } else { Err(agent.logged()) }
    })
    .await;
    // Its network namespace isn't known any more, so only a DEL ends it.
    std::fs::remove_file(agent.dir.path().join("c1")).unwrap();
    let held: Value = get(&cluster.ask(), "/v1/nodes/default/node-1/attachments").await.unwrap();
    assert_eq!(held["items"].as_array().unwrap().len(), 1, "{held}");
    Plugin::new("DEL", "c1", &conf).run().await.succeeds();
    only(&cluster, &agent, &[]).await;
}

/// Runs `ipam-agent inventory`; returns the exit code, and the container and change of each difference.
fn inventory(agent: &Agent, flags: &[&str]) -> (i32, Vec<(String, String)>) {
    let mut command = Command::new(programs::ipam_agent());
    command.args(["inventory", "-o", "json", "--config"]).arg(agent.config()).args(flags);
    let output = command.env_clear().output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let of = |one: &Value| ["container_id", "change"].map(|field| one[field].as_str().unwrap().to_owned());
    let differences = report["differences"].as_array().unwrap().iter().map(|one| of(one).into());
    (output.status.code().unwrap(), differences.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newer_side_of_a_mismatch_is_shown_and_taken_on_request() {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    // With frequent heartbeats the agent takes the newer side by itself.
    let mut agent = Agent::up(&cluster.urls(), "node-1", "heartbeat_interval_ms = 3600000\n").await;
    let conf = agent.network(&["web"]);
    add("c1", &netns(&agent, "c1"), &conf).await;
    assert_eq!(inventory(&agent, &[]), (0, Vec::new()));
    let held = allocations(&cluster.ask()).await;
    let release = Call::delete(format!("/v1/allocations/{}", held[0].id));
    cluster.ask().send(release).await.unwrap();
    let key: AttachmentKey = serde_json::from_value(json!({
        "node": "node-1", "config": "lan", "container_id": "c2", "interface": "eth0",
    }))
    .unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let request = AllocateRequest {
        attachment: Some(key),
        node: Some(ObjectName::new("node-1").unwrap()),
        started: Some(Started { boot_id, at_us: 1, start_ticks: Some(1) }),
        ..allocate_request("c2", &["web"])
    };
    crate::support::ask::allocate(&cluster.ask(), &request).await.unwrap();
    let both =
        |one: &str, other: &str| vec![("c1".to_owned(), one.to_owned()), ("c2".to_owned(), other.to_owned())];
    let mut found = inventory(&agent, &[]);
    found.1.sort();
    assert_eq!(found, (7, both("keep-missing", "take-cluster")), "nothing is changed yet");
    let mut taken = inventory(&agent, &["--take-newer"]);
    taken.1.sort();
    assert_eq!(taken, (0, both("keep-missing", "take-cluster")));
    // The container of the first one may live, and has lost its address.
    assert_eq!(inventory(&agent, &[]), (7, vec![("c1".to_owned(), "keep-missing".to_owned())]));
    agent.kill();
    let mut command = Command::new(programs::ipam_agent());
    let output = command.args(["inventory", "--config"]).arg(agent.config()).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("systemctl start ipam-agent"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gc_releases_a_container_without_a_journal_only_after_its_runtime_has_listed_it() {
    let (cluster, mut agent) = scene().await;
    let conf = |runtime: &str, valid: Value| {
        let mut conf = agent.network(&["web"]);
        conf["ipam"]["runtime"] = runtime.into();
        conf["cni.dev/valid-attachments"] = valid;
        conf
    };
    let list = |containers: &[&str]| -> Value {
        containers.iter().map(|one| json!({"containerID": one, "ifname": "eth0"})).collect()
    };
    let [both, one, none] = [&["c1", "c2"][..], &["c1"], &[]].map(|valid| conf("podman", list(valid)));
    let other = conf("crio", list(&[]));
    for container in ["c1", "c2"] {
        add(container, &netns(&agent, container), &both).await;
    }
    agent.kill();
    std::fs::remove_dir_all(agent.state()).unwrap();
    agent.start();
    let unknown = until("the journal has both attachments", async || {
        let found = agent.check("containers").await;
        if found.detail.starts_with("2 attachments") { Ok(found) } else { Err(format!("{found:?}")) }
    })
    .await;
    assert_eq!(unknown.verdict, Verdict::Warning);
    for held in allocations(&cluster.ask()).await {
        assert!(unknown.help.contains(&held.id.to_string()), "{unknown:?}");
    }
    // A list that lacks them may be that of a runtime that never had them.
    for conf in [&other, &none] {
        Plugin::new("GC", "", conf).run().await.succeeds();
    }
    assert_eq!(allocations(&cluster.ask()).await.len(), 2);
    Plugin::new("GC", "", &both).run().await.succeeds();
    assert_eq!(agent.check("containers").await.verdict, Verdict::Ok);
    Plugin::new("GC", "", &other).run().await.succeeds();
    assert_eq!(allocations(&cluster.ask()).await.len(), 2);
    Plugin::new("GC", "", &one).run().await.succeeds();
    only(&cluster, &agent, &["c1"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attachment_of_an_earlier_boot_is_released() {
    let (cluster, agent) = scene().await;
    let conf = agent.network(&["web"]);
    add("c1", &netns(&agent, "c1"), &conf).await;
    // As a plugin sent it before the node's power failed.
    let key: AttachmentKey = serde_json::from_value(json!({
        "node": "node-1", "config": "lan", "container_id": "old", "interface": "eth0",
    }))
    .unwrap();
    let earlier = Started { boot_id: "b0".to_owned(), at_us: 1, start_ticks: Some(1) };
    let request = AllocateRequest {
        attachment: Some(key.clone()),
        node: Some(key.node.clone()),
        started: Some(earlier),
        ..allocate_request("old", &["web"])
    };
    crate::support::ask::allocate(&cluster.ask(), &request).await.unwrap();
    only(&cluster, &agent, &["c1"]).await;
    let gone = get::<Attachment>(&cluster.ask(), &key.path()).await;
    assert_eq!(gone.unwrap_err().code, ipam_api::Code::NotFound);
}
