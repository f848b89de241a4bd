//! Queue of the thread that applies.
//!
//! Entries of another leader have no client that waits for them here. The thread applies them in batches,
//! with the entries that arrive within [`LAG`]: a wakeup of a thread costs more than an entry. Everything
//! else is done at once, with all that was queued before it. A waiting reader ends the lag.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use openraft::storage::EntryResponder;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::apply_thread::Job;
use crate::store::log::payload_size;
use crate::sync::held;
use crate::types::Types;

/// Time for which an entry waits for others, once the thread is free.
const LAG: Duration = Duration::from_millis(10);
/// Entries that may lag, waiting or handed to the thread and not applied yet. More are applied at once, and
/// their sender waits for that.
const LAGGING_ENTRIES_MAX: usize = 4096;
/// Bytes of entries that may lag: a single entry may have megabytes.
const LAGGING_BYTES_MAX: usize = 8 << 20;

/// The sending end; the thread ends with the last one.
pub(super) struct JobSender(Arc<Queue>);

/// The thread's end; once it is dropped, senders fail.
pub(super) struct JobReceiver(Arc<Queue>);

/// A reader that waits for the thread; no entry lags during the lifetime of this value.
pub(super) struct Waiting<'a>(&'a Queue);

/// The thread that applies has ended.
#[derive(Debug)]
pub(super) struct Ended;

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Entries at the end of the queue that may lag.
    lagging: Vec<EntryResponder<Types>>,
    /// Size of all entries that lag: at the end of the queue, before other jobs, and taken but not yet
    /// applied.
    unapplied: Size,
    readers: usize,
    /// True if a job must not wait.
    is_urgent: bool,
    is_closed: bool,
    has_ended: bool,
    /// True while the thread sleeps.
    is_asleep: bool,
}

/// Size of entries that lag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    entries: usize,
    bytes: usize,
}

impl Size {
    fn of(entries: &[EntryResponder<Types>]) -> Self {
        let bytes = entries.iter().map(|(entry, _)| payload_size(&entry.payload));
        Self { entries: entries.len(), bytes: bytes.fold(0, usize::saturating_add) }
    }

    fn and(self, more: Self) -> Self {
        let entries = self.entries.saturating_add(more.entries);
        Self { entries, bytes: self.bytes.saturating_add(more.bytes) }
    }

    fn without(self, less: Self) -> Self {
        let entries = self.entries.saturating_sub(less.entries);
        Self { entries, bytes: self.bytes.saturating_sub(less.bytes) }
    }
}

impl Job {
    /// Size of the entries of a job that lag.
    pub(super) fn lagging(&self) -> Size {
        match self {
            Self::Apply { entries, done: None } => Size::of(entries),
            Self::Apply { done: Some(_), .. } | Self::Change(_) => Size::default(),
        }
    }
}

/// Makes a queue.
pub(super) fn queue() -> (JobSender, JobReceiver) {
    let queue = Arc::<Queue>::default();
    (JobSender(Arc::clone(&queue)), JobReceiver(queue))
}

impl JobSender {
    /// Queues a job that must not wait.
    pub(super) fn send(&self, job: Job) -> Result<(), Ended> {
        let mut state = self.0.open()?;
        state.close_batch();
        state.jobs.push_back(job);
        self.0.hurry(state);
        Ok(())
    }

    /// Queues entries that no client waits for. Returns them if too many aren't applied yet.
    ///
    /// # Errors
    /// If the thread has ended.
    pub(super) fn send_later(
        &self,
        entries: Vec<EntryResponder<Types>>,
    ) -> Result<Option<Vec<EntryResponder<Types>>>, Ended> {
        let mut state = self.0.open()?;
        let unapplied = state.unapplied.and(Size::of(&entries));
        if unapplied.entries > LAGGING_ENTRIES_MAX || unapplied.bytes > LAGGING_BYTES_MAX {
            return Ok(Some(entries));
        }
        state.unapplied = unapplied;
        let is_first = state.lagging.is_empty() && state.jobs.is_empty();
        state.lagging.extend(entries);
        if state.readers > 0 {
            self.0.hurry(state);
        } else if is_first && state.is_asleep {
            drop(state);
            self.0.changed.notify_one();
        }
        Ok(None)
    }

    /// Ends the lag until the result is dropped.
    pub(super) fn wait(&self) -> Waiting<'_> {
        let mut state = held(&self.0.state);
        state.readers += 1;
        if !state.lagging.is_empty() {
            self.0.hurry(state);
        }
        Waiting(&self.0)
    }
}

impl JobReceiver {
    /// Waits for jobs, and takes all of them; none once all senders are dropped.
    pub(super) async fn take(&self) -> Option<VecDeque<Job>> {
        let idle = |state: &State| state.jobs.is_empty() && state.lagging.is_empty() && !state.is_closed;
        while self.sleeps_while(idle) {
            self.0.changed.notified().await;
        }
        let lags = |state: &State| !state.is_urgent && !state.is_closed;
        let due = Instant::now() + LAG;
        while self.sleeps_while(lags) && timeout_at(due, self.0.changed.notified()).await.is_ok() {}
        let mut state = held(&self.0.state);
        state.is_asleep = false;
        state.is_urgent = false;
        state.close_batch();
        let jobs = std::mem::take(&mut state.jobs);
        (!jobs.is_empty()).then_some(jobs)
    }

    /// Records whether the thread sleeps, which it does while the condition holds.
    fn sleeps_while(&self, condition: impl FnOnce(&State) -> bool) -> bool {
        let mut state = held(&self.0.state);
        state.is_asleep = condition(&state);
        state.is_asleep
    }

    /// Notes that entries of this size no longer lag.
    pub(super) fn note_applied(&self, lagged: Size) {
        if lagged != Size::default() {
            let mut state = held(&self.0.state);
            state.unapplied = state.unapplied.without(lagged);
        }
    }
}

impl Queue {
    fn open(&self) -> Result<MutexGuard<'_, State>, Ended> {
        let state = held(&self.state);
        if state.has_ended { Err(Ended) } else { Ok(state) }
    }

    fn hurry(&self, mut state: MutexGuard<'_, State>) {
        let wakes = state.is_asleep && !state.is_urgent;
        state.is_urgent = true;
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
    }
}

impl State {
    /// Makes a job of the entries that lag, before a later one.
    fn close_batch(&mut self) {
        if !self.lagging.is_empty() {
            let entries = std::mem::take(&mut self.lagging);
            self.jobs.push_back(Job::Apply { entries, done: None });
        }
    }
}

impl Drop for JobSender {
    fn drop(&mut self) {
        held(&self.0.state).is_closed = true;
        self.0.changed.notify_one();
    }
}

impl Drop for JobReceiver {
    fn drop(&mut self) {
        let mut state = held(&self.0.state);
        state.has_ended = true;
        // Dropping the jobs tells their senders that no answer will come.
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        drop(jobs);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        held(&self.0.state).readers -= 1;
    }
}

#[cfg(test)]
mod tests {
    use openraft::EntryPayload;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::store::tests::sample::large_entry;
    use crate::types::{Entry, LogId, Vote};

    fn entry(index: u64) -> EntryResponder<Types> {
        let log_id = LogId { leader_id: *Vote::new_committed(1, 1).leader_id(), index };
        (Entry { log_id, payload: EntryPayload::Blank }, None)
    }

    fn change() -> Job {
        Job::Change(Box::new(|_| Box::new(|| ())))
    }

    /// Number of entries of each job; nothing for changes.
    fn shape(jobs: &VecDeque<Job>) -> Vec<Option<usize>> {
        let entries = |job: &Job| match job {
            Job::Apply { entries, .. } => Some(entries.len()),
            Job::Change(_) => None,
        };
        jobs.iter().map(entries).collect()
    }

    #[tokio::test]
    async fn entries_without_clients_become_one_job_and_keep_their_place() {
        let (sender, receiver) = queue();
        for index in 1..=3 {
            assert!(sender.send_later(vec![entry(index)]).unwrap().is_none());
        }
        sender.send(change()).unwrap();
        assert!(sender.send_later(vec![entry(4)]).unwrap().is_none());
        assert_eq!(shape(&receiver.take().await.unwrap()), [Some(3), None, Some(1)]);
        drop(sender);
        assert!(receiver.take().await.is_none());
    }

    #[tokio::test]
    async fn too_many_entries_come_back_to_their_sender() {
        let (sender, receiver) = queue();
        let many: Vec<_> = (0..LAGGING_ENTRIES_MAX as u64).map(entry).collect();
        assert!(sender.send_later(many).unwrap().is_none());
        assert_eq!(sender.send_later(vec![entry(9)]).unwrap().map(|entries| entries.len()), Some(1));
        sender.send(change()).unwrap();
        let jobs = receiver.take().await.unwrap();
        assert_eq!(shape(&jobs), [Some(LAGGING_ENTRIES_MAX), None]);
        assert!(sender.send_later(vec![entry(9)]).unwrap().is_some(), "they are taken, and not applied");
        jobs.iter().for_each(|job| receiver.note_applied(job.lagging()));
        assert!(sender.send_later(vec![entry(9)]).unwrap().is_none());
    }

    #[tokio::test]
    async fn large_entries_come_back_to_their_sender_earlier() {
        let (sender, receiver) = queue();
        let large = |index| vec![(large_entry(1, index, LAGGING_BYTES_MAX / 3), None)];
        for index in 1..=2 {
            assert!(sender.send_later(large(index)).unwrap().is_none());
        }
        assert!(sender.send_later(large(3)).unwrap().is_some());
        for job in receiver.take().await.unwrap() {
            receiver.note_applied(job.lagging());
        }
        assert!(sender.send_later(large(3)).unwrap().is_none());
    }

    #[tokio::test]
    async fn a_waiting_reader_ends_the_lag() {
        let (sender, receiver) = queue();
        {
            let _waiting = sender.wait();
            assert!(sender.send_later(vec![entry(1)]).unwrap().is_none());
            assert!(held(&sender.0.state).is_urgent);
        }
        assert_eq!(shape(&receiver.take().await.unwrap()), [Some(1)]);
        assert!(sender.send_later(vec![entry(2)]).unwrap().is_none());
        assert!(!held(&sender.0.state).is_urgent);
        let _waiting = sender.wait();
        assert!(held(&sender.0.state).is_urgent, "entries that lag already");
    }

    #[tokio::test]
    async fn a_sleeping_thread_wakes_and_a_dropped_receiver_fails_senders() {
        let (sender, receiver) = queue();
        let (taken, mut shapes) = unbounded_channel();
        let thread = tokio::spawn(async move {
            while let Some(jobs) = receiver.take().await {
                taken.send(shape(&jobs)).unwrap();
            }
            receiver
        });
        assert!(sender.send_later(vec![entry(1)]).unwrap().is_none());
        assert_eq!(shapes.recv().await.unwrap(), [Some(1)]);
        sender.send(change()).unwrap();
        assert_eq!(shapes.recv().await.unwrap(), [None]);
        let queue = Arc::clone(&sender.0);
        drop(sender);
        drop(thread.await.unwrap());
        assert!(JobSender(queue).send(change()).is_err());
    }
}
