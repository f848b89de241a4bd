//! Journal of a cluster: the same on every member after any sequence of faults.

use std::path::Path;
use std::time::Instant;

use ipam_machine::command::Text;
use ipam_machine::{Action, Event};
use ipam_raft::{EventFilter, EventQuery};

use super::harness::{Cluster, LONG, command, eventually};

/// Size of a comment; a few of them fill a segment.
const COMMENT_BYTES: usize = 400_000;

/// Proposes a network whose event is large.
async fn propose(cluster: &Cluster, at: usize, number: usize) {
    let mut command = command(&format!("n-{number}"));
    command.origin.comment = Some(Text::given(format!("{number} ").repeat(COMMENT_BYTES / 3)));
    cluster.node(at).propose(command, Instant::now() + LONG).await.unwrap().unwrap();
}

/// Returns all events that a member has; none if it can't return them.
async fn history(cluster: &Cluster, at: usize) -> Option<Vec<Event>> {
    let mut events = Vec::new();
    let mut query = EventQuery { after: None, reverse: false, limit: 7, filter: EventFilter::default() };
    loop {
        let page = cluster.node(at).events(query.clone()).await.ok()?;
        events.extend(page.events);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Some(events),
        }
    }
}

/// The files of a member's journal; without those that are renamed or dropped meanwhile.
fn segments(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir.join("journal"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| name.starts_with("segment-"))
        .filter_map(|(name, path)| Some((name, std::fs::read(path).ok()?)))
        .collect();
    files.sort_unstable();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_the_same_everywhere_after_kills_and_after_a_snapshot() {
    let mut cluster = Cluster::of(3).snapshot_every_entries(10).started().await;
    let late = cluster.follower().await;
    cluster.stop(late).await;
    let at = cluster.leader().await;
    let (begun, mut number) = (Instant::now(), 0);
    while number < 45 || cluster.node(at).status().purged < Some(20) {
        propose(&cluster, at, number).await;
        number += 1;
        assert!(begun.elapsed() < LONG, "the log is never cut");
    }
    // The member gets a snapshot, and fetches the segments that the snapshot doesn't contain.
    cluster.start(late).await;
    cluster.leader().await;
    cluster.settled().await;
    assert!(cluster.node(late).metrics().snapshots_installed > 0);
    let expected = history(&cluster, at).await.unwrap();
    assert_eq!(expected.len(), number);
    for (which, event) in expected.iter().enumerate() {
        assert_eq!(&*event.by.request_id, format!("n-{which}"));
        assert_eq!((&*event.by.principal, event.number), ("tester", 0));
    }
    for member in 0..3 {
        eventually("a member has all of history", || async { history(&cluster, member).await.is_some() })
            .await;
        assert_eq!(history(&cluster, member).await.unwrap(), expected);
    }
    // One member after the other is killed, and recovers the whole history.
    for member in 0..3 {
        cluster.crash(member);
        cluster.start(member).await;
        cluster.leader().await;
        cluster.settled().await;
        eventually("a member has all of history", || async { history(&cluster, member).await.is_some() })
            .await;
        assert_eq!(history(&cluster, member).await.unwrap(), expected);
    }
    let files = |member: usize| segments(cluster.places[member].dir.path());
    eventually("all have the same files", || {
        let first = files(0);
        std::future::ready(first.len() > 2 && first == files(1) && first == files(2))
    })
    .await;

    // Trimmed events are deleted on all members.
    let at = cluster.leader().await;
    let (state, _) = cluster.node(at).stale();
    let through = state.oldest_segment() + 1;
    let mut trim = command("trim");
    trim.action = Action::TrimJournal { through };
    cluster.node(at).propose(trim, Instant::now() + LONG).await.unwrap().unwrap();
    cluster.settled().await;
    let kept = history(&cluster, at).await.unwrap();
    assert!(kept.len() < expected.len() && kept.last().unwrap().kind.name() == "journal.trimmed");
    for member in 0..3 {
        assert_eq!(history(&cluster, member).await.unwrap(), kept);
    }
    // A read from before the start of the history gets an error with that start.
    for member in 0..3 {
        let after = Some(expected[0].id());
        let query = EventQuery { after, reverse: false, limit: 7, filter: EventFilter::default() };
        let problem = ipam_api::Problem::from(cluster.node(member).events(query).await.unwrap_err());
        assert_eq!((problem.code, problem.status), (ipam_api::Code::RevisionCompacted, 410));
        assert!(problem.detail.contains(&kept[0].id().to_string()), "{problem}");
    }
    eventually("the files are gone", || {
        let gone = |member| files(member).iter().all(|(name, _)| **name > *format!("segment-{through:010}"));
        std::future::ready((0..3).all(gone))
    })
    .await;
}
