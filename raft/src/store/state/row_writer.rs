//! Thread that writes rows after the log.
//!
//! No acknowledgement waits for it: it follows the applied state a quarter of a second behind, one batch at a
//! time, and keeps the marker. Unwritten rows are in the log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::board::Taken;
use super::live::Live;
use super::shared::{SharedState, WeakState};
use crate::store::directory::{Durable, Headroom, Marker, StoreError, StoreFailure, background, fail};
use crate::store::journal::JournalFiles;
use crate::store::rows::{self, Point, Rows, Wakeup, put_aside};

/// The longest lag of rows and marker.
const LAG: Duration = Duration::from_millis(250);

/// Rounds that pass after a failure of the row store before it is created again.
const ROUNDS_OFF: u32 = 64;

/// The thread's state.
pub(in crate::store) struct Behind {
    pub(in crate::store) dir: PathBuf,
    pub(in crate::store) shared: WeakState,
    pub(in crate::store) durable: Arc<Durable>,
    pub(in crate::store) journal: Arc<JournalFiles>,
    pub(in crate::store) headroom: Arc<Headroom>,
    /// The next content of the marker.
    pub(in crate::store) marker: Marker,
    /// Its present content.
    pub(in crate::store) marked: Marker,
    /// The row store; none if it has to be rebuilt.
    pub(in crate::store) rows: Option<Rows>,
    /// Install count of the state in the rows; it changes when a snapshot replaces the state as a whole.
    pub(in crate::store) install_count: u64,
    /// Rounds until the row store is tried again.
    pub(in crate::store) off: u32,
    pub(in crate::store) pending: Arc<AtomicU8>,
    /// Channel that reports a panic of this thread.
    pub(in crate::store) failed: watch::Sender<Option<StoreFailure>>,
}

impl Drop for Behind {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "the thread of the rows has panicked".to_owned();
            fail(&self.failed, StoreFailure::Disk(why));
        }
    }
}

impl Behind {
    pub(in crate::store) async fn run(mut self, mut wakeups: UnboundedReceiver<Wakeup>) {
        background::step_back();
        while let Some(first) = wakeups.recv().await {
            let waiting = Waiting::gather(first, &mut wakeups).await;
            self.pending.store(0, Ordering::Release);
            if !self.write_changes().await {
                return;
            }
            let marked = self.write_marker(waiting.close.is_some());
            #[cfg(test)]
            waiting.flushed.into_iter().for_each(|done| done.send(()).unwrap_or_default());
            if let Some(done) = waiting.close {
                drop(self);
                let _gone = done.send(marked);
                return;
            }
        }
    }

    /// Writes journal and rows. Returns false if the state breaks an invariant: neither the rows nor the
    /// marker may record that, and not a clean log either.
    async fn write_changes(&mut self) -> bool {
        let Some(board) = self.shared.board() else { return true };
        if board.broken().is_some() {
            return false;
        }
        match board.guard(|| self.take_changes()) {
            Ok(None) => true,
            Ok(Some(taken)) => {
                !self.durable.wait_for(taken.live.applied).await
                    || board.guard(|| self.write_rows(taken)).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Takes the changes that rows must follow, and writes the journal up to them.
    fn take_changes(&mut self) -> Option<Taken> {
        let shared = self.shared.upgrade()?;
        if self.off > 0 {
            self.off -= 1;
            self.write_journal(&shared);
            return None;
        }
        // After a start from a snapshot the state may be behind the rows. Until it reaches their position,
        // rows written now would match neither.
        let same = self.fits(&shared.live());
        if same && shared.applied() < self.marker.rows_applied {
            self.write_journal(&shared);
            return None;
        }
        let taken = shared.take_for_rows();
        // The journal comes first, since the rows must never be ahead of it.
        if !self.write_journal(&shared) {
            return None;
        }
        let Taken { live, touched } = &taken;
        let is_written = self.fits(live) && self.marker.rows_applied == live.applied && touched.is_empty();
        (!is_written).then_some(taken)
    }

    /// Returns true if the rows hold an earlier instant of this state.
    fn fits(&self, live: &Live) -> bool {
        self.rows.is_some() && self.install_count == live.install_count
    }

    /// Writes rows whose content is already on disk, in the log or a snapshot.
    fn write_rows(&mut self, taken: Taken) {
        let Taken { live, touched } = taken;
        let same = self.fits(&live);
        let point =
            Point { applied: live.applied, membership: live.membership.clone(), digest: live.state.digest() };
        let written = match &self.rows {
            Some(rows) if same => rows.write(rows::touched(touched, &live.state), &point),
            // Another state altogether: a new directory is quicker than deleting, and half a change can't be
            // mistaken for a whole one.
            _ => {
                self.rows = None;
                self.marker.rows_applied = None;
                // The marker stops requiring the old rows before they are removed.
                let clean = self.marker.clean;
                self.write_marker(clean).map_err(|error| error.to_string()).and_then(|()| {
                    if live.corrects {
                        put_aside(&self.dir).map_err(|error| error.to_string())?;
                    }
                    self.rows = Some(Rows::create(&self.dir, &live.state, &point)?);
                    self.install_count = live.install_count;
                    Ok(())
                })
            }
        };
        match written {
            Ok(()) => self.marker.rows_applied = point.applied,
            Err(error) => {
                tracing::error!(
                    error,
                    "rows can't be written; the log keeps everything, a start will take longer"
                );
                self.rows = None;
                self.off = ROUNDS_OFF;
            }
        }
    }

    /// Returns false if the write fails: the process must end then, since only the journal keeps events.
    fn write_journal(&self, shared: &SharedState) -> bool {
        self.headroom.make_room(0);
        let written = self.journal.write_out(shared, false);
        if let Err(error) = &written {
            let why = format!("the journal can't be written: {error}");
            fail(&self.failed, StoreFailure::Disk(why));
        }
        written.is_ok()
    }

    fn write_marker(&mut self, clean: bool) -> Result<(), StoreError> {
        self.marker.log = self.durable.log();
        self.marker.clean = clean;
        if self.marker == self.marked {
            return Ok(());
        }
        self.headroom.make_room(0);
        let written = self.marker.write(&self.dir);
        match &written {
            Ok(()) => self.marked = self.marker.clone(),
            Err(error) => {
                tracing::error!(%error, "the marker can't be written; damage found at a start may go unnoticed");
            }
        }
        written
    }
}

/// Callers that wait for the next round.
#[derive(Default)]
struct Waiting {
    close: Option<oneshot::Sender<Result<(), StoreError>>>,
    #[cfg(test)]
    flushed: Vec<oneshot::Sender<()>>,
}

impl Waiting {
    /// Lets changes gather until the lag is used up or a wakeup can't wait.
    async fn gather(first: Wakeup, wakeups: &mut UnboundedReceiver<Wakeup>) -> Self {
        let until = Instant::now() + LAG;
        let mut waiting = Self::default();
        let mut wakeup = first;
        loop {
            match wakeup {
                Wakeup::Changed => {}
                Wakeup::Soon => return waiting,
                #[cfg(test)]
                Wakeup::Flush(done) => {
                    waiting.flushed.push(done);
                    return waiting;
                }
                Wakeup::Close(done) => {
                    waiting.close = Some(done);
                    return waiting;
                }
            }
            match timeout_at(until, wakeups.recv()).await {
                Ok(Some(next)) => wakeup = next,
                Ok(None) | Err(_) => return waiting,
            }
        }
    }
}
