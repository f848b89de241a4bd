//! Founding in any order of starts: exactly one cluster, and never a second one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ipam_raft::node::{Role, StartError};
use ipam_raft::{Identity, Member};

use crate::harness::{Cluster, LONG, eventually, has, propose};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_start_in_any_order_become_one_cluster() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut cluster = Cluster::of(3);
        for at in order {
            cluster.start(at).await;
        }
        cluster.leader().await;
        let ids: Vec<_> = cluster.nodes().map(|(_, node)| node.status().cluster_id).collect();
        assert!(ids[0].is_some());
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        for (at, node) in cluster.nodes() {
            let status = node.status();
            assert_eq!(status.member_id, Some(at as u64 + 1), "ids follow the names");
            assert_eq!(status.members.len(), 3);
            assert_eq!(status.waiting_for, None);
            assert_eq!(status.members.iter().filter(|member| member.role == Role::Leader).count(), 1);
            assert_eq!(status.members[at].client_url, format!("http://n{}", at + 1));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_founded_before_all_are_there() {
    let mut cluster = Cluster::of(3);
    cluster.start(0).await;
    cluster.start(1).await;
    eventually("the first one says what is missing", || async {
        cluster.node(0).ready().is_err_and(|why| why.starts_with("waiting for an answer of n3"))
    })
    .await;
    assert!(!cluster.node(0).status().founded);
    let unfounded = cluster.node(1).read(Instant::now() + Duration::from_millis(50)).await;
    assert!(unfounded.is_err());
    cluster.start(2).await;
    cluster.leader().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_member_founds_at_once_and_is_the_same_after_a_crash() {
    let mut cluster = Cluster::up(1).await;
    let before = cluster.node(0).status();
    cluster.propose(0, "kept").await;
    cluster.crash(0);
    cluster.start(0).await;
    cluster.leader().await;
    let after = cluster.node(0).status();
    assert_eq!((after.cluster_id, after.member_id), (before.cluster_id, before.member_id));
    assert!(has(&cluster.node(0).read(Instant::now() + LONG).await.unwrap(), "kept"));
    assert_eq!(cluster.node(0).stale().1, 0);
    cluster.stop(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_member_neither_joins_nor_founds() {
    let mut cluster = Cluster::up(3).await;
    // The founder is wiped, since it is the member that could found again.
    cluster.stop(0).await;
    cluster.wipe(0);
    cluster.start(0).await;
    eventually("it says that its disk was replaced", || async {
        cluster.node(0).ready().is_err_and(|why| why.contains("data directory was replaced"))
    })
    .await;
    // The others continue without the founder, which stays out.
    propose(cluster.node(1), "without-it").await.unwrap();
    assert!(!cluster.node(0).status().founded);
    assert_eq!(cluster.node(0).status().role, Role::Pristine);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_wiped_members_dont_found_a_second_cluster() {
    let mut cluster = Cluster::up(3).await;
    let first = cluster.node(2).status().cluster_id;
    for at in [0, 1] {
        cluster.stop(at).await;
        cluster.wipe(at);
    }
    for at in [0, 1] {
        cluster.start(at).await;
    }
    for at in [0, 1] {
        eventually("it says that its disk was replaced", || async {
            cluster.node(at).ready().is_err_and(|why| why.contains("data directory was replaced"))
        })
        .await;
        assert!(!cluster.node(at).status().founded);
    }
    assert_eq!(cluster.node(2).status().cluster_id, first);
    // One of three members can't decide anything.
    let refused =
        cluster.node(2).propose(crate::harness::command("x"), Instant::now() + Duration::from_secs(1));
    assert!(refused.await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unworkable_configuration_is_refused_at_the_start() {
    let mut cluster = Cluster::of(2);
    cluster.places[1].name = cluster.places[0].name.clone();
    let started = cluster.try_start(0, cluster.places[0].dir.path()).await;
    assert!(matches!(started.err(), Some(StartError::Config(_))));
    // The same directory is started twice.
    let mut cluster = Cluster::of(1);
    cluster.start(0).await;
    let other = Cluster::of(1);
    let started = other.try_start(0, cluster.places[0].dir.path()).await;
    assert!(matches!(started.err(), Some(StartError::Store(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_founder_that_crashed_in_the_middle_goes_on_with_the_same_cluster() {
    let mut cluster = Cluster::of(3);
    for at in [1, 2] {
        cluster.start(at).await;
    }
    // State that a founder leaves if it crashes between the decision and the first entry of the log.
    let dir = cluster.places[0].dir.path();
    let mut identity = Identity::load_or_create(dir, "n1").unwrap();
    let founders: BTreeMap<u64, Member> = (1..)
        .zip(&cluster.places)
        .map(|(id, place)| {
            let identity = Identity::load(place.dir.path()).unwrap().unwrap();
            let member = Member {
                name: identity.name,
                disk_id: identity.disk_id,
                peer_address: place.peer_address(),
                client_url: format!("http://{}", place.name),
            };
            (id, member)
        })
        .collect();
    let file = serde_json::json!({ "version": 1, "founders": founders });
    std::fs::write(dir.join("founding.json"), file.to_string()).unwrap();
    identity.cluster_id = Some("half-founded".to_owned());
    identity.member_id = Some(1);
    identity.founding = true;
    identity.save(dir).unwrap();

    cluster.start(0).await;
    cluster.leader().await;
    for (_, node) in cluster.nodes() {
        assert_eq!(node.status().cluster_id.as_deref(), Some("half-founded"));
    }
    assert!(!Identity::load(cluster.places[0].dir.path()).unwrap().unwrap().founding);
    cluster.propose(1, "founded").await;
}
