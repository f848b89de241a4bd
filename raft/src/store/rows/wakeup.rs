//! Wakeups of the thread that writes rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::store::directory::StoreError;

/// Wakeups that the thread hasn't acted on yet.
const CHANGED: u8 = 1;
const SOON: u8 = 2;

/// A wakeup of the thread.
pub(in crate::store) enum Wakeup {
    /// A change that may wait for more changes.
    Changed,
    /// A large change, or one that shouldn't wait.
    Soon,
    /// Write now and confirm.
    #[cfg(test)]
    Flush(oneshot::Sender<()>),
    /// Write the rest, mark it as clean, and stop.
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// Wakes the thread, cheaply enough for every group of the log and every applied chunk.
#[derive(Debug, Clone)]
pub(in crate::store) struct Notifier {
    to: UnboundedSender<Wakeup>,
    pending: Arc<AtomicU8>,
}

impl Notifier {
    pub(in crate::store) fn new() -> (Self, UnboundedReceiver<Wakeup>) {
        let (to, from) = unbounded_channel();
        (Self { to, pending: Arc::default() }, from)
    }

    pub(in crate::store) fn pending(&self) -> Arc<AtomicU8> {
        Arc::clone(&self.pending)
    }

    pub(in crate::store) fn changed(&self) {
        self.raise(CHANGED, Wakeup::Changed);
    }

    pub(in crate::store) fn soon(&self) {
        self.raise(SOON, Wakeup::Soon);
    }

    /// Sends nothing if a wakeup is pending, since the thread runs one round per message.
    fn raise(&self, level: u8, wakeup: Wakeup) {
        if self.pending.fetch_max(level, Ordering::AcqRel) < level {
            self.send(wakeup);
        }
    }

    pub(in crate::store) fn send(&self, wakeup: Wakeup) {
        // The receiver is gone: the store is closed, and wakeups are of no use.
        let _gone = self.to.send(wakeup);
    }
}
