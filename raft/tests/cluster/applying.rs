//! The apply thread, kept busy: it delays no other part of its member.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ipam_raft::node::Node;

use crate::harness::{Cluster, eventually, has, propose};

/// Blocks the apply thread of a member until the sender is dropped, like a very expensive command.
fn occupy(node: &Node) -> mpsc::Sender<()> {
    let (release, until) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let node = node.clone();
    thread::spawn(move || {
        node.spoil(move |_| {
            begin.send(()).unwrap();
            let _released = until.recv();
        });
    });
    begun.recv().unwrap();
    release
}

fn leader_changes(cluster: &Cluster) -> u64 {
    cluster.nodes().map(|(_, node)| node.metrics().leader_changes).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_takes_long_holds_up_no_reader_and_causes_no_election() {
    /// Several times as long as a member waits for its leader.
    const BUSY: Duration = Duration::from_secs(3);
    let cluster = Cluster::up(3).await;
    let leader = cluster.leader().await;
    let revision = cluster.propose(leader, "before").await.revision;
    cluster.settled().await;
    let before = leader_changes(&cluster);
    let busy: Vec<_> = cluster.nodes().map(|(_, node)| occupy(node)).collect();
    let writer = cluster.node(leader).clone();
    let written = tokio::spawn(async move { propose(&writer, "meanwhile").await });
    let (begun, mut looks) = (Instant::now(), 0);
    while begun.elapsed() < BUSY {
        for (_, node) in cluster.nodes() {
            // None of these calls may wait for the apply thread.
            let (state, _) = node.stale();
            assert!(has(&state, "before") && !has(&state, "meanwhile"));
            assert_eq!(node.revision(), revision);
            assert!(node.log_time_ms().is_none_or(|now_ms| now_ms >= state.log_time_ms()));
            assert_eq!(node.status().leader.map(|leader| leader.id), cluster.node(leader).status().member_id);
            looks += 1;
        }
        // The members need the processor.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(looks >= 3, "no member was looked at");
    assert!(!written.is_finished(), "nothing is acknowledged that isn't applied");
    assert_eq!(leader_changes(&cluster), before, "heartbeats go on while commands are applied");
    drop(busy);
    written.await.unwrap().unwrap();
    eventually("all members have it", || {
        std::future::ready(cluster.nodes().all(|(_, node)| has(&node.stale().0, "meanwhile")))
    })
    .await;
    cluster.settled().await;
}
