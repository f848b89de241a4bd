//! The applied state, shared by those who apply, read, snapshot and write rows.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time;

use tokio::sync::watch;

use super::behind::Nudger;
use super::checkpoints::{Checkpoint, Checkpoints};
use super::journal::{Blocks, Recent, View};
use crate::machine::{RowKey, State};
use crate::types::{LogId, StoredMembership};

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
    live: RwLock<Live>,
    applied: watch::Sender<Option<LogId>>,
    /// The newest revision that has events.
    events: watch::Sender<u64>,
    nudger: Nudger,
}

/// The state with what Raft knows of it.
pub(super) struct Live {
    pub(super) state: State,
    pub(super) applied: Option<LogId>,
    pub(super) membership: StoredMembership,
    pub(super) checkpoints: Checkpoints,
    recent: Recent,
    epoch: u64,
    /// It was put in the place of one that was wrong.
    corrects: bool,
    unwritten: usize,
    /// When log time last moved here.
    moved: time::Instant,
}

impl Live {
    /// The state of an instant, to go on from.
    pub(super) fn of(instant: Instant) -> Self {
        let Instant { state, applied, membership, journal } = instant;
        let recent = Recent::new(&state.header.journal, journal);
        let checkpoints = Checkpoints::default();
        let moved = time::Instant::now();
        Self {
            state,
            applied,
            membership,
            checkpoints,
            recent,
            epoch: 0,
            corrects: false,
            unwritten: 0,
            moved,
        }
    }

    /// Takes what the state has written down since the last call into the journal.
    pub(super) fn keep_journal(&mut self) {
        let journaled = self.state.take_journaled();
        self.recent.take(journaled);
    }
}

/// State, last applied entry, membership and open segment of the journal, of one instant; by default the one
/// before the first entry.
#[derive(Clone, Default)]
pub(super) struct Instant {
    pub(super) state: State,
    pub(super) applied: Option<LogId>,
    pub(super) membership: StoredMembership,
    pub(super) journal: Blocks,
}

/// What the row writer takes at one instant.
pub(super) struct Taken {
    pub(super) state: State,
    pub(super) touched: Vec<RowKey>,
    pub(super) applied: Option<LogId>,
    pub(super) membership: StoredMembership,
    pub(super) epoch: u64,
    /// What the rows held before was wrong.
    pub(super) corrects: bool,
}

impl SharedState {
    pub(super) fn new(
        state: State,
        applied: Option<LogId>,
        membership: StoredMembership,
        journal: Blocks,
        nudger: Nudger,
    ) -> Self {
        let events = watch::Sender::new(state.newest_event().revision);
        let live = RwLock::new(Live::of(Instant { state, applied, membership, journal }));
        Self { inner: Arc::new(Inner { live, applied: watch::Sender::new(applied), events, nudger }) }
    }

    pub(super) fn downgrade(&self) -> WeakState {
        WeakState(Arc::downgrade(&self.inner))
    }

    /// The state of this instant, to be read at leisure. Costs microseconds, whatever its size.
    pub(crate) fn view(&self) -> State {
        self.read().state.clone()
    }

    /// Looks at the state in place. Whoever takes long keeps `apply` waiting: clone it instead.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.read().state)
    }

    /// About what log time the leader's next entry would carry: what was applied last, and what this process's
    /// monotonic clock measured since. Never ahead of a leader at work; while nobody leads it goes on.
    pub(crate) fn log_time_ms(&self) -> u64 {
        let live = self.read();
        let since = u64::try_from(live.moved.elapsed().as_millis()).unwrap_or(u64::MAX);
        live.state.log_time_ms().saturating_add(since)
    }

    /// Up to where the state has got; raised after each applied chunk.
    pub(crate) fn applied(&self) -> watch::Receiver<Option<LogId>> {
        self.inner.applied.subscribe()
    }

    /// The newest revision that has events; raised after each applied chunk that has brought some.
    pub(crate) fn events(&self) -> watch::Receiver<u64> {
        self.inner.events.subscribe()
    }

    /// Changes when another state is put in the place of the present one.
    pub(super) fn epoch(&self) -> u64 {
        self.read().epoch
    }

    /// All that a snapshot needs, of one instant.
    pub(super) fn point(&self) -> Instant {
        let live = self.read();
        Instant {
            state: live.state.clone(),
            applied: live.applied,
            membership: live.membership.clone(),
            journal: live.recent.open().to_vec(),
        }
    }

    /// The journal of one instant.
    pub(super) fn journal_view(&self) -> View {
        let live = self.read();
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
        let live = self.read();
        (live.recent.clone(), live.state.oldest_segment())
    }

    /// Lets go of sealed segments that are on disk by now.
    pub(super) fn journal_written(&self, through: u64, epoch: u64) {
        self.write().recent.forget(through, epoch);
    }

    pub(super) fn applied_state(&self) -> (Option<LogId>, StoredMembership) {
        let live = self.read();
        (live.applied, live.membership.clone())
    }

    /// Changes the state under one lock and tells everybody. `change` says how many commands it applied.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Live) -> (usize, R)) -> R {
        let mut live = self.write();
        let before_ms = live.state.log_time_ms();
        let (commands, result) = change(&mut live);
        if live.state.log_time_ms() != before_ms {
            live.moved = time::Instant::now();
        }
        live.keep_journal();
        live.unwritten = live.unwritten.saturating_add(commands);
        let (applied, many) = (live.applied, live.unwritten >= UNWRITTEN_COMMANDS_MAX);
        let newest = live.state.newest_event().revision;
        drop(live);
        self.inner.applied.send_replace(applied);
        self.inner.events.send_if_modified(|known| std::mem::replace(known, newest) != newest);
        if many {
            self.inner.nudger.soon()
        } else {
            self.inner.nudger.changed()
        }
        result
    }

    /// Puts another state in the place of this one, as a snapshot does. To let go of a large one takes long: that
    /// is done when nobody waits for the lock any more.
    pub(super) fn replace(&self, instant: Instant) {
        self.put(Live::of(instant));
    }

    /// The same with a state that is right where this one is wrong.
    pub(super) fn put_in_place(&self, mut fresh: Live) {
        fresh.corrects = true;
        self.put(fresh);
    }

    fn put(&self, mut fresh: Live) {
        let before = self.change(move |live| {
            fresh.epoch = live.epoch.wrapping_add(1);
            fresh.recent = fresh.recent.after(&live.recent);
            (0, std::mem::replace(live, fresh))
        });
        drop(before);
    }

    /// The newest places at which this state can be compared with others'.
    pub(crate) fn checkpoints(&self) -> Vec<Checkpoint> {
        self.read().checkpoints.all()
    }

    /// Changes the state beside the log, as a defect would.
    #[cfg(feature = "spoil")]
    pub(crate) fn spoil(&self, how: impl FnOnce(&mut State)) {
        self.change(|live| (0, how(&mut live.state)));
    }

    pub(super) fn take_for_rows(&self) -> Taken {
        let mut live = self.write();
        live.unwritten = 0;
        // Before the clone, or the clone would carry the keys too.
        let touched = live.state.take_touched();
        Taken {
            state: live.state.clone(),
            touched,
            applied: live.applied,
            membership: live.membership.clone(),
            epoch: live.epoch,
            corrects: live.corrects,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Live> {
        self.inner.live.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Live> {
        self.inner.live.write().unwrap_or_else(PoisonError::into_inner)
    }
}
