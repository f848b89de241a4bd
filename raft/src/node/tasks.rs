//! The tasks of a member, so that they end with it.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::task::JoinSet;

use crate::sync::held;

/// Handle on them; clones share it.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.lock();
        // Those that have ended are let go of here, since nobody waits for them.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends all of them and waits until they are gone.
    pub(super) async fn end(&self) {
        let mut tasks = std::mem::take(&mut *self.lock());
        tasks.shutdown().await;
    }

    /// Ends all of them without waiting.
    pub(super) fn abort(&self) {
        self.lock().abort_all();
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        held(&self.0)
    }
}
