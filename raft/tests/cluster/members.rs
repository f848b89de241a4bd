//! Changes of a cluster's members and of its leader by operators.

use ipam_machine::command::Text;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ipam_machine::command::JoinMember;
use ipam_machine::{Action, Answer, Command};
use ipam_raft::node::{Failure, HandOverError, Member, Node, ProposeError, ReadError, Role};
use tokio::time::timeout;

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

/// Another member may lead already, and may have removed members.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_lists_no_members_without_a_majority() {
    let cluster = Cluster::patient(3).linked().await.started().await;
    let leader = cluster.leader().await;
    let node = cluster.node(leader);
    node.members(Instant::now() + LONG).await.unwrap();
    (0..3).filter(|at| *at != leader).for_each(|at| cluster.link(leader, at, false));
    let listed = node.members(Instant::now() + Duration::from_secs(2)).await;
    assert_eq!(listed.unwrap_err(), ReadError::NoLeader);
    (0..3).filter(|at| *at != leader).for_each(|at| cluster.link(leader, at, true));
    node.members(Instant::now() + LONG).await.unwrap();
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
        // Every member forwards the request.
        cluster.node(round % 3).hand_over(id, Instant::now() + LONG).await.unwrap();
        eventually("the heir leads", || async { cluster.leader().await == heir }).await;
        // A repetition changes nothing.
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

/// Writes until the end of the test; returns the acknowledged writes.
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
            Err(ProposeError::Unknown { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_cannot_lead_is_not_elected() {
    let mut cluster = Cluster::up(3).await;
    let gone = cluster.follower().await;
    let id = cluster.node(gone).status().member_id.unwrap();
    cluster.crash(gone);
    // On a busy machine a leader may lose its leadership for other reasons; then that attempt shows nothing.
    eventually("both are refused, and the leader stays", || async {
        let leader = cluster.node(cluster.leader().await);
        let term = leader.status().term;
        eventually("it is seen to be gone", || async {
            let seen = leader.members(Instant::now() + LONG).await.unwrap();
            seen.iter().any(|member| member.id == id && member.answers == Some(false))
        })
        .await;
        let silent = leader.hand_over(id, Instant::now() + LONG).await.unwrap_err();
        let unknown = leader.hand_over(9, Instant::now() + LONG).await.unwrap_err();
        if leader.status().term != term {
            return false;
        }
        assert!(matches!(&silent, HandOverError::Unfit(why) if why.contains("doesn't answer")), "{silent}");
        assert_eq!(unknown, HandOverError::Unfit("there is no member 9".to_owned()));
        true
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_become_five_and_can_lose_two() {
    let mut cluster = Cluster::up(3).await;
    cluster.propose(0, "before").await;
    for (name, expected) in [("n4", 4), ("n5", 5)] {
        let at = cluster.add(name);
        cluster.start(at).await;
        // A repeated request has no further effect: the first answer may have been lost.
        let id = cluster.take_in(at).await;
        if cluster.node(at).applicant().is_some() {
            assert_eq!(cluster.take_in(at).await, id);
        }
        assert_eq!(id, expected);
        eventually("it is a learner and has everything", || async {
            let state = cluster.node(at).stale().0;
            cluster.node(at).status().role == Role::Learner && has(&state, "before")
        })
        .await;
        cluster.change(0, &[id], &[]).await;
    }
    let leader = cluster.leader().await;
    cluster.propose(4, "five").await;
    cluster.settled().await;
    cluster.crash(leader);
    cluster.crash((leader + 1) % 5);
    let left = cluster.leader().await;
    cluster.propose_through(left, "three-of-five").await;
    for at in [leader, (leader + 1) % 5] {
        cluster.start(at).await;
    }
    cluster.leader().await;
    cluster.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_member_learns_it_and_stays_out() {
    let mut cluster = Cluster::up(3).await;
    cluster.join("n4").await;
    let leader = cluster.leader().await;
    let gone = (leader + 1) % 3;
    let id = cluster.node(gone).status().member_id.unwrap();
    cluster.change(leader, &[4], &[]).await;
    cluster.change(leader, &[], &[id]).await;
    let why = timeout(LONG, cluster.node(gone).failed()).await.unwrap();
    assert!(matches!(&why, Failure::Removed(why) if why.contains("was removed")), "{why}");
    // The member stays out, however often it is started.
    cluster.crash(gone);
    cluster.start(gone).await;
    let why = timeout(LONG, cluster.node(gone).failed()).await.unwrap();
    assert!(matches!(&why, Failure::Removed(why) if why.contains("was removed")), "{why}");
    cluster.crash(gone);
    // The name may be used again, the id may not.
    cluster.wipe(gone);
    cluster.places[gone].joins = true;
    cluster.start(gone).await;
    let action = join_of(&cluster, gone);
    let id = match cluster.decide(leader, action).await.answer {
        Answer::Members { ids } => ids[0],
        other => panic!("{other:?}"),
    };
    assert_eq!(id, 5);
    cluster.leader().await;
    cluster.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_removed_while_down_learns_it_at_its_start() {
    let mut cluster = Cluster::up(3).await;
    cluster.join("n4").await;
    let leader = cluster.leader().await;
    let gone = (leader + 1) % 3;
    let id = cluster.node(gone).status().member_id.unwrap();
    cluster.crash(gone);
    // The new member replaces the dead one in one step.
    cluster.change(leader, &[4], &[id]).await;
    cluster.propose(3, "goes-on").await;
    cluster.start(gone).await;
    let why = timeout(LONG, cluster.node(gone).failed()).await.unwrap();
    assert!(matches!(why, Failure::Removed(_)), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_removed_hands_over_first() {
    let cluster = Cluster::up(3).await;
    let leader = cluster.leader().await;
    let id = cluster.node(leader).status().member_id.unwrap();
    let other = (leader + 1) % 3;
    cluster.change(other, &[], &[id]).await;
    let why = timeout(LONG, cluster.node(leader).failed()).await.unwrap();
    assert!(matches!(why, Failure::Removed(_)), "{why}");
    cluster.propose_through(other, "two-are-left").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_moved_is_found_and_its_vote_counts() {
    let mut cluster = Cluster::up(3).await;
    let leader = cluster.leader().await;
    let (moved, other) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.crash(moved);
    cluster.places[moved].socket.set_extension("moved");
    let address = cluster.places[moved].peer_address();
    cluster.start(moved).await;
    // Without the third member this one is needed, and only its own configuration has its address.
    cluster.crash(other);
    cluster.propose_through(leader, "the-mover-votes").await;
    eventually("the membership has the new address", || async {
        let known = cluster.node(leader).known_members();
        known.iter().any(|known| *known.peer_address == *address)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_member_is_not_taken_for_the_one_it_was() {
    let mut cluster = Cluster::up(3).await;
    let (leader, gone) = (cluster.leader().await, cluster.follower().await);
    cluster.crash(gone);
    cluster.wipe(gone);
    cluster.places[gone].joins = true;
    cluster.start(gone).await;
    let command = Command { action: join_of(&cluster, gone), ..crate::harness::command("wiped") };
    let outcome = cluster.node(leader).propose(command, Instant::now() + LONG).await.unwrap();
    let refusal = outcome.unwrap_err();
    assert_eq!(refusal.code(), ipam_api::Code::AlreadyExists);
    assert!(refusal.help().unwrap().contains("ipamctl cluster remove"));
    assert!(cluster.node(gone).applicant().is_some(), "no cluster has admitted it");
}

/// Join request of a member without a cluster.
fn join_of(cluster: &Cluster, at: usize) -> Action {
    let Member { name, disk_id, peer_address, client_url } = cluster.node(at).applicant().unwrap();
    let (_, other) = cluster.nodes().find(|(other, _)| *other != at).unwrap();
    Action::JoinMember(JoinMember {
        name: name.parse().unwrap(),
        disk_id: Text::given(disk_id),
        peer_address: Text::given(peer_address),
        client_url: Text::given(client_url),
        known: other.known_members(),
    })
}
