//! Disks that accept a write and never complete it: no client waits for them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ipam_api::problem::Applied;
use ipam_api::request::Allocated;
use serde_json::Value;
use tokio::time::timeout_at;

use super::scene::Scene;
use crate::support::agent::Agent;
use crate::support::ask::{allocate, allocate_call, allocate_request};
use crate::support::plugin::Plugin;
use crate::support::raw::{Raw, ask};
use crate::support::{LONG, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_disk_stalls_hands_over_and_comes_back() {
    let mut scene = Scene::up(3).await;
    let pids = scene.pids();
    let stalled = scene.cluster.leader().await;
    let others: Vec<usize> = (0..3).filter(|at| *at != stalled).collect();
    scene.disks[stalled].freeze();
    // Something must be written for it to show; a majority has it without the stalled disk.
    let other = scene.cluster.at(others[0]);
    let begun = Instant::now();
    allocate(&other, &allocate_request("first", &["web"])).await.unwrap();
    scene.cluster.members[stalled].not_ready("its disk hasn't answered").await;
    scene.led_by_one_of(&others).await;
    println!("another member leads after {:?}", begun.elapsed());
    for number in 0..20 {
        allocate(&other, &allocate_request(&format!("h{number}"), &["web"])).await.unwrap();
    }
    // The stalled member refuses or forwards the request at once.
    let asked = Instant::now();
    let budget = Duration::from_secs(3);
    let answer = allocate_once(scene.cluster.members[stalled].client, "asked".to_owned(), budget).await;
    if answer.status != 201 {
        let problem = answer.problem();
        assert_eq!(problem.code.entry().cni, 11, "{problem}");
    }
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    allocate(&other, &allocate_request("asked", &["web"])).await.unwrap();
    scene.disks[stalled].thaw();
    scene.cluster.ready().await;
    assert_eq!(scene.cluster.settled().await.addresses.allocated, 22);
    scene.all_run();
    assert_eq!(scene.pids(), pids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_with_a_stalled_disk_delays_no_client() {
    let mut scene = Scene::up(3).await;
    let (pids, leader) = (scene.pids(), scene.cluster.leader().await);
    let stalled = scene.cluster.follower().await;
    let term = scene.cluster.shown(leader).await.term;
    scene.disks[stalled].freeze();
    let client = scene.cluster.at(leader);
    allocate(&client, &allocate_request("first", &["web"])).await.unwrap();
    scene.cluster.members[stalled].not_ready("its disk hasn't answered").await;
    for number in 0..20 {
        allocate(&client, &allocate_request(&format!("h{number}"), &["web"])).await.unwrap();
    }
    // Requests that need no disk of its own still succeed through it.
    allocate(&scene.cluster.at(stalled), &allocate_request("passed-on", &["web"])).await.unwrap();
    assert_eq!(scene.cluster.shown(leader).await.term, term, "no election was needed");
    scene.disks[stalled].thaw();
    scene.cluster.ready().await;
    assert_eq!(scene.cluster.settled().await.addresses.allocated, 22);
    scene.all_run();
    assert_eq!(scene.pids(), pids);
}

impl Scene {
    /// Waits until these members agree on a leader among them.
    async fn led_by_one_of(&self, members: &[usize]) {
        until("one of the others leads", async || {
            let mut leaders = Vec::new();
            for at in members {
                let shown = self.cluster.shown(*at).await;
                leaders.push(shown.leader.filter(|_| shown.stale_ms == 0));
            }
            let names: Vec<_> =
                members.iter().map(|at| Some(self.cluster.members[*at].name.clone())).collect();
            leaders.dedup();
            let agreed = leaders.len() == 1 && names.contains(&leaders[0]);
            agreed.then_some(()).ok_or_else(|| format!("{leaders:?}"))
        })
        .await;
    }
}

/// Requests an address of `web` with this budget, and waits for the answer of the member. The client library
/// would send the request again after a few seconds, and the member would give each copy a budget of its own.
async fn allocate_once(member: SocketAddr, name: String, budget: Duration) -> Raw {
    let budget_ms = budget.as_millis().to_string();
    let body = serde_json::to_value(allocate_request(&name, &["web"])).unwrap();
    ask(member, "POST", "/v1/allocations", &[("budget-ms", budget_ms.as_str())], &body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_whose_budget_passes_in_a_stopped_leader_are_not_granted() {
    // A queue that has not moved for two seconds accepts no request: a slow machine sends few in this time.
    const QUEUED: usize = 3;
    const BUDGET: Duration = Duration::from_secs(10);
    // A leader accepts no request once its disk has not answered for twice `election_max_ms`: here 20 s.
    let raft = "heartbeat_ms = 100\nelection_min_ms = 3000\nelection_max_ms = 10000";
    let mut scene = Scene::up_with(1, raft).await;
    let member = scene.cluster.members[0].client;
    let allocation =
        |name: &str, budget: Duration| tokio::spawn(allocate_once(member, name.to_owned(), budget));
    scene.disks[0].freeze();
    // As many entries as may be on their way at once: the disk holds these up, and all others wait for them.
    let first = allocation("first", LONG);
    scene.waiting(1).await;
    let second = allocation("second", LONG);
    scene.waiting(2).await;
    let mut queued: Vec<_> = (0..QUEUED).map(|at| allocation(&format!("q{at}"), BUDGET)).collect();
    scene.waiting(2 + QUEUED).await;
    // The member has received all requests by now, so their budgets end before this time.
    let passed = tokio::time::Instant::now() + BUDGET;
    scene.cluster.members[0].pause();
    scene.disks[0].thaw();
    for one in &mut queued {
        timeout_at(passed, one).await.unwrap_err();
    }
    scene.cluster.members[0].resume();
    for one in queued {
        let problem = one.await.unwrap().problem();
        assert_eq!(problem.code.entry().cni, 11, "{problem}");
    }
    for granted in [first, second] {
        let granted = granted.await.unwrap();
        assert_eq!(granted.status, 201, "{granted:?}");
    }
    scene.waiting(0).await;
    assert_eq!(scene.cluster.settled().await.addresses.allocated, 2);
    scene.all_run();
}

/// The disks of both followers accept writes and complete none, so no entry is committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_of_stalled_disks_fails_requests_in_time_and_empties_the_queue() {
    const FLOOD: usize = 100;
    let mut scene = Scene::up(3).await;
    let leader = scene.cluster.leader().await;
    let followers: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    let agent = Agent::up(&scene.cluster.urls(), "node-1", "heartbeat_interval_ms = 3600000").await;
    let conf = agent.network(&["web"]);
    followers.iter().for_each(|at| scene.disks[*at].freeze());
    let flood: Vec<_> = (0..FLOOD)
        .map(|at| {
            let call = allocate_call(&allocate_request(&format!("h{at}"), &["web"]));
            let (client, call) = (scene.cluster.at(leader), call.within(Duration::from_secs(2)));
            tokio::spawn(async move { client.call::<Allocated>(call).await })
        })
        .collect();
    let mut unknown = 0;
    for one in flood {
        let problem = one.await.unwrap().unwrap_err();
        assert_eq!(problem.code.entry().cni, 11, "{problem}");
        unknown += u64::from(problem.applied == Applied::Unknown);
    }
    // Each request has left the queue with its client.
    scene.waits(leader, 0).await;
    let added = Plugin::new("ADD", "c001", &conf).deadline_ms(1_000).run().await.fails(11);
    assert!(added.contains("Retry"), "{added}");
    followers.iter().for_each(|at| scene.disks[*at].thaw());
    scene.cluster.ready().await;
    // At most those that were in the log already, and the ADD, which the log may have got at its end.
    let allocated = scene.cluster.settled().await.addresses.allocated;
    assert!(allocated <= unknown + 1, "{allocated} allocated, {unknown} of unknown outcome");
    scene.all_run();
}

impl Scene {
    /// Waits until this many proposals wait at the first member.
    async fn waiting(&self, count: usize) {
        self.waits(0, count).await;
    }

    /// Waits until this many proposals wait at a member.
    async fn waits(&self, at: usize, count: usize) {
        let expected = format!("ipamd_proposals_waiting {count}");
        until(&expected, async || {
            let text = ask(self.cluster.members[at].client, "GET", "/metrics", &[], &Value::Null).await.body;
            let line = text.lines().find(|line| line.starts_with("ipamd_proposals_waiting"));
            match line {
                Some(line) if line == expected => Ok(()),
                line => Err(format!("{line:?}")),
            }
        })
        .await;
    }
}
