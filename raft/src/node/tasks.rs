//! The tasks of a member, so that they end with it.

use std::future::Future;
use std::sync::Mutex;

use tokio::task::JoinSet;

use crate::simulation::pausable;
use crate::sync::held;

/// The tasks that run.
#[derive(Default)]
pub(super) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = held(&self.0);
        // Completed tasks are dropped here, since they have no other receiver.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(pausable(task));
    }

    /// Aborts all tasks and waits until they have ended.
    pub(super) async fn end(&self) {
        let mut tasks = std::mem::take(&mut *held(&self.0));
        tasks.shutdown().await;
    }

    /// Aborts all tasks without waiting.
    pub(super) fn abort(&self) {
        held(&self.0).abort_all();
    }
}
