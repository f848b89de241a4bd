//! A whole store as tasks of one simulated thread.

use std::fs;
use std::time::Duration;

use openraft::RaftSnapshotBuilder as _;
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};
use tokio::time::{Instant, sleep};

use super::sample::{NOWHERE, append, apply, entries, log_id, read_all, run, start, stop, write_behind};
use crate::simulation::enter;
use crate::store::directory::Marker;

/// Threads of this process that a member has started.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("ipamd-")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_simulated_store_has_no_thread_and_follows_the_simulated_clock() {
    enter(NOWHERE);
    let dir = tempfile::tempdir().unwrap();
    let mut store = start(dir.path()).await;
    store.headroom.watch(Default::default()).unwrap();
    run(&mut store, entries(1, 0..20)).await;
    write_behind(&store).await;
    store.machine.try_create_snapshot_builder(true).await.unwrap().build_snapshot().await.unwrap();
    store.log.purge(log_id(1, 9)).await.unwrap();
    assert_eq!(threads(), [""; 0]);

    // Rows and marker follow after 250 ms of simulated time, as do entries that no client waits for.
    let marked = || Marker::read(dir.path()).unwrap().unwrap().rows_applied;
    let begun = Instant::now();
    append(&mut store.log, entries(1, 20..30)).await;
    apply(&mut store, entries(1, 20..30)).await;
    assert_eq!(marked(), Some(log_id(1, 19)));
    sleep(Duration::from_secs(3600)).await;
    assert_eq!((marked(), begun.elapsed().as_secs()), (Some(log_id(1, 29)), 3600));
    stop(store).await;
    let mut store = start(dir.path()).await;
    assert_eq!(read_all(&mut store.log).await, entries(1, 10..30));
    assert_eq!(threads(), [""; 0]);
    stop(store).await;
}
