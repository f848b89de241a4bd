//! The thread that writes rows behind the log's back.
//!
//! Nobody waits for it on the way to an acknowledgement: it follows the applied state a quarter of a second
//! behind, one batch at a time, and keeps the marker. What it hasn't written yet is in the log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::background;
use super::durable::Durable;
use super::error::StoreError;
use super::headroom::Headroom;
use super::journal::JournalFiles;
use super::marker::Marker;
use super::rows::{Point, Rows, put_aside};
use super::shared::{SharedState, Taken, WeakState};

/// How far rows and marker may lag.
const LAG: Duration = Duration::from_millis(250);

/// After the row store has failed this many rounds pass before it is tried afresh.
const ROUNDS_OFF: u32 = 64;

/// What the thread has been told and hasn't acted on yet.
const CHANGED: u8 = 1;
const SOON: u8 = 2;

/// What wakes the thread.
pub(super) enum Nudge {
    /// Something has changed; it may wait for more.
    Changed,
    /// Much has changed, or something that shouldn't wait.
    Soon,
    /// Write now and say when that is done.
    #[cfg(test)]
    Flush(oneshot::Sender<()>),
    /// Write the rest, say that all is clean, and stop.
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// Wakes the thread, cheaply enough for every group of the log and every applied chunk.
#[derive(Debug, Clone)]
pub(super) struct Nudger {
    to: Sender<Nudge>,
    pending: Arc<AtomicU8>,
}

impl Nudger {
    pub(super) fn new() -> (Self, Receiver<Nudge>) {
        let (to, from) = channel();
        (Self { to, pending: Arc::default() }, from)
    }

    pub(super) fn pending(&self) -> Arc<AtomicU8> {
        Arc::clone(&self.pending)
    }

    pub(super) fn changed(&self) {
        self.raise(CHANGED, Nudge::Changed);
    }

    pub(super) fn soon(&self) {
        self.raise(SOON, Nudge::Soon);
    }

    /// Sends nothing if the thread knows already: it would make a round of its own for every message.
    fn raise(&self, level: u8, nudge: Nudge) {
        if self.pending.fetch_max(level, Ordering::AcqRel) < level {
            self.send(nudge);
        }
    }

    pub(super) fn send(&self, nudge: Nudge) {
        // Nobody there: the store is closed, and what wakes whom doesn't matter any more.
        let _gone = self.to.send(nudge);
    }
}

/// The thread's state.
pub(super) struct Behind {
    pub(super) dir: PathBuf,
    pub(super) shared: WeakState,
    pub(super) durable: Arc<Durable>,
    pub(super) journal: Arc<JournalFiles>,
    pub(super) headroom: Arc<Headroom>,
    /// What the marker shall say.
    pub(super) marker: Marker,
    /// What it says.
    pub(super) marked: Marker,
    /// The row store, unless it has to be made afresh.
    pub(super) rows: Option<Rows>,
    /// Which state the rows hold: it changes when a snapshot replaces the state as a whole.
    pub(super) epoch: u64,
    /// Rounds until the row store is tried again.
    pub(super) off: u32,
    pub(super) pending: Arc<AtomicU8>,
    /// Where to say that this thread has panicked.
    pub(super) failed: watch::Sender<Option<String>>,
}

impl Drop for Behind {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failed.send_replace(Some("the thread of the rows has panicked".to_owned()));
        }
    }
}

impl Behind {
    pub(super) fn run(mut self, nudges: &Receiver<Nudge>) {
        background::step_back();
        while let Ok(first) = nudges.recv() {
            let waiting = Waiting::gather(first, nudges);
            self.pending.store(0, Ordering::Release);
            self.write_rows();
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

    fn write_rows(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        if self.off > 0 {
            self.off -= 1;
            self.write_journal(&shared);
            return;
        }
        // A start from a snapshot goes on behind them; on the way to where they are they would be neither.
        let same = self.rows.is_some() && self.epoch == shared.epoch();
        if same && shared.applied() < self.marker.rows_applied {
            self.write_journal(&shared);
            return;
        }
        let taken = shared.take_for_rows();
        // Before the rows, which must never be ahead of it.
        if !self.write_journal(&shared) {
            return;
        }
        drop(shared);
        let Taken { live, touched } = taken;
        let same = self.rows.is_some() && self.epoch == live.epoch;
        if same && self.marker.rows_applied == live.applied && touched.is_empty() {
            return;
        }
        if !self.durable.wait_for(live.applied) {
            return;
        }
        let point =
            Point { applied: live.applied, membership: live.membership.clone(), digest: live.state.digest() };
        let written = match &self.rows {
            Some(rows) if same => rows.write(touched.iter().map(|key| (*key, live.state.row(*key))), &point),
            // Another state altogether: a new directory is quicker than deleting, and half a change can't be
            // mistaken for a whole one.
            _ => {
                self.rows = None;
                self.marker.rows_applied = None;
                // The marker lets go of the old rows before they are gone.
                let clean = self.marker.clean;
                self.write_marker(clean).map_err(|error| error.to_string()).and_then(|()| {
                    if live.corrects {
                        put_aside(&self.dir).map_err(|error| error.to_string())?;
                    }
                    self.rows = Some(Rows::create(&self.dir, &live.state, &point)?);
                    self.epoch = live.epoch;
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

    /// False when it can't be written: the process must end then, since nothing else keeps it for ever.
    fn write_journal(&self, shared: &SharedState) -> bool {
        self.headroom.make_some_room();
        let written = self.journal.write_out(shared, false);
        if let Err(error) = &written {
            self.failed.send_replace(Some(format!("the journal can't be written: {error}")));
        }
        written.is_ok()
    }

    fn write_marker(&mut self, clean: bool) -> Result<(), StoreError> {
        self.marker.log = self.durable.log();
        self.marker.clean = clean;
        if self.marker == self.marked {
            return Ok(());
        }
        self.headroom.make_some_room();
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

/// Who waits for the next round.
#[derive(Default)]
struct Waiting {
    close: Option<oneshot::Sender<Result<(), StoreError>>>,
    #[cfg(test)]
    flushed: Vec<oneshot::Sender<()>>,
}

impl Waiting {
    /// Lets changes gather until the lag is used up or somebody can't wait.
    fn gather(first: Nudge, nudges: &Receiver<Nudge>) -> Self {
        let until = Instant::now() + LAG;
        let mut waiting = Self::default();
        let mut nudge = first;
        loop {
            match nudge {
                Nudge::Changed => {}
                Nudge::Soon => return waiting,
                #[cfg(test)]
                Nudge::Flush(done) => {
                    waiting.flushed.push(done);
                    return waiting;
                }
                Nudge::Close(done) => {
                    waiting.close = Some(done);
                    return waiting;
                }
            }
            match nudges.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(next) => nudge = next,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return waiting,
            }
        }
    }
}
