//! The applied state: published by the thread that applies, read by all others.
//!
//! One thread owns the state and changes it ([`super::apply_thread`]). After each bounded number of commands it
//! publishes what it has, which costs a clone of persistent maps. Readers use the last published state and wait for
//! no command; a reader that needs a newer one waits for its publication.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};

use openraft::storage::EntryResponder;
use tokio::sync::{oneshot, watch};

use super::apply_thread::{ApplyThread, Job};
use super::behind::Nudger;
use super::checkpoints::Checkpoint;
use super::counters::StoreCounters;
use super::journal::{Recent, View};
use super::live::{Instant, Live};
use crate::machine::{RowKey, State};
use crate::types::{LogId, StoredMembership, Types};

/// With so many commands unwritten the rows don't wait for the clock.
const UNWRITTEN_COMMANDS_MAX: usize = 20_000;

/// Handle on the applied state; clones share it.
#[derive(Clone)]
pub(crate) struct SharedState {
    inner: Arc<Inner>,
}

/// The same for the row writer. It must not keep the state alive: the state wakes it, and once nobody else has
/// the state, nothing will.
pub(super) struct WeakState(Weak<Inner>);

impl WeakState {
    pub(super) fn upgrade(&self) -> Option<SharedState> {
        self.0.upgrade().map(|inner| SharedState { inner })
    }
}

struct Inner {
    board: Arc<Board>,
    jobs: mpsc::Sender<Job>,
}

/// Where the thread that applies publishes, and where all others look.
pub(super) struct Board {
    published: watch::Sender<Arc<Live>>,
    /// The newest revision that has events.
    events: watch::Sender<u64>,
    rows: Mutex<Unwritten>,
    nudger: Nudger,
}

/// What the row writer takes: a published state, with the keys of all rows that were touched up to it.
struct Unwritten {
    live: Arc<Live>,
    touched: Vec<RowKey>,
    commands: usize,
}

impl Board {
    pub(super) fn new(first: &Live, nudger: Nudger) -> Self {
        let live = Arc::new(first.clone());
        let events = watch::Sender::new(live.state.newest_event().revision);
        let rows = Unwritten { live: Arc::clone(&live), touched: Vec::new(), commands: 0 };
        Self { published: watch::Sender::new(live), events, rows: Mutex::new(rows), nudger }
    }

    /// Publishes the state after so many more commands. No lock is held but for putting values in their place.
    pub(super) fn publish(&self, live: &mut Live, commands: usize) {
        live.keep_journal();
        let touched = live.state.take_touched();
        let fresh = Arc::new(live.clone());
        let mut rows = self.rows();
        rows.touched.extend(touched);
        rows.commands = rows.commands.saturating_add(commands);
        let many = rows.commands >= UNWRITTEN_COMMANDS_MAX;
        let _before = std::mem::replace(&mut rows.live, Arc::clone(&fresh));
        drop(rows);
        let newest = fresh.state.newest_event().revision;
        let _before = self.published.send_replace(fresh);
        self.events.send_if_modified(|known| std::mem::replace(known, newest) != newest);
        if many { self.nudger.soon() } else { self.nudger.changed() }
    }

    fn rows(&self) -> MutexGuard<'_, Unwritten> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the row writer takes at one instant.
pub(super) struct Taken {
    pub(super) live: Arc<Live>,
    /// Each key once.
    pub(super) touched: Vec<RowKey>,
}

impl SharedState {
    /// Starts the thread that owns the state.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(
        first: Instant,
        nudger: Nudger,
        counters: Arc<StoreCounters>,
        failed: watch::Sender<Option<String>>,
    ) -> io::Result<Self> {
        let live = Live::of(first);
        let board = Arc::new(Board::new(&live, nudger));
        let jobs = ApplyThread { live, board: Arc::clone(&board), counters, failed }.start()?;
        Ok(Self { inner: Arc::new(Inner { board, jobs }) })
    }

    pub(super) fn downgrade(&self) -> WeakState {
        WeakState(Arc::downgrade(&self.inner))
    }

    /// The last published state with what Raft knows of it.
    pub(super) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.inner.board.published.borrow())
    }

    /// The last published state, to be read at leisure. Costs microseconds, whatever its size.
    pub(crate) fn view(&self) -> State {
        self.live().state.clone()
    }

    /// Looks at the last published state.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.live().state)
    }

    /// The last log entry whose effect is in the published state.
    pub(crate) fn applied(&self) -> Option<LogId> {
        self.live().applied
    }

    /// Waits for the first published state of which something holds.
    ///
    /// # Errors
    /// When the thread that applies has ended.
    pub(crate) async fn until(&self, holds: impl FnMut(&Arc<Live>) -> bool) -> io::Result<Arc<Live>> {
        let mut published = self.inner.board.published.subscribe();
        // Cloned at once: a publication waits for those who look.
        let found = published.wait_for(holds).await.map(|live| Arc::clone(&live));
        found.map_err(|_| ended())
    }

    /// The newest revision that has events; raised by each publication that has brought some.
    pub(crate) fn events(&self) -> watch::Receiver<u64> {
        self.inner.board.events.subscribe()
    }

    /// Changes when another state is put in the place of the present one.
    pub(super) fn epoch(&self) -> u64 {
        self.live().epoch
    }

    /// The journal of one instant.
    pub(super) fn journal_view(&self) -> View {
        let live = self.live();
        View {
            revision: live.state.revision(),
            head: live.state.header.journal.clone(),
            oldest: live.state.oldest_event(),
            segments: live.state.segments.clone(),
            recent: live.recent.clone(),
        }
    }

    /// What of the journal is in memory, and the oldest segment that is to be kept.
    pub(super) fn journal_to_write(&self) -> (Recent, u64) {
        let live = self.live();
        (live.recent.clone(), live.state.oldest_segment())
    }

    /// Lets go of sealed segments that are on disk by now, as soon as the thread comes to it.
    pub(super) fn journal_written(&self, through: u64, epoch: u64) {
        let forget = move |live: &mut Live| live.recent.forget(through, epoch);
        // The thread has ended: there is no memory left to save.
        let _ended = self.inner.jobs.send(Job::Change(Box::new(forget)));
    }

    pub(super) fn applied_state(&self) -> (Option<LogId>, StoredMembership) {
        let live = self.live();
        (live.applied, live.membership.clone())
    }

    /// Has entries applied, in their order and after all that was asked for before. The answer comes when they are
    /// published.
    ///
    /// # Errors
    /// When an entry can't be read, or the thread has ended.
    pub(super) async fn apply(&self, entries: Vec<EntryResponder<Types>>) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        self.inner.jobs.send(Job::Apply { entries, done }).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// Changes the state beside the log, and waits until that is published. Blocks the calling thread.
    fn change<R: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Live) -> R + Send + 'static,
    ) -> io::Result<R> {
        let (done, answer) = mpsc::sync_channel(1);
        let job = Job::ChangeAndTell(Box::new(move |live| {
            let result = change(live);
            Box::new(move || {
                // Nobody waits any more: the member stops.
                let _gone = done.send(result);
            })
        }));
        self.inner.jobs.send(job).map_err(|_| ended())?;
        answer.recv().map_err(|_| ended())
    }

    /// Puts another state in the place of this one, as a snapshot does. To let go of a large one takes long: the
    /// caller does it, on a thread where that keeps nobody waiting.
    ///
    /// # Errors
    /// When the thread that applies has ended.
    pub(super) fn replace(&self, instant: Instant) -> io::Result<()> {
        self.put(Live::of(instant))
    }

    /// The same with a state that is right where this one is wrong.
    ///
    /// # Errors
    /// When the thread that applies has ended.
    pub(super) fn put_in_place(&self, mut fresh: Live) -> io::Result<()> {
        fresh.corrects = true;
        self.put(fresh)
    }

    fn put(&self, mut fresh: Live) -> io::Result<()> {
        // Kept until the end, so that it is this thread that lets go of the last of it.
        let published = self.live();
        let before = self.change(move |live| {
            fresh.epoch = live.epoch.wrapping_add(1);
            fresh.recent = fresh.recent.after(&live.recent);
            std::mem::replace(live, fresh)
        })?;
        drop((before, published));
        Ok(())
    }

    /// The newest places at which this state can be compared with others'.
    pub(crate) fn checkpoints(&self) -> Vec<Checkpoint> {
        self.live().checkpoints.all()
    }

    /// Changes the state beside the log, as a defect would.
    #[cfg(feature = "spoil")]
    #[expect(clippy::expect_used, reason = "for tests only: without its thread the member has failed")]
    pub(crate) fn spoil<R: Send + 'static>(&self, how: impl FnOnce(&mut State) -> R + Send + 'static) -> R {
        self.change(|live| how(&mut live.state)).expect("the thread that applies runs")
    }

    pub(super) fn take_for_rows(&self) -> Taken {
        let mut rows = self.inner.board.rows();
        rows.commands = 0;
        let (live, mut touched) = (Arc::clone(&rows.live), std::mem::take(&mut rows.touched));
        drop(rows);
        touched.sort_unstable();
        touched.dedup();
        Taken { live, touched }
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that applies has ended")
}
