//! Members whose state breaks an invariant of the machine: they stop, and name it.

use std::thread;
use std::time::Instant;

use ipam_machine::broken;
use ipam_machine::command::Text;
use ipam_raft::node::{Failure, Node, ProposeError, ReadError};
use ipam_raft::{BREAKING_REQUEST, BREAKING_TO_LOAD, BREAKING_TO_WRITE};

use crate::harness::{Cluster, LONG, command, eventually, leads, propose};

const INVARIANT: &str = "an allocation has its pool";

fn soon() -> Instant {
    Instant::now() + LONG
}

/// Checks that a member stops for a broken invariant, and answers nothing from its state any more.
async fn assert_stopped(node: &Node, invariant: &str) {
    let Failure::Broken(why) = node.failed().await else { panic!("it ends for another reason") };
    assert!(why.contains(invariant), "{why}");
    let refused = ReadError::Quarantined(why.clone());
    assert_eq!(node.check_trust().unwrap_err(), refused);
    assert_eq!(node.read(soon()).await.unwrap_err(), refused);
    assert_eq!(node.reached(0, soon()).await.unwrap_err(), refused);
    assert_eq!(propose(node, "refused").await.unwrap_err(), ProposeError::Quarantined(why));
    assert!(node.ready().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_breaks_an_invariant_stops_and_the_others_go_on() {
    let cluster = Cluster::up(3).await;
    let leader = cluster.leader().await;
    cluster.propose(leader, "before").await;
    let node = cluster.node(leader).clone();
    let breaking = node.clone();
    let unanswered = thread::spawn(move || breaking.spoil(|_| broken(INVARIANT, "allocation 7")));
    assert!(unanswered.join().is_err(), "the thread that applies has ended");
    assert_stopped(&node, INVARIANT).await;
    eventually("another member leads", || {
        let led = cluster.nodes().any(|(at, other)| at != leader && leads(other));
        std::future::ready(led)
    })
    .await;
    let other = cluster.nodes().find(|(at, other)| *at != leader && leads(other)).unwrap().0;
    cluster.propose_through(other, "after").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_breaks_an_invariant_is_not_acknowledged() {
    let cluster = Cluster::up(1).await;
    let node = cluster.node(0);
    let before = cluster.propose(0, "before").await.revision;
    let mut breaking = command("breaking");
    breaking.origin.request_id = Text::given(BREAKING_REQUEST);
    let outcome = node.propose(breaking, soon()).await;
    assert_eq!(outcome.unwrap_err(), ProposeError::Unknown { leader: Some("n1".to_owned()) });
    assert_stopped(node, "a command of a test").await;
    assert_eq!(node.revision(), before, "what the command changed is not published");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_that_breaks_an_invariant_ends_its_member() {
    let cluster = Cluster::up(1).await;
    let node = cluster.node(0);
    assert_eq!(node.guard(|| 7), Ok(7));
    let refused = node.guard(|| broken(INVARIANT, "allocation 7"));
    assert!(matches!(refused, Err(ReadError::Quarantined(why)) if why.contains(INVARIANT)));
    assert_stopped(node, INVARIANT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_finds_an_invariant_broken_ends_its_member() {
    let cluster = Cluster::up(1).await;
    let node = cluster.node(0);
    assert_eq!(node.guard_work(async { 7 }).await, Ok(7));
    let request = async {
        let state = node.read(soon()).await.unwrap();
        broken(INVARIANT, format!("revision {}", state.revision()))
    };
    let refused: Result<(), _> = node.guard_work(request).await;
    assert!(matches!(refused, Err(ReadError::Quarantined(why)) if why.contains(INVARIANT)));
    assert_stopped(node, INVARIANT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_breaks_an_invariant_while_it_stops_says_so() {
    let cluster = Cluster::up(1).await;
    let node = cluster.node(0);
    cluster.propose(0, BREAKING_TO_WRITE).await;
    node.shutdown(soon()).await;
    assert!(matches!(node.failure(), Some(Failure::Broken(why)) if why.contains("a row of a test")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_gets_a_snapshot_that_breaks_an_invariant_stops() {
    let mut cluster = Cluster::of(3).snapshot_every_entries(10).started().await;
    let late = cluster.follower().await;
    cluster.stop(late).await;
    let at = cluster.leader().await;
    cluster.propose(at, BREAKING_TO_LOAD).await;
    let (begun, mut number) = (Instant::now(), 0);
    while number < 45 || cluster.node(at).status().purged < Some(20) {
        cluster.propose(at, &format!("n-{number}")).await;
        number += 1;
        assert!(begun.elapsed() < LONG, "the log is never cut");
    }
    cluster.start(late).await;
    assert_stopped(cluster.node(late), "a row of a test breaks nothing").await;
}
