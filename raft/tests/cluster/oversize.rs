//! A state whose snapshot fails, as after a defect: the members serve on, and keep their logs.

use ipam_api::limits::ROW_BYTES_MAX;

use crate::harness::{Cluster, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_whose_snapshots_fail_serve_on_and_make_one_once_they_can() {
    let cluster = Cluster::of(3).snapshot_every_entries(20).started().await;
    let leader = cluster.leader().await;
    cluster.settled().await;
    let mut ids = Vec::new();
    for (_, node) in cluster.nodes() {
        ids.push(node.spoil(|state| state.spoil_with_answer(ROW_BYTES_MAX + 5)));
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "the same state on all of them");
    for number in 0..80 {
        cluster.propose_through(leader, &format!("during-{number}")).await;
    }
    eventually("each has failed to make a snapshot", || {
        std::future::ready(cluster.nodes().all(|(_, node)| node.metrics().snapshots_failed > 0))
    })
    .await;
    for (_, node) in cluster.nodes() {
        assert!(node.ready().is_ok() && node.check_trust().is_ok());
    }
    // The snapshot isn't retried at every check, ten times a second, but only when the next one is due.
    let failed = || cluster.nodes().map(|(_, node)| node.metrics().snapshots_failed).collect::<Vec<_>>();
    let log_time_ms = || cluster.nodes().find_map(|(_, node)| node.log_time_ms());
    let mut quiet = (log_time_ms(), failed());
    eventually("no member tries again for ten looks", || {
        let now = log_time_ms();
        if failed() != quiet.1 || quiet.0.is_none() {
            quiet = (now, failed());
        }
        std::future::ready(now > quiet.0.map(|since_ms| since_ms + 1_000))
    })
    .await;
    cluster.propose(leader, "still-served").await;
    cluster.settled().await;
    for (_, node) in cluster.nodes() {
        let id = ids[0];
        node.spoil(move |state| state.mend_of_answer(id));
    }
    let mended_at = cluster.node(leader).status().applied;
    for number in 0..80 {
        cluster.propose_through(leader, &format!("after-{number}")).await;
    }
    eventually("each has a snapshot of the mended state", || {
        std::future::ready(cluster.nodes().all(|(_, node)| node.status().snapshot > mended_at))
    })
    .await;
}
