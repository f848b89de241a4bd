//! Snapshot that this member has requested and waits for.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::store::{SharedState, SnapshotFile};
use crate::sync::held;

/// Time limit for applying the log up to the last entry of the received snapshot.
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

    /// Hands a received snapshot to the waiting request. Returns the snapshot if no request waits, or if this
    /// member doesn't apply the log up to its last entry in time.
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
