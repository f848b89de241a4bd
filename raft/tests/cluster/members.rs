//! Who belongs to a cluster, and who leads it, changed on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use ipam_raft::node::{HandOverError, Node, ProposeError, Role};

use crate::harness::{Cluster, LONG, eventually, has, propose};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_member_knows_from_the_leader_how_the_others_are() {
    let mut cluster = Cluster::up(3).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let gone = (0..3).find(|at| *at != leader && *at != follower).unwrap();
    let seen = cluster.node(follower).members(Instant::now() + LONG).await.unwrap();
    assert!(seen.iter().all(|member| member.behind.is_some() && member.votes()), "{seen:?}");
    assert_eq!(seen.iter().filter(|member| member.role == Role::Leader).count(), 1);
    cluster.crash(gone);
    eventually("the one that is gone is seen to be gone", || async {
        let seen = cluster.node(follower).members(Instant::now() + LONG).await.unwrap();
        let silent: Vec<_> = seen.iter().map(|member| member.answers == Some(false)).collect();
        (0..3).all(|at| silent[at] == (at == gone))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_goes_where_it_is_said_and_no_write_is_lost() {
    let cluster = Cluster::up(3).await;
    let (over, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..6)
        .map(|writer| {
            let node = cluster.node(writer % 3).clone();
            tokio::spawn(write_until(node, writer, over.clone(), written.clone()))
        })
        .collect();
    for round in 0..6 {
        let before = written.load(Relaxed);
        eventually("writing goes on", || std::future::ready(written.load(Relaxed) > before + 20)).await;
        let leader = cluster.leader().await;
        let heir = (leader + 1) % 3;
        let id = cluster.node(heir).status().member_id.unwrap();
        // Whoever is asked passes it on.
        cluster.node(round % 3).hand_over(id, Instant::now() + LONG).await.unwrap();
        eventually("the heir leads", || async { cluster.leader().await == heir }).await;
        // Again is no change.
        let term = cluster.node(heir).status().term;
        cluster.node(round % 3).hand_over(id, Instant::now() + LONG).await.unwrap();
        assert_eq!(cluster.node(heir).status().term, term);
    }
    over.store(true, Relaxed);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    let state = cluster.node(0).read(Instant::now() + LONG).await.unwrap();
    for name in &acknowledged {
        assert!(has(&state, name), "{name} was acknowledged and is lost");
    }
}

/// Writes until it is over; what was acknowledged.
async fn write_until(
    node: Node,
    writer: usize,
    over: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        if over.load(Relaxed) {
            break;
        }
        let name = format!("w{writer}-{number}-x");
        match propose(&node, &name).await {
            Ok(_) => {
                written.fetch_add(1, Relaxed);
                acknowledged.push(name);
            }
            Err(ProposeError::Unknown) => {}
            Err(error) => panic!("{error}"),
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_leads_who_cant() {
    let mut cluster = Cluster::up(3).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let id = cluster.node(follower).status().member_id.unwrap();
    let term = cluster.node(leader).status().term;
    cluster.crash(follower);
    eventually("it is seen to be gone", || async {
        let seen = cluster.node(leader).members(Instant::now() + LONG).await.unwrap();
        seen.iter().any(|member| member.answers == Some(false))
    })
    .await;
    let silent = cluster.node(leader).hand_over(id, Instant::now() + LONG).await.unwrap_err();
    assert!(matches!(&silent, HandOverError::Unfit(why) if why.contains("doesn't answer")), "{silent}");
    let unknown = cluster.node(leader).hand_over(9, Instant::now() + LONG).await.unwrap_err();
    assert_eq!(unknown, HandOverError::Unfit("there is no member 9".to_owned()));
    assert_eq!(cluster.node(leader).status().term, term, "and nobody lost its office");
}
