//! Snapshot that this member has requested and waits for.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::store::{SharedState, SnapshotFile};
use crate::sync::held;

/// Time in which the log must come to the entry of a snapshot.
const CATCH_UP_PATIENCE: Duration = Duration::from_secs(10);

/// Requested snapshot.
#[derive(Default)]
pub(in super::super) struct Awaited(Mutex<Option<oneshot::Sender<SnapshotFile>>>);

impl Awaited {
    pub(super) fn begin(&self) -> oneshot::Receiver<SnapshotFile> {
        let (to, come) = oneshot::channel();
        *held(&self.0) = Some(to);
        come
    }

    pub(super) fn end(&self, mut come: oneshot::Receiver<SnapshotFile>) -> Option<SnapshotFile> {
        held(&self.0).take();
        come.try_recv().ok()
    }

    /// Takes a received snapshot if one was requested and this member has applied as much; else returns it.
    pub(in super::super) async fn take(
        &self,
        state: &SharedState,
        file: SnapshotFile,
    ) -> Option<SnapshotFile> {
        if held(&self.0).is_none() {
            return Some(file);
        }
        let last = file.meta().last_log_id;
        if timeout(CATCH_UP_PATIENCE, state.until(|live| live.applied >= last)).await.is_err() {
            return Some(file);
        }
        match held(&self.0).take() {
            Some(to) => to.send(file).err(),
            None => Some(file),
        }
    }
}
