//! Requests in flight to a leader while another one is elected.

use std::time::Instant;

use ipam_machine::command::{Idempotency, Text};
use ipam_machine::{Command, Outcome};
use ipam_raft::node::ProposeError;
use tokio::task::JoinHandle;

use crate::harness::{Cluster, LONG, command, eventually, has, leads};
use crate::links::Wire;

/// The same request with an idempotency key, by which the state recognises a repetition.
fn with_key(name: &str) -> Command {
    let mut command = command(name);
    command.terms.idempotency = Some(Idempotency { key: Text::given(name), request: 7 });
    command
}

/// A cluster, its leader, and a follower with a connection to it.
async fn scene(cluster: Cluster) -> (Cluster, usize, usize) {
    let cluster = cluster.linked().await.started().await;
    let leader = cluster.leader().await;
    let follower = cluster.follower_of(leader);
    cluster.propose_through(follower, "before").await;
    (cluster, leader, follower)
}

/// Sets all wires of one member.
fn isolate(cluster: &Cluster, at: usize, wire: Wire) {
    (0..3).filter(|other| *other != at).for_each(|other| cluster.wire(at, other, wire));
}

/// True if a member knows this one as its leader.
fn follows(cluster: &Cluster, at: usize, leader: usize) -> bool {
    let leader = cluster.node(leader).status().member_id;
    cluster.node(at).status().leader.map(|known| known.id) == leader
}

/// Waits until a member knows a leader other than this one.
async fn replaced(cluster: &Cluster, at: usize, old: usize) {
    let old = cluster.node(old).status().member_id;
    eventually("another leader is known", async || {
        cluster.node(at).status().leader.is_some_and(|leader| Some(leader.id) != old)
    })
    .await;
}

/// Stops the leader while a follower asks it, until the answer; returns the follower's counters. The election
/// and the answer must be over before the follower closes its connection to the silent leader: on a busy
/// machine that takes several attempts.
async fn ask_a_stopped_leader(command: Command) -> (Result<(), ProposeError>, u64, u64, Option<String>) {
    let begun = Instant::now();
    while begun.elapsed() < LONG {
        let (cluster, leader, follower) = scene(Cluster::swift(3)).await;
        let node = cluster.node(follower).clone();
        let (forwarded, ended) = (node.metrics().proposals_forwarded, cluster.ended(follower, leader));
        isolate(&cluster, leader, Wire::Held);
        let asked = {
            let (node, command) = (node.clone(), command.clone());
            tokio::spawn(async move { node.propose(command, Instant::now() + LONG).await })
        };
        eventually("the request is sent, unless the leader was lost before", async || {
            node.metrics().proposals_forwarded > forwarded || !follows(&cluster, follower, leader)
        })
        .await;
        // On a busy machine the member may have lost its leadership before it was stopped.
        let was_asked = follows(&cluster, follower, leader);
        replaced(&cluster, follower, leader).await;
        if !was_asked || cluster.ended(follower, leader) != ended {
            asked.abort();
            continue;
        }
        let term = node.status().term;
        let answer = asked.await.unwrap().map(|outcome| drop(outcome.unwrap()));
        let forwarded = node.metrics().proposals_forwarded - forwarded;
        // Long enough for the link to detect ended connections.
        cluster.propose_through(follower, "after").await;
        // After one more election, the counters and the leader belong to different leaderships.
        if cluster.ended(follower, leader) != ended || node.status().term != term {
            continue;
        }
        let name = node.status().leader.map(|leader| leader.name);
        return (answer, forwarded, u64::from(!leads(&node)), name);
    }
    panic!("no answer came before the connection was given up, for {LONG:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_the_state_knows_again_goes_on_to_the_new_leader() {
    let (answer, forwarded, follows, _) = ask_a_stopped_leader(with_key("goes-on")).await;
    assert_eq!(answer, Ok(()));
    // A new leader declines until it has applied the entries of its predecessors.
    assert!(forwarded > follows, "to the old leader, and to the new one where that is another: {forwarded}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_an_identity_is_answered_unknown_with_the_new_leader() {
    let (answer, forwarded, _, leader) = ask_a_stopped_leader(command("once")).await;
    let unknown = answer.unwrap_err();
    assert!(leader.is_some());
    assert_eq!(unknown, ProposeError::Unknown { leader });
    assert_eq!(forwarded, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_goes_on_to_the_new_leader_in_the_same_round() {
    let begun = Instant::now();
    while begun.elapsed() < LONG {
        let (cluster, leader, follower) = scene(Cluster::swift(3)).await;
        let node = cluster.node(follower).clone();
        let rounds = node.metrics().read_rounds;
        isolate(&cluster, leader, Wire::Held);
        let asked = {
            let node = node.clone();
            tokio::spawn(async move { node.read(Instant::now() + LONG).await })
        };
        eventually("the round begins", async || node.metrics().read_rounds > rounds).await;
        // On a busy machine the member may have lost its leadership before it was stopped.
        if !follows(&cluster, follower, leader) {
            asked.abort();
            continue;
        }
        replaced(&cluster, follower, leader).await;
        assert!(has(&asked.await.unwrap().unwrap(), "before"));
        // On a busy machine the election may take longer than a round.
        if node.metrics().read_rounds == rounds + 1 {
            return;
        }
    }
    panic!("no read went on in its first round for {LONG:?}");
}

/// Cuts a leader off with a request in its log, until another one leads. Returns the cluster, the old leader,
/// a follower, and the request.
async fn ask_a_leader_that_is_cut_off(
    command: Command,
) -> (Cluster, usize, usize, JoinHandle<Result<Outcome, ProposeError>>) {
    let (cluster, leader, follower) = scene(Cluster::quick(3)).await;
    let node = cluster.node(leader).clone();
    isolate(&cluster, leader, Wire::Cut);
    let commands = node.metrics().commands;
    let asked = {
        let node = node.clone();
        tokio::spawn(async move { node.propose(command, Instant::now() + LONG).await })
    };
    eventually("it is in the old leader's log", async || node.metrics().commands > commands).await;
    replaced(&cluster, follower, leader).await;
    (cluster, leader, follower, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposed_leader_hands_on_uncommitted_requests() {
    let (cluster, leader, follower, asked) = ask_a_leader_that_is_cut_off(with_key("handed-on")).await;
    let node = cluster.node(leader);
    let forwarded = node.metrics().proposals_forwarded;
    isolate(&cluster, leader, Wire::Whole);
    asked.await.unwrap().unwrap().unwrap();
    assert!(node.metrics().proposals_forwarded > forwarded);
    cluster.settled().await;
    assert!(has(&cluster.node(follower).stale().0, "handed-on"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposed_leader_needs_no_identity_for_entries_of_its_own_log() {
    let (cluster, leader, follower, asked) = ask_a_leader_that_is_cut_off(command("overwritten")).await;
    let node = cluster.node(leader);
    isolate(&cluster, leader, Wire::Whole);
    assert!(matches!(asked.await.unwrap(), Err(ProposeError::Unknown { .. })));
    assert_eq!(node.metrics().proposals_forwarded, 0);
    cluster.settled().await;
    assert!(!has(&cluster.node(follower).stale().0, "overwritten"));
}
