//! Queue of the thread that applies.
//!
//! Entries of another leader have no client that waits for them here. The thread applies them in batches,
//! with the entries that arrive within [`LAG`]: a wakeup of a thread costs more than an entry. Everything
//! else is done at once, with all that was queued before it. A waiting reader ends the lag.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openraft::storage::EntryResponder;

use super::apply_thread::Job;
use crate::sync::held;
use crate::types::Types;

/// The longest time for which an entry waits for others.
const LAG: Duration = Duration::from_millis(10);
/// Entries that may wait; more are applied at once, and their sender waits for that.
const LAGGING_ENTRIES_MAX: usize = 4096;

/// The sending end; the thread ends with the last one.
pub(super) struct JobSender(Arc<Queue>);

/// The thread's end; once it is dropped, senders fail.
pub(super) struct JobReceiver(Arc<Queue>);

/// A reader that waits for the thread: nothing lags as long as it lives.
pub(super) struct Waiting<'a>(&'a Queue);

/// The thread that applies has ended.
#[derive(Debug)]
pub(super) struct Ended;

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Entries at the end of the queue that may lag.
    lagging: Vec<EntryResponder<Types>>,
    readers: usize,
    /// A job must not wait.
    is_urgent: bool,
    is_closed: bool,
    has_ended: bool,
    /// The thread sleeps.
    is_asleep: bool,
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

    /// Queues entries that no client waits for. Returns them if too many wait already.
    ///
    /// # Errors
    /// If the thread has ended.
    pub(super) fn send_later(
        &self,
        entries: Vec<EntryResponder<Types>>,
    ) -> Result<Option<Vec<EntryResponder<Types>>>, Ended> {
        let mut state = self.0.open()?;
        if state.lagging.len().saturating_add(entries.len()) > LAGGING_ENTRIES_MAX {
            return Ok(Some(entries));
        }
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
    /// Waits for jobs, and takes all of them; none once all senders are gone.
    pub(super) fn take(&self) -> Option<VecDeque<Job>> {
        let mut state = held(&self.0.state);
        state.is_asleep = true;
        let idle = |state: &mut State| state.jobs.is_empty() && state.lagging.is_empty() && !state.is_closed;
        state = self.0.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        let lags = |state: &mut State| !state.is_urgent && !state.is_closed;
        let waited = self.0.changed.wait_timeout_while(state, LAG, lags);
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_asleep = false;
        state.is_urgent = false;
        state.close_batch();
        let jobs = std::mem::take(&mut state.jobs);
        (!jobs.is_empty()).then_some(jobs)
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
        // Their senders see that the answers never come.
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
    use std::sync::mpsc::channel;
    use std::thread;

    use openraft::EntryPayload;

    use super::*;
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

    #[test]
    fn entries_without_clients_become_one_job_and_keep_their_place() {
        let (sender, receiver) = queue();
        for index in 1..=3 {
            assert!(sender.send_later(vec![entry(index)]).unwrap().is_none());
        }
        sender.send(change()).unwrap();
        assert!(sender.send_later(vec![entry(4)]).unwrap().is_none());
        assert_eq!(shape(&receiver.take().unwrap()), [Some(3), None, Some(1)]);
        drop(sender);
        assert!(receiver.take().is_none());
    }

    #[test]
    fn too_many_entries_come_back_to_their_sender() {
        let (sender, receiver) = queue();
        let many: Vec<_> = (0..LAGGING_ENTRIES_MAX as u64).map(entry).collect();
        assert!(sender.send_later(many).unwrap().is_none());
        assert_eq!(sender.send_later(vec![entry(9)]).unwrap().map(|entries| entries.len()), Some(1));
        assert_eq!(shape(&receiver.take().unwrap()), [Some(LAGGING_ENTRIES_MAX)]);
        assert!(sender.send_later(vec![entry(9)]).unwrap().is_none());
    }

    #[test]
    fn a_waiting_reader_ends_the_lag() {
        let (sender, receiver) = queue();
        {
            let _waiting = sender.wait();
            assert!(sender.send_later(vec![entry(1)]).unwrap().is_none());
            assert!(held(&sender.0.state).is_urgent);
        }
        assert_eq!(shape(&receiver.take().unwrap()), [Some(1)]);
        assert!(sender.send_later(vec![entry(2)]).unwrap().is_none());
        assert!(!held(&sender.0.state).is_urgent);
        let _waiting = sender.wait();
        assert!(held(&sender.0.state).is_urgent, "entries that lag already");
    }

    #[test]
    fn a_sleeping_thread_wakes_and_a_dropped_receiver_fails_senders() {
        let (sender, receiver) = queue();
        let (taken, shapes) = channel();
        let thread = thread::spawn(move || {
            while let Some(jobs) = receiver.take() {
                taken.send(shape(&jobs)).unwrap();
            }
            receiver
        });
        assert!(sender.send_later(vec![entry(1)]).unwrap().is_none());
        assert_eq!(shapes.recv().unwrap(), [Some(1)]);
        sender.send(change()).unwrap();
        assert_eq!(shapes.recv().unwrap(), [None]);
        let queue = Arc::clone(&sender.0);
        drop(sender);
        drop(thread.join().unwrap());
        assert!(JobSender(queue).send(change()).is_err());
    }
}
