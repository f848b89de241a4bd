//! Applied state: published by the thread that applies, read by all others.
//!
//! One thread owns the state and changes it ([`super::apply_thread`]). After each bounded number of commands
//! it publishes the state, which costs a clone of persistent maps. Readers use the last published state and
//! wait for no command; a reader that needs a newer one waits for its publication.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::task::Poll;

use openraft::storage::EntryResponder;
use tokio::sync::{oneshot, watch};

use super::apply_thread::{ApplyThread, Job, Tell};
use super::board::{Board, Taken};
use super::checkpoints::Checkpoint;
use super::jobs::JobSender;
use super::live::Live;
use crate::store::directory::{StoreCounters, StoreFailure};
use crate::store::journal::{JournalSource, Recent, View};
use crate::store::rows::Notifier;
use crate::store::snapshot::Instant;
use crate::threads;
use crate::types::{LogId, Types};
use ipam_machine::{Broken, State};

/// Handle on the applied state; clones share it.
#[derive(Clone)]
pub(crate) struct SharedState {
    inner: Arc<Inner>,
}

/// Weak handle on the applied state, for the row writer. A strong handle would keep the state alive for ever,
/// since the row writer ends only after the state, which sends its wakeups, is dropped.
pub(in crate::store) struct WeakState(Weak<Inner>);

impl WeakState {
    pub(super) fn upgrade(&self) -> Option<SharedState> {
        self.0.upgrade().map(|inner| SharedState { inner })
    }

    pub(super) fn board(&self) -> Option<Arc<Board>> {
        self.0.upgrade().map(|inner| Arc::clone(&inner.board))
    }
}

struct Inner {
    board: Arc<Board>,
    jobs: JobSender,
    /// True once entries that no client waits for may lag.
    may_lag: AtomicBool,
}

impl SharedState {
    /// Starts the thread that owns the state.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(in crate::store) fn start(
        first: Instant,
        notifier: Notifier,
        counters: Arc<StoreCounters>,
        failed: watch::Sender<Option<StoreFailure>>,
    ) -> io::Result<Self> {
        let live = Live::of(first);
        let board = Arc::new(Board::new(&live, notifier, failed));
        let jobs = ApplyThread { live, board: Arc::clone(&board), counters }.start()?;
        Ok(Self { inner: Arc::new(Inner { board, jobs, may_lag: AtomicBool::new(false) }) })
    }

    pub(in crate::store) fn downgrade(&self) -> WeakState {
        WeakState(Arc::downgrade(&self.inner))
    }

    /// Last published state with its Raft position.
    pub(in crate::store) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.inner.board.published.borrow())
    }

    /// Last published state, for longer reads. Costs microseconds at any size.
    pub(crate) fn view(&self) -> State {
        self.live().state.clone()
    }

    /// Last published state, with the last log entry whose effect is in it.
    pub(crate) fn view_with_position(&self) -> (State, Option<LogId>) {
        let live = self.live();
        (live.state.clone(), live.applied)
    }

    /// Reads the last published state.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.live().state)
    }

    /// Last log entry whose effect is in the published state.
    pub(crate) fn applied(&self) -> Option<LogId> {
        self.live().applied
    }

    /// Waits for the first published state that meets a condition.
    ///
    /// # Errors
    /// When the thread that applies has ended.
    pub(crate) async fn until(&self, holds: impl FnMut(&Arc<Live>) -> bool) -> io::Result<Arc<Live>> {
        let mut published = self.inner.board.published.subscribe();
        let _waiting = self.inner.jobs.wait();
        // Cloned at once: a publication waits for readers.
        let found = published.wait_for(holds).await.map(|live| Arc::clone(&live));
        found.map_err(|_| ended())
    }

    /// Watches the newest revision that has events.
    pub(crate) fn events(&self) -> watch::Receiver<u64> {
        self.inner.board.events.subscribe()
    }

    /// Lets entries that no client waits for lag: from the end of the replay of the log on.
    pub(crate) fn allow_lag(&self) {
        self.inner.may_lag.store(true, Relaxed);
    }

    /// Applies entries in order, after all earlier requests. Returns once they are published, or at once if
    /// no client waits for them.
    ///
    /// # Errors
    /// If an entry can't be decoded, or the thread has ended.
    pub(super) async fn apply(&self, entries: Vec<EntryResponder<Types>>) -> io::Result<()> {
        let jobs = &self.inner.jobs;
        let lags = self.inner.may_lag.load(Relaxed) && entries.iter().all(|(_, client)| client.is_none());
        let entries = if lags { jobs.send_later(entries).map_err(|_| ended())? } else { Some(entries) };
        let Some(entries) = entries else { return Ok(()) };
        let (done, answer) = oneshot::channel();
        jobs.send(Job::Apply { entries, done: Some(done) }).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// Waits until all earlier entries are applied and published.
    ///
    /// # Errors
    /// If an entry can't be decoded, or the thread has ended.
    pub(super) async fn settle(&self) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        let job = Job::Apply { entries: Vec::new(), done: Some(done) };
        self.inner.jobs.send(job).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// Changes the state outside the log. `tell` gets the result when it is published.
    fn change<R: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Live) -> R + Send + 'static,
        tell: impl FnOnce(R) + Send + 'static,
    ) -> io::Result<()> {
        let job = Job::Change(Box::new(move |live| {
            let result = change(live);
            Box::new(move || tell(result))
        }));
        self.inner.jobs.send(job).map_err(|_| ended())
    }

    /// Replaces the state by another one, as a snapshot does.
    ///
    /// # Errors
    /// If the apply thread has ended.
    pub(in crate::store) async fn replace(&self, instant: Instant) -> io::Result<()> {
        let fresh = threads::blocking(move || Live::of(instant)).await.map_err(io::Error::other)?;
        self.put(fresh).await
    }

    pub(super) async fn put(&self, mut fresh: Live) -> io::Result<()> {
        // Kept until the end, so that the last reference is dropped below.
        let published = self.live();
        let (done, answer) = oneshot::channel();
        let change = move |live: &mut Live| {
            fresh.install_count = live.install_count.wrapping_add(1);
            fresh.recent = fresh.recent.after(&live.recent);
            std::mem::replace(live, fresh)
        };
        // Without a receiver the member stops.
        self.change(change, move |before| drop(done.send(before)))?;
        let before = answer.await.map_err(|_| ended())?;
        // Dropping a large state takes long.
        threads::blocking(move || drop((before, published))).await.map_err(io::Error::other)
    }

    /// Calls the machine on a copy of the state. A broken invariant stops this member, since its state breaks
    /// the same invariant.
    ///
    /// # Errors
    /// The invariant that was found broken.
    pub(crate) fn guard<R>(&self, call: impl FnOnce() -> R) -> Result<R, Broken> {
        self.inner.board.guard(call)
    }

    /// Runs asynchronous work with the same check as [`guard`](Self::guard), also on other threads.
    ///
    /// # Errors
    /// The invariant that was found broken.
    pub(crate) async fn guard_work<F: Future>(&self, work: F) -> Result<F::Output, Broken> {
        let mut work = pin!(work);
        poll_fn(|context| match self.guard(|| work.as_mut().poll(context)) {
            Ok(polled) => polled.map(Ok),
            Err(broken) => Poll::Ready(Err(broken)),
        })
        .await
    }

    /// Like `guard`, for openraft and other callers with errors of their own.
    ///
    /// # Errors
    /// The errors of the work, and the invariant that was found broken.
    pub(crate) async fn guard_io<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        self.guard_work(work).await.map_err(io::Error::other)?
    }

    /// Returns the broken invariant, if any: nothing may be read or written from the state then.
    pub(crate) fn broken(&self) -> Option<Broken> {
        self.inner.board.broken().cloned()
    }

    /// Checks that no invariant of the state was found broken.
    ///
    /// # Errors
    /// The broken invariant.
    pub(super) fn check_unbroken(&self) -> io::Result<()> {
        self.inner.board.broken().map_or(Ok(()), |broken| Err(io::Error::other(broken.clone())))
    }

    /// Returns the newest checkpoints, at which this state can be compared with others'.
    pub(crate) fn checkpoints(&self) -> Vec<Checkpoint> {
        self.live().checkpoints.all()
    }

    /// Test access: changes the state outside the log, as a defect would.
    #[cfg(feature = "testing")]
    #[expect(clippy::expect_used, reason = "for tests only: without its thread the member has failed")]
    pub(crate) fn spoil<R: Send + 'static>(&self, how: impl FnOnce(&mut State) -> R + Send + 'static) -> R {
        let (done, changed) = std::sync::mpsc::sync_channel(1);
        let tell = move |result| drop(done.send(result));
        self.change(|live| how(&mut live.state), tell).expect("the thread that applies runs");
        changed.recv().expect("the thread that applies runs")
    }

    pub(super) fn take_for_rows(&self) -> Taken {
        self.inner.board.take_for_rows()
    }
}

impl JournalSource for SharedState {
    fn view(&self) -> View {
        let live = self.live();
        View {
            revision: live.state.revision(),
            head: live.state.header().journal.clone(),
            oldest: live.state.oldest_event(),
            segments: live.state.segments.clone(),
            recent: live.recent.clone(),
        }
    }

    fn to_write(&self) -> (Recent, u64) {
        let live = self.live();
        (live.recent.clone(), live.state.oldest_segment())
    }

    /// Drops sealed segments that are on disk, as soon as the thread is free.
    fn written(&self, through: u64, install_count: u64) {
        let forget = move |live: &mut Live| -> Tell {
            live.recent.forget(through, install_count);
            Box::new(|| ())
        };
        // The thread has ended: there is no memory left to free.
        let _ended = self.inner.jobs.send(Job::Change(Box::new(forget)));
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that applies has ended")
}
