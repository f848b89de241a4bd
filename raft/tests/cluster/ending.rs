//! Members whose raft has ended by itself, until the process ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use ipam_machine::command::Text;
use ipam_raft::node::{ProposeError, ReadError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::harness::{Cluster, LONG, command};

/// Counts the errors that openraft logs for single calls.
#[derive(Clone, Default)]
struct Complaints(Arc<AtomicUsize>);

impl Subscriber for Complaints {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR && metadata.target().starts_with("openraft")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Of(&self.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The part of a line that names the call.
struct Of<'a>(&'a AtomicUsize);

impl Visit for Of<'_> {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        if format!("{value:?}").contains("GetLinearizer") {
            self.0.fetch_add(1, Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_member_whose_raft_has_ended_are_refused_at_once_and_log_nothing() {
    let complaints = Complaints::default();
    tracing::subscriber::set_global_default(complaints.clone()).unwrap();
    let cluster = Cluster::up(1).await;
    let node = cluster.node(0);
    // The log's next file can't be created. The large command is refused, but is in the log all the same.
    std::fs::remove_dir_all(cluster.places[0].dir.path().join("log")).unwrap();
    let mut large = command("large");
    large.origin.comment = Some(Text::given("x".repeat(1 << 20)));
    loop {
        match node.propose(large.clone(), Instant::now() + LONG).await {
            Ok(_) => {}
            Err(ProposeError::ShuttingDown | ProposeError::Unknown { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    node.failed().await;
    let readers = (0..100).map(|_| {
        let node = node.clone();
        tokio::spawn(async move { node.read(Instant::now() + LONG).await.map(drop) })
    });
    for reader in readers.collect::<Vec<_>>() {
        assert_eq!(reader.await.unwrap(), Err(ReadError::ShuttingDown));
    }
    // Only rounds in progress when raft ended log an error.
    assert!(complaints.0.load(Relaxed) <= 2, "{}", complaints.0.load(Relaxed));
}
