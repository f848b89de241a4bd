//! Kills of the agent between two of its own steps, which no request to a server shows.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cluster::agent::kills::KILLED_MS;
use crate::cluster::agent::outages::{all_is_free, released_once};
use crate::support::agent::Agent;
use crate::support::ask::{allocations, make_pools};
use crate::support::plugin::{Outcome, Plugin};
use crate::support::proxy::{Proxy, Step};
use crate::support::{Cluster, until};

/// Lines after which the journal is written anew at the next record.
const SURPLUS: usize = 5000;

/// A member behind a proxy, and an agent that knows the proxy only and isn't started.
async fn scene() -> (Cluster, Proxy, Agent) {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let proxy = Proxy::to(cluster.members[0].client).await;
    let agent = Agent::of(std::slice::from_ref(&proxy.url), "node-1", "");
    (cluster, proxy, agent)
}

async fn started(agent: &mut Agent) {
    agent.start();
    agent.serves().await;
}

/// A file that stands for the network namespace of a container.
fn netns(agent: &Agent, container: &str) -> PathBuf {
    let path = agent.dir.path().join(container);
    std::fs::write(&path, "").unwrap();
    path
}

fn plugin(verb: &'static str, container: &str, netns: &Path, conf: &Value) -> Plugin {
    Plugin::new(verb, container, conf).netns(netns.to_str().unwrap())
}

async fn run(verb: &'static str, container: &str, netns: &Path, conf: &Value) -> Outcome {
    plugin(verb, container, netns, conf).run().await
}

/// A run during which the agent is killed.
async fn run_killed(verb: &'static str, container: &str, netns: &Path, conf: &Value) {
    plugin(verb, container, netns, conf).deadline_ms(KILLED_MS).run().await.fails(11);
}

/// Runs the plugin while the agent is killed at a point. The agent isn't running afterwards.
async fn killed_at(point: &str, agent: &mut Agent, verb: &'static str, container: &str, netns: &Path) {
    agent.start_killed_at(point);
    agent.serves().await;
    run_killed(verb, container, netns, &agent.network(&["web", "web6"])).await;
    agent.ends().await;
}

async fn ids(cluster: &Cluster) -> Vec<u64> {
    allocations(&cluster.ask()).await.iter().map(|one| one.id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_add_gets_what_a_killed_agent_left() {
    let (cluster, _proxy, mut agent) = scene().await;
    let conf = agent.network(&["web", "web6"]);
    for (point, left) in [("add-read", 0), ("add-recorded", 0), ("attached", 2)] {
        let netns = netns(&agent, point);
        killed_at(point, &mut agent, "ADD", point, &netns).await;
        let before = ids(&cluster).await;
        assert_eq!(before.len(), left, "{point}");
        started(&mut agent).await;
        run("ADD", point, &netns, &conf).await.succeeds();
        let after = ids(&cluster).await;
        assert_eq!(after.len(), 2, "{point}");
        assert!(before.iter().all(|id| after.contains(id)), "{point}: {before:?} {after:?}");
        run("DEL", point, &netns, &conf).await.succeeds();
        all_is_free(&cluster, &agent).await;
        agent.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_inventory_releases_what_a_killed_add_left_once_its_namespace_is_gone() {
    let (cluster, proxy, mut agent) = scene().await;
    let conf = agent.network(&["web", "web6"]);
    for (point, left) in [("add-recorded", 0), ("attached", 2)] {
        let netns = netns(&agent, point);
        killed_at(point, &mut agent, "ADD", point, &netns).await;
        assert_eq!(ids(&cluster).await.len(), left, "{point}");
        // Gone before the agent looks again, and no runtime repeats the ADD.
        std::fs::remove_file(&netns).unwrap();
        started(&mut agent).await;
        all_is_free(&cluster, &agent).await;
        agent.kill();
    }
    // The cluster has granted the ADD, and the journal knows only that it was sent.
    started(&mut agent).await;
    let netns = netns(&agent, "c1");
    proxy.kill_at(agent.pid(), "/v1/allocations", Step::Answered);
    run_killed("ADD", "c1", &netns, &conf).await;
    assert!(proxy.has_killed());
    agent.kill();
    assert_eq!(ids(&cluster).await.len(), 2);
    started(&mut agent).await;
    std::fs::remove_file(&netns).unwrap();
    all_is_free(&cluster, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_del_that_was_recorded_needs_no_repetition() {
    let (cluster, _proxy, mut agent) = scene().await;
    let conf = agent.network(&["web", "web6"]);
    let points = [("del-read", 2), ("del-synced", 2), ("del-executed", 0)];
    for (round, (point, left)) in points.into_iter().enumerate() {
        let netns = netns(&agent, point);
        started(&mut agent).await;
        run("ADD", point, &netns, &conf).await.succeeds();
        agent.kill();
        killed_at(point, &mut agent, "DEL", point, &netns).await;
        assert_eq!(ids(&cluster).await.len(), left, "{point}");
        started(&mut agent).await;
        if point == "del-read" {
            // It was lost, and its failure makes the runtime repeat it.
            assert_eq!(ids(&cluster).await.len(), 2);
            run("DEL", point, &netns, &conf).await.succeeds();
        }
        all_is_free(&cluster, &agent).await;
        released_once(&cluster, 2 * (round + 1)).await;
        agent.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_is_written_anew_loses_no_attachment() {
    let (cluster, _proxy, mut agent) = scene().await;
    let conf = agent.network(&["web"]);
    started(&mut agent).await;
    for container in ["c1", "c2"] {
        run("ADD", container, &netns(&agent, container), &conf).await.succeeds();
    }
    let journal = agent.state().join("journal");
    let is_boot = |line: &&str| line.contains("\"boot\"");
    until("the journal has the boot of the first heartbeat", async || {
        let text = std::fs::read_to_string(&journal).unwrap();
        text.lines().find(is_boot).map(drop).ok_or_else(|| agent.logged())
    })
    .await;
    agent.kill();
    for (number, point) in ["journal-written", "journal-replaced"].into_iter().enumerate() {
        let text = std::fs::read_to_string(&journal).unwrap();
        let boot = text.lines().find(is_boot).unwrap();
        std::fs::write(&journal, text.clone() + &format!("{boot}\n").repeat(SURPLUS)).unwrap();
        let added = format!("new{number}");
        let netns = netns(&agent, &added);
        killed_at(point, &mut agent, "ADD", &added, &netns).await;
        let lines = std::fs::read_to_string(&journal).unwrap().lines().count();
        assert_eq!(lines < SURPLUS, point == "journal-replaced", "{lines} lines at {point}");
        started(&mut agent).await;
        run("ADD", &added, &netns, &conf).await.succeeds();
        let found = agent.check("journal").await.detail;
        assert!(found.starts_with(&format!("{} attachments, 0 releases", 3 + number)), "{found}");
        agent.kill();
    }
    assert!(!agent.logged().contains("takes an attachment over"), "{}", agent.logged());
    started(&mut agent).await;
    for container in ["c1", "c2", "new0", "new1"] {
        run("DEL", container, Path::new(""), &conf).await.succeeds();
    }
    all_is_free(&cluster, &agent).await;
}
