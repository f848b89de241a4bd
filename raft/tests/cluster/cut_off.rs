//! Members that are cut off from each other, and the answers that they may still give.

use std::time::{Duration, Instant};

use crate::harness::{Cluster, eventually, has, leads, propose};

/// Scenario in which lease reads would be stale. A restarted follower forgets its promise to vote for no
/// other member, so another leader is elected during the old one's lease. Hence no read is by lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposed_leader_says_nothing_old_when_a_follower_has_forgotten_its_promise() {
    let mut cluster = Cluster::quick(3).linked().await.started().await;
    for round in 0..3 {
        let leader = cluster.leader().await;
        let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
        let (forgetful, rival) = (others[0], others[1]);
        cluster.propose(leader, &format!("before-{round}")).await;
        // The rival receives nothing until it requests votes.
        cluster.link(rival, leader, false);
        eventually("the rival misses its leader", || {
            std::future::ready(cluster.node(rival).stale().1 > 1_000)
        })
        .await;
        // The leader has had its majority until this moment, and so a lease. It has written nothing, since a
        // rival that lacks an entry isn't elected.
        cluster.link(forgetful, leader, false);
        cluster.crash(forgetful);
        cluster.start(forgetful).await;
        let name = format!("after-{round}");
        eventually("one of the others leads and acknowledges", async || {
            let next = others.iter().map(|at| cluster.node(*at)).find(|node| leads(node));
            match next {
                Some(node) => propose(node, &name).await.is_ok(),
                None => false,
            }
        })
        .await;
        let old = cluster.node(leader).read(Instant::now() + Duration::from_millis(300)).await;
        assert!(!old.is_ok_and(|state| !has(&state, &name)), "round {round}: it answered without {name}");
        for other in others {
            cluster.link(other, leader, true);
        }
        cluster.settled().await;
    }
}
