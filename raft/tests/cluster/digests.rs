//! Members with differing states, as after a defect or a flipped bit: detected, not served, rebuilt.
//!
//! A state is spoilt by a change that no log entry has.

use std::time::Instant;

use ipam_api::limits::CHECKPOINT_EVERY_ENTRIES;
use ipam_api::{Code, Problem};
use ipam_machine::{At, apply};
use ipam_raft::node::{Node, ProposeError, ReadError, SnapshotPolicy};

use crate::harness::{Cluster, LONG, command, eventually, has, leads, propose};

/// Clusters until requests meet a quarantine: on a busy machine it may be over before the requests.
const ROUNDS: usize = 5;

/// Waits until all members are equal, so that later differences come from the test.
async fn leader_of_equals(cluster: &Cluster) -> usize {
    let leader = cluster.leader().await;
    cluster.settled().await;
    leader
}

/// Adds a row that only this member has.
fn spoil(node: &Node, with: &str) {
    let command = command(with);
    node.spoil(move |state| {
        let at = At { leadership: state.leadership(), ..At::default() };
        apply(state, at, &command).0.unwrap();
    });
    assert!(has(&node.stale().0, with));
}

/// Adds enough entries for a comparison of the members.
async fn fill(cluster: &Cluster, at: usize, with: &str) {
    for number in 0..=CHECKPOINT_EVERY_ENTRIES {
        cluster.propose_through(at, &format!("{with}-{number}")).await;
    }
}

fn is_trusted(node: &Node) -> bool {
    node.check_trust().is_ok()
}

/// Waits until a member has been quarantined. The rebuild may be over before the next check.
async fn until_quarantined(node: &Node) {
    let was = || !is_trusted(node) || node.metrics().divergences > 0;
    eventually("the member is quarantined", || std::future::ready(was())).await;
}

async fn until_all_are_trusted(cluster: &Cluster) {
    eventually("all members serve", || {
        std::future::ready(cluster.nodes().all(|(_, node)| is_trusted(node) && node.ready().is_ok()))
    })
    .await;
}

fn rows_put_aside(cluster: &Cluster, at: usize) -> usize {
    let names = std::fs::read_dir(cluster.places[at].dir.path()).unwrap();
    names
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("rows.damaged"))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_differs_serves_no_client_until_its_state_is_rebuilt() {
    for _ in 0..ROUNDS {
        if refuses_until_it_is_rebuilt().await {
            return;
        }
    }
    panic!("no request met a quarantine in {ROUNDS} rounds");
}

/// Spoils a follower, which is rebuilt. Returns false if the quarantine was over before the requests.
async fn refuses_until_it_is_rebuilt() -> bool {
    let cluster = Cluster::up(3).await;
    let (leader, odd) = (cluster.leader().await, cluster.follower().await);
    cluster.propose(leader, "before").await;
    cluster.settled().await;
    spoil(cluster.node(odd), "spoilt");
    let node = cluster.node(odd);
    let refusing = async {
        until_quarantined(node).await;
        let refused = node.propose(command("refused"), Instant::now() + LONG).await;
        let unread = node.read(Instant::now() + LONG).await;
        let ready = node.ready();
        if is_trusted(node) {
            return false;
        }
        let (refused, unread) = (refused.unwrap_err(), unread.unwrap_err());
        assert!(matches!(refused, ProposeError::Quarantined(_)), "{refused}");
        assert_eq!(Problem::from(refused).code, Code::StateDiverged);
        assert!(matches!(unread, ReadError::Quarantined(_)), "{unread}");
        assert!(ready.unwrap_err().contains("quarantined"));
        true
    };
    // The requests run concurrently, since the quarantine is over soon.
    let ((), is_refused) = tokio::join!(fill(&cluster, leader, "filled"), refusing);
    until_all_are_trusted(&cluster).await;
    cluster.settled().await;
    let state = node.read(Instant::now() + LONG).await.unwrap();
    assert!(has(&state, "before") && !has(&state, "spoilt"));
    assert_eq!((node.metrics().divergences, node.metrics().states_rebuilt), (1, 1));
    eventually("the rows are put aside", || std::future::ready(rows_put_aside(&cluster, odd) == 1)).await;
    // The other members never were quarantined, and the spoilt one is a full member again.
    for (_, other) in cluster.nodes().filter(|(at, _)| *at != odd) {
        assert_eq!((other.metrics().divergences, other.metrics().states_rebuilt), (0, 0));
    }
    cluster.propose(odd, "goes-on").await;
    cluster.settled().await;
    is_refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_differs_hands_over_and_makes_its_state_again() {
    let cluster = Cluster::up(3).await;
    let (odd, other) = (leader_of_equals(&cluster).await, cluster.follower().await);
    spoil(cluster.node(odd), "spoilt");
    tokio::join!(fill(&cluster, other, "filled"), until_quarantined(cluster.node(odd)));
    eventually("another one leads", || {
        std::future::ready(cluster.nodes().any(|(at, node)| at != odd && leads(node)))
    })
    .await;
    cluster.propose_through(other, "meanwhile").await;
    until_all_are_trusted(&cluster).await;
    cluster.settled().await;
    assert!(!has(&cluster.node(odd).read(Instant::now() + LONG).await.unwrap(), "spoilt"));
    assert_eq!(cluster.node(odd).metrics().divergences, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_a_wrong_snapshot_rebuilds_from_another_member() {
    let mut cluster = Cluster::of(3).snapshot_every_entries(10).started().await;
    let (leader, odd) = (leader_of_equals(&cluster).await, cluster.follower().await);
    spoil(cluster.node(odd), "spoilt");
    let spoilt_at = cluster.node(odd).status().applied;
    // Too few entries for a comparison.
    for number in 0..CHECKPOINT_EVERY_ENTRIES / 2 {
        cluster.propose_through(leader, &format!("early-{number}")).await;
    }
    eventually("its snapshot is of the wrong state", || {
        std::future::ready(cluster.node(odd).status().snapshot > spoilt_at)
    })
    .await;
    tokio::join!(fill(&cluster, leader, "filled"), until_quarantined(cluster.node(odd)));
    until_all_are_trusted(&cluster).await;
    cluster.settled().await;
    let node = cluster.node(odd);
    assert!(!has(&node.read(Instant::now() + LONG).await.unwrap(), "spoilt"));
    assert_eq!(node.metrics().states_rebuilt, 2, "its own, then another's");
    // On a busy machine the state rebuilt from the own snapshot is compared at a later entry, too.
    assert!((1..=2).contains(&node.metrics().divergences));
    // The state that a restart would load is right as well.
    cluster.stop(odd).await;
    cluster.start(odd).await;
    cluster.leader().await;
    cluster.settled().await;
    assert!(!has(&cluster.node(odd).read(Instant::now() + LONG).await.unwrap(), "spoilt"));
}

/// True if a member builds a snapshot, whose file is unfinished.
fn builds_snapshot(cluster: &Cluster, at: usize) -> bool {
    let files = std::fs::read_dir(cluster.places[at].dir.path().join("snapshot")).unwrap();
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("unfinished"))
}

/// The other members build slow snapshots of an older state when the member requests one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_gets_a_snapshot_after_one_in_progress_that_is_too_old() {
    let mut cluster = Cluster::of(3).snapshot_every_entries(10_000).started().await;
    let leader = leader_of_equals(&cluster).await;
    // Many entries make the second snapshot of the other members due long after the first.
    for number in 0..4 * CHECKPOINT_EVERY_ENTRIES {
        cluster.propose_through(leader, &format!("many-{number}")).await;
    }
    cluster.settled().await;
    let odd = cluster.follower().await;
    let others: Vec<usize> = (0..3).filter(|at| *at != odd).collect();
    // The member with the wrong state starts last, and so does not lead.
    for at in others.iter().copied().chain([odd]) {
        let status = cluster.node(at).status();
        let due = status.applied.unwrap() + 30;
        // Each member has its own turn (`node/snapshots.rs`).
        let turn = status.members.iter().position(|member| Some(member.id) == status.member_id).unwrap();
        let every_entries = [due, due * 3 / 2, due * 2][turn];
        cluster.snapshots = match at == odd {
            true => SnapshotPolicy { every_entries: 10, ..SnapshotPolicy::default() },
            false => SnapshotPolicy { every_entries, bytes_per_second: 10_000, ..SnapshotPolicy::default() },
        };
        cluster.stop(at).await;
        cluster.start(at).await;
        cluster.leader().await;
    }
    let leader = leader_of_equals(&cluster).await;
    spoil(cluster.node(odd), "spoilt");
    let spoilt_at = cluster.node(odd).status().applied;
    for number in 0..40 {
        cluster.propose_through(leader, &format!("early-{number}")).await;
    }
    eventually("its snapshot is of the wrong state, and the others build theirs", || {
        let is_wrong = cluster.node(odd).status().snapshot > spoilt_at;
        std::future::ready(is_wrong && others.iter().all(|at| builds_snapshot(&cluster, *at)))
    })
    .await;
    tokio::join!(fill(&cluster, leader, "filled"), until_quarantined(cluster.node(odd)));
    until_all_are_trusted(&cluster).await;
    cluster.settled().await;
    assert!(!has(&cluster.node(odd).read(Instant::now() + LONG).await.unwrap(), "spoilt"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_that_differ_all_stop_and_stay_so() {
    let mut cluster = Cluster::up(3).await;
    let leader = leader_of_equals(&cluster).await;
    for (at, node) in cluster.nodes() {
        spoil(node, &format!("spoilt-{at}"));
    }
    for number in 0..=CHECKPOINT_EVERY_ENTRIES {
        match propose(cluster.node(leader), &format!("filled-{number}")).await {
            Ok(_) => {}
            // On a busy machine the comparison is over before the last entry.
            Err(ProposeError::Quarantined(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    for (_, node) in cluster.nodes() {
        until_quarantined(node).await;
        let why = node.check_trust().unwrap_err().to_string();
        assert!(why.contains("ipamd restore"), "{why}");
        assert_eq!(node.metrics().states_rebuilt, 0, "no member rebuilds on suspicion");
    }
    // The quarantine survives a restart.
    cluster.stop(leader).await;
    cluster.start(leader).await;
    assert!(!is_trusted(cluster.node(leader)));
    let other = cluster.follower_of(leader);
    let refused = propose(cluster.node(other), "refused").await.unwrap_err();
    assert!(matches!(refused, ProposeError::Quarantined(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_differ_wait_for_the_third_to_say_which_is_wrong() {
    let mut cluster = Cluster::up(3).await;
    let away = cluster.follower().await;
    cluster.propose(away, "before").await;
    cluster.stop(away).await;
    let (leader, odd) = (leader_of_equals(&cluster).await, cluster.follower().await);
    spoil(cluster.node(odd), "spoilt");
    fill(&cluster, leader, "filled").await;
    until_quarantined(cluster.node(leader)).await;
    until_quarantined(cluster.node(odd)).await;
    cluster.start(away).await;
    until_all_are_trusted(&cluster).await;
    cluster.settled().await;
    for (_, node) in cluster.nodes() {
        assert!(!has(&node.stale().0, "spoilt"));
    }
    cluster.propose_through(away, "goes-on").await;
}
