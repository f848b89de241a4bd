//! Lifecycle of a member: running or not, the event that it waits for, and the reason of a failure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::Fatal;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::error::Failure;
use super::raft::RaftHandle;
use super::running::Running;
use super::tasks::Tasks;
use crate::store::{DirLock, StoreFailure};
use crate::sync::held;

/// Maximum wait before the leader is checked again.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Lifecycle of a member, and the tasks that end with it.
pub(super) struct Lifecycle {
    pub(super) running: watch::Sender<Option<Arc<Running>>>,
    pub(super) stopping: watch::Sender<bool>,
    pub(super) tasks: Tasks,
    waiting_for: Mutex<Option<String>>,
    failed: watch::Sender<Option<Failure>>,
    /// Reason why the store can't be written any more.
    store_failed: watch::Receiver<Option<StoreFailure>>,
    lock: Mutex<Option<DirLock>>,
}

impl Lifecycle {
    /// A member that doesn't run yet.
    pub(super) fn new(store_failed: watch::Receiver<Option<StoreFailure>>, lock: DirLock) -> Self {
        Self {
            running: watch::Sender::new(None),
            stopping: watch::Sender::new(false),
            tasks: Tasks::default(),
            waiting_for: Mutex::default(),
            failed: watch::Sender::new(None),
            store_failed,
            lock: Mutex::new(Some(lock)),
        }
    }

    pub(super) fn running(&self) -> Option<Arc<Running>> {
        self.running.borrow().clone()
    }

    /// Notes that raft runs.
    pub(super) fn begin(&self, running: Arc<Running>) {
        self.running.send_replace(Some(running));
        *held(&self.waiting_for) = None;
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Returns the event that the member waits for before it runs.
    pub(super) fn waiting_for(&self) -> Option<String> {
        held(&self.waiting_for).clone()
    }

    /// Records the event that the member waits for, and logs a new one.
    pub(super) fn wait_for(&self, what: String) {
        let mut waiting_for = held(&self.waiting_for);
        // The founding task may still report a wait after a member of the cluster has called.
        if self.running().is_some() {
            return;
        }
        if waiting_for.as_ref() != Some(&what) {
            tracing::info!(what, "waiting for");
            *waiting_for = Some(what);
        }
    }

    /// Records a fatal failure. The store's reason takes precedence, since others follow from it.
    pub(super) fn fail(&self, why: Failure) {
        let why = self.store_failed.borrow().clone().map_or(why, Failure::from);
        tracing::error!(%why, "this member can't go on");
        self.failed.send_if_modified(|failed| {
            let first = failed.is_none();
            failed.get_or_insert(why);
            first
        });
    }

    /// Returns the reason why the process must end, if it must.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.failed.borrow().clone()
    }

    /// Waits until the process must end, and returns the reason.
    pub(super) async fn failed(&self) -> Failure {
        let mut failed = self.failed.subscribe();
        let why = failed.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        // The sender lives as long as this member.
        match why {
            Some(why) => why,
            None => std::future::pending().await,
        }
    }

    /// Releases the lock of the data directory.
    pub(super) fn unlock(&self) {
        held(&self.lock).take();
    }

    /// Waits until raft runs. Returns none at the deadline or when the member stops; the caller checks both.
    pub(super) async fn running_by(&self, deadline: Instant) -> Option<Arc<Running>> {
        if let Some(running) = self.running() {
            return Some(running);
        }
        let mut running = self.running.subscribe();
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            running = timeout_at(deadline, running.wait_for(Option::is_some)) => running.ok()?.ok()?.clone(),
            _ = stopping.wait_for(|stopping| *stopping) => None,
        }
    }

    /// Waits until the leader or this member's leadership changes, for at most [`LOOK_AGAIN`].
    pub(super) async fn change(&self, running: &Running, deadline: Instant) {
        let mut leaders = running.raft.server_metrics();
        // The clone inherits unread changes of its original. Reading them makes it wait for a new change.
        drop(leaders.borrow_and_update());
        let mut own_leadership = running.own_leadership.clone();
        own_leadership.mark_unchanged();
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            // If raft has ended, this branch is disabled, since there are no further changes.
            Ok(()) = leaders.changed() => {}
            Ok(()) = own_leadership.changed() => {}
            _ = stopping.changed() => {}
            () = sleep(LOOK_AGAIN.min(deadline.saturating_duration_since(Instant::now()))) => {}
        }
    }

    /// Fails when the store does.
    pub(super) async fn follow_store(self: Arc<Self>) {
        let mut failed = self.store_failed.clone();
        // Nothing is borrowed across an await: the reason is copied out first.
        let why = match failed.wait_for(Option::is_some).await {
            Ok(why) => why.clone(),
            Err(_) => None,
        };
        if let Some(why) = why {
            self.fail(why.into());
        }
    }

    /// Fails when raft ends by itself.
    pub(super) async fn follow_raft(self: Arc<Self>, raft: RaftHandle) {
        let mut changes = raft.server_metrics();
        while changes.changed().await.is_ok() {}
        let ended = raft.metrics().borrow_watched().running_state.clone();
        if !self.is_stopping() {
            self.fail(match ended {
                Err(Fatal::StorageError(error)) => Failure::Disk(format!("raft has ended: {error}")),
                Err(error) => Failure::Other(format!("raft has ended: {error}")),
                Ok(()) => Failure::Other("raft has ended: it stopped".to_owned()),
            });
        }
    }
}
