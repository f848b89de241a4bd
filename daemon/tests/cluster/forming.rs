//! Forming: exactly one cluster, in any order of starts and with any disks.

use ipam_api::client::Call;
use serde_json::{Value, json};

use crate::support::ask::{addresses, allocate, allocate_request, known, make_pools};
use crate::support::raw::finds_no_leader;
use crate::support::{Cluster, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_started_in_any_order_form_one_cluster() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut cluster = Cluster::of(3);
        for at in order {
            cluster.start(at);
            // The next one comes when this one has begun to wait for it.
            let client = cluster.at(at);
            until("it answers", async || {
                client.send(Call::get("/livez")).await.map_err(|problem| problem.to_string())
            })
            .await;
        }
        cluster.ready().await;
        is_one(&cluster).await;
    }
    is_one(&Cluster::up(3).await).await;
}

async fn is_one(cluster: &Cluster) {
    cluster.leader().await;
    // All have the same state at one moment; a moment later one may be ahead again.
    let first = cluster.settled().await;
    for at in 0..3 {
        let shown = cluster.shown(at).await;
        assert_eq!(shown.id, first.id);
        assert_eq!(shown.members.len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_founded_before_all_are_there() {
    let mut cluster = Cluster::of(3);
    cluster.start(0);
    cluster.start(2);
    for at in [0, 2] {
        says(&cluster, at, "an answer of n2").await;
        let shown = cluster.shown(at).await;
        assert_eq!((shown.id.as_str(), shown.leader), ("", None));
    }
    finds_no_leader(cluster.members[0].client, "GET", "/v1/pools", &Value::Null).await;
    cluster.start(1);
    cluster.ready().await;
    is_one(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_member_neither_joins_nor_founds() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    // The founder itself: the one that would be tempted.
    assert!(cluster.stop(0).await.success());
    cluster.wipe(0);
    cluster.start(0);
    says(&cluster, 0, "data directory was replaced").await;
    let shown = cluster.shown(0).await;
    assert_eq!((shown.id.as_str(), shown.applied), ("", 0));
    // The others go on without it, and it stays out.
    allocate(&cluster.at(1), &allocate_request("h1", &["web"])).await.unwrap();
    says(&cluster, 0, "data directory was replaced").await;
    assert_eq!(cluster.shown(0).await.id, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_wiped_members_of_three_found_no_second_cluster() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let before = cluster.settled().await;
    for at in [0, 1] {
        cluster.members[at].kill();
        cluster.wipe(at);
    }
    for at in [0, 1] {
        cluster.start(at);
    }
    for at in [0, 1] {
        says(&cluster, at, "data directory was replaced").await;
        assert_eq!(cluster.shown(at).await.id, "");
    }
    let after = cluster.shown(2).await;
    // Not the digest: the leader may have moved log time meanwhile. Every change raises the revision.
    assert_eq!((after.id, after.revision), (before.id, before.revision));
    // One of three can't decide anything.
    let allocate_request = json!(allocate_request("h1", &["web"]));
    finds_no_leader(cluster.members[2].client, "POST", "/v1/allocations", &allocate_request).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_known_by_name_wherever_they_are() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let given =
        addresses(&allocate(&cluster.ask(), &allocate_request("h1", &["web", "web6"])).await.unwrap());
    let before = cluster.settled().await;
    for at in 0..3 {
        cluster.members[at].kill();
    }
    cluster.move_away();
    cluster.start_all();
    cluster.ready().await;
    for at in 0..3 {
        let shown = cluster.shown(at).await;
        assert_eq!(shown.id, before.id);
        for address in &given {
            assert_eq!(known(&cluster.at(at), *address).await.state, "allocated");
        }
    }
    // Each reports the present addresses of the others, and the leader's address for clients.
    let places: Vec<_> =
        cluster.members.iter().map(|member| (member.name.clone(), member.peer_address())).collect();
    for at in 0..3 {
        until("a member knows where the others are", async || {
            let leader = cluster.leader().await;
            let seen = cluster.shown(at).await.members;
            let url = seen[leader].client_url.clone();
            let seen: Vec<_> = seen.into_iter().map(|member| (member.name, member.peer_address)).collect();
            let right = seen == places && url == cluster.members[leader].url();
            if right { Ok(()) } else { Err(format!("{seen:?}, {url} and not {places:?}")) }
        })
        .await;
    }
}

/// Waits until a member gives this reason for not being ready.
async fn says(cluster: &Cluster, at: usize, words: &str) {
    let member = &cluster.members[at];
    until(&format!("{} says {words:?}", member.name), async || match member.is_ready().await {
        Err(why) if why.contains(words) => Ok(()),
        Err(why) => Err(why),
        Ok(()) => Err("it is ready".to_owned()),
    })
    .await;
}
