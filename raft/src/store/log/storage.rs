//! The log as openraft sees it.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, Range, RangeBounds};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{OptionalSend, RaftLogReader};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};

use super::open::Opened;
use super::thread::{Answer, Command, LogThread};
use super::view::View;
use crate::store::directory::{Durable, Headroom, StoreCounters, StoreError, StoreFailure};
use crate::store::rows::Notifier;
use crate::sync::held;
use crate::threads::{self, Thread};
use crate::types::{Entry, LogId, Types, Vote};

/// Maximum bytes of the newest entries that stay in memory for replication.
const TAIL_BYTES_MAX: usize = 32 << 20;

/// Approximate bytes of one message to a lagging peer.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// Handle on the log; clones share it. Nothing here touches the disk: `append` returns once its entries are
/// in memory and in the thread's queue.
#[derive(Clone)]
pub(crate) struct LogStore {
    view: Arc<Mutex<View>>,
    commands: UnboundedSender<Command>,
}

impl LogStore {
    /// Starts the thread that owns the files.
    pub(in crate::store) fn start(
        dir: &Path,
        opened: Opened,
        durable: Arc<Durable>,
        notifier: Notifier,
        failed: watch::Sender<Option<StoreFailure>>,
        headroom: Arc<Headroom>,
        counters: Arc<StoreCounters>,
    ) -> Result<(Self, Thread), StoreError> {
        let files = opened.files;
        let state = files.state();
        let mut view = View::new(TAIL_BYTES_MAX, state.purged, state.last);
        view.vote = state.vote;
        view.committed = state.committed;
        let view = Arc::new(Mutex::new(view));
        let (commands, queue) = unbounded_channel();
        let thread = LogThread {
            commands: queue,
            files,
            view: Arc::clone(&view),
            durable,
            notifier,
            failed,
            headroom,
            counters,
        };
        let thread = threads::start("ipamd-log", thread.run()).map_err(StoreError::io(dir))?;
        Ok((Self { view, commands }, thread))
    }

    /// Writes all queued records, and stops the thread.
    pub(in crate::store) async fn close(&self) -> io::Result<()> {
        self.ask(|done| Command::Close { done }).await
    }

    /// Writes the committed index to the page cache, without entries.
    #[cfg(test)]
    pub(in crate::store) async fn write_commit(&self) -> io::Result<()> {
        self.ask(|done| Command::Commit { done }).await
    }

    /// Queues a command, and waits for its answer.
    async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> io::Result<T> {
        let (done, wait) = oneshot::channel();
        self.send(command(done))?;
        wait.await.map_err(|_| stopped())?
    }

    pub(super) fn send(&self, command: Command) -> io::Result<()> {
        self.commands.send(command).map_err(|_| stopped())
    }

    /// The view, unless nothing can be written any more. Held while a command is queued, so that the queue
    /// has the order of the view.
    fn writable(&self) -> io::Result<MutexGuard<'_, View>> {
        let view = held(&self.view);
        match &view.failed {
            Some(reason) => Err(io::Error::other(reason.clone())),
            None => Ok(view),
        }
    }

    async fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let found = held(&self.view).find(range, bytes_max);
        let Some(cold) = found.cold else { return Ok(found.hot) };
        let end = cold.end;
        let mut entries = self.ask(|done| Command::Read { range: cold, bytes_max, done }).await?;
        // If the read stopped early, appending the entries in memory would leave a gap.
        if entries.last().is_none_or(|last| last.log_id.index + 1 == end) {
            entries.extend(found.hot);
        }
        Ok(entries)
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        let start = match range.start_bound() {
            Bound::Included(index) => *index,
            Bound::Excluded(index) => index.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(index) => index.saturating_add(1),
            Bound::Excluded(index) => *index,
            Bound::Unbounded => u64::MAX,
        };
        self.read(start..end, usize::MAX).await
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        self.read(start..end, PIECE_BYTES_MAX).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(held(&self.view).vote)
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let view = held(&self.view);
        Ok(LogState { last_purged_log_id: view.purged(), last_log_id: view.last() })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.ask(|done| Command::Vote { vote: *vote, done }).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        // The index is written with the next entries: a separate write would wake the thread once more per
        // entry.
        let mut view = self.writable()?;
        view.committed = view.committed.max(committed);
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(held(&self.view).committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let mut view = self.writable()?;
        let number = view.append(&entries);
        self.send(Command::Append { entries, number, done: callback })
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        let mut view = self.writable()?;
        if view.truncate_after(last_log_id) {
            let keep = view.last();
            self.send(Command::Truncate { keep })?;
        }
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        let mut view = self.writable()?;
        if view.purge(log_id) {
            self.send(Command::Purge { upto: log_id })?;
        }
        Ok(())
    }
}

fn stopped() -> io::Error {
    io::Error::other("the log is closed")
}
