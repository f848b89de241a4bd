//! Proposals and reads at any member, while leaders change.

use std::time::{Duration, Instant};

use ipam_api::problem::Applied;
use ipam_api::{Code, Problem};
use ipam_raft::node::ProposeError;

use crate::harness::{Cluster, LONG, command, eventually, has, leads, propose};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_member_takes_proposals_and_gives_linearizable_reads() {
    let cluster = Cluster::up(3).await;
    let follower = cluster.follower().await;
    for at in 0..3 {
        let name = format!("from-{at}");
        let revision = cluster.propose(at, &name).await.revision;
        for (_, reader) in cluster.nodes() {
            let state = reader.read(Instant::now() + LONG).await.unwrap();
            assert!(state.revision() >= revision);
            assert!(has(&state, &name));
        }
    }
    assert_eq!(cluster.node(follower).metrics().proposals_forwarded, 1);
    assert_eq!(cluster.node(follower).metrics().proposals_waiting, 0);
    assert_eq!(cluster.node(follower).ready(), Ok(()));
    assert_eq!(cluster.node(follower).stale().1, 0);
    let leader = cluster.leader().await;
    assert_eq!(cluster.node(follower).leader_client_url(), Some(format!("http://n{}", leader + 1)));
    let behind: Vec<_> =
        cluster.node(leader).status().members.iter().map(|member| member.behind.is_some()).collect();
    assert_eq!(behind, [true; 3], "the leader knows how far each one is");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_no_read_at_a_follower_misses_what_was_acknowledged() {
    let cluster = Cluster::up(3).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let workers = (0..16).map(|worker| {
        let (writer, reader) = (cluster.node(leader).clone(), cluster.node(follower).clone());
        tokio::spawn(async move {
            for number in 0..40 {
                let revision = propose(&writer, &format!("w{worker}-{number}")).await.unwrap().revision;
                let state = reader.read(Instant::now() + LONG).await.unwrap();
                assert!(state.revision() >= revision, "{} is older than {revision}", state.revision());
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let metrics = cluster.node(follower).metrics();
    assert_eq!(metrics.reads, 16 * 40);
    assert!(metrics.read_rounds < metrics.reads, "readers that wait share a round");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proposals_that_wait_together_travel_together() {
    const WRITERS: usize = 200;
    let cluster = Cluster::up(3).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let before = cluster.node(leader).metrics();
    let proposals = (0..WRITERS).map(|number| {
        let node = cluster.node(if number % 2 == 0 { leader } else { follower }).clone();
        tokio::spawn(async move { propose(&node, &format!("together-{number}")).await.unwrap().revision })
    });
    let mut revisions = Vec::new();
    for proposal in proposals.collect::<Vec<_>>() {
        revisions.push(proposal.await.unwrap());
    }
    revisions.sort_unstable();
    revisions.dedup();
    assert_eq!(revisions.len(), WRITERS, "each has its own outcome");
    let after = cluster.node(leader).metrics();
    assert_eq!(after.commands - before.commands, WRITERS as u64);
    let batches = after.batches - before.batches;
    assert!(batches < WRITERS as u64 / 2, "{batches} entries for {WRITERS} commands");
    assert_eq!(after.commit.buckets.iter().sum::<u64>(), after.batches);
    cluster.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stops_hands_over_first() {
    let mut cluster = Cluster::up(3).await;
    let leader = cluster.leader().await;
    let old_term = cluster.node(leader).status().term;
    let leaving = cluster.places[leader].node.take().unwrap();
    let leadership = leaving.leadership();
    leaving.shutdown(Instant::now() + LONG).await;
    assert_eq!(*leadership.borrow(), None);
    // A leader exists already, so no election began with silence.
    assert!(cluster.nodes().any(|(_, node)| leads(node)));
    let refused = leaving.propose(command("late"), Instant::now() + LONG).await.unwrap_err();
    assert_eq!(refused, ProposeError::ShuttingDown);
    drop(leaving);
    let new = cluster.leader().await;
    assert!(cluster.node(new).status().term > old_term);
    cluster.propose(new, "goes-on").await;
    // The stopped member rejoins the same cluster.
    cluster.start(leader).await;
    cluster.leader().await;
    let state = cluster.node(leader).read(Instant::now() + LONG).await.unwrap();
    assert!(has(&state, "goes-on"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_time_goes_on_where_a_lost_leader_left_it() {
    let mut cluster = Cluster::up(3).await;
    let mut log_time_ms = 0;
    for round in 0..3 {
        let leader = cluster.leader().await;
        // Not the lost member; on a busy machine it may lead again by the time of the request.
        let at = (leader + 1) % 3;
        for number in 0..5 {
            cluster.propose_through(at, &format!("time-{round}-{number}")).await;
            let state = cluster.node(at).read(Instant::now() + LONG).await.unwrap();
            assert!(state.log_time_ms() >= log_time_ms);
            log_time_ms = state.log_time_ms();
        }
        cluster.crash(leader);
        cluster.propose_through(at, &format!("after-{round}")).await;
        cluster.start(leader).await;
    }
    // Log time counts the time in leadership, and is far below the wall clock.
    assert!(log_time_ms < 10 * 60 * 1000, "{log_time_ms}");
    cluster.leader().await;
    cluster.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_time_runs_on_at_once_under_the_next_leader() {
    /// Leaders that are lost until log time goes on at once: a busy machine can delay the requests.
    const ROUNDS: usize = 5;
    let mut cluster = Cluster::up(3).await;
    let log_time_ms = async |cluster: &Cluster, at: usize| {
        cluster.propose_through(at, "ticks").await;
        cluster.node(at).read(Instant::now() + LONG).await.unwrap().log_time_ms()
    };
    for _ in 0..ROUNDS {
        // So much log time that the next leader couldn't make up for it if it began at zero.
        eventually("two seconds of log time pass", async || log_time_ms(&cluster, 0).await > 2000).await;
        let leader = cluster.leader().await;
        let at = cluster.follower_of(leader);
        cluster.crash(leader);
        let before = log_time_ms(&cluster, at).await;
        let begun = Instant::now();
        eventually("log time goes on", async || log_time_ms(&cluster, at).await > before).await;
        if begun.elapsed() < Duration::from_secs(1) {
            return;
        }
        cluster.start(leader).await;
    }
    panic!("each of {ROUNDS} leaders had to catch up first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_decided_and_it_says_so() {
    let mut cluster = Cluster::up(3).await;
    let leader = cluster.leader().await;
    for at in 0..3 {
        if at != leader {
            cluster.crash(at);
        }
    }
    let lonely = cluster.node(leader);
    // The first proposals may enter the log, and their outcome is unknown. Once the loss of the majority is
    // detected, no proposal enters the log.
    eventually("it no longer takes proposals", || async {
        let deadline = Instant::now() + Duration::from_millis(300);
        let error = lonely.propose(command("lonely"), deadline).await.unwrap_err();
        let problem = Problem::from(error.clone());
        let unknown = problem.applied == Applied::Unknown;
        assert_eq!(unknown, error == ProposeError::DeadlineExceeded { maybe_applied: true });
        assert!(matches!(problem.code, Code::NoLeader | Code::DeadlineExceeded), "{problem}");
        !unknown
    })
    .await;
    assert!(lonely.read(Instant::now() + Duration::from_millis(300)).await.is_err());
    eventually("it knows that it is cut off", || async { lonely.stale().1 > 0 }).await;
    assert!(lonely.ready().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_lags_far_behind_gets_a_snapshot() {
    let mut cluster = Cluster::of(3).snapshot_every_entries(20).started().await;
    let late = cluster.follower().await;
    cluster.stop(late).await;
    let at = cluster.leader().await;
    // Writes until the log is purged beyond the position of the late member.
    let (begun, mut number) = (Instant::now(), 0);
    while cluster.node(at).status().purged < Some(20) {
        cluster.propose(at, &format!("missed-{number}")).await;
        number += 1;
        assert!(begun.elapsed() < LONG, "the log is never cut");
    }
    cluster.start(late).await;
    cluster.leader().await;
    cluster.settled().await;
    let state = cluster.node(late).read(Instant::now() + LONG).await.unwrap();
    assert!(has(&state, "missed-0") && has(&state, &format!("missed-{}", number - 1)));
    assert!(cluster.node(late).metrics().snapshots_installed > 0);
    // The member is a full member again.
    cluster.crash(at);
    cluster.propose_through(late, "full-member").await;
}
