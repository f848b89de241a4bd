//! Thread that owns the state and applies log entries to it.
//!
//! It runs nothing else and waits for nothing: no disk, no network, no lock that is held for longer than an
//! assignment. So an expensive command delays later commands only, and no other part of the member: not
//! elections, heartbeats, or readers of the published state.

use std::sync::Arc;
use std::{io, thread};

use openraft::storage::EntryResponder;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::board::Board;
use super::entry::Ready;
use super::jobs::{self, JobReceiver, JobSender};
use super::live::Live;
use crate::store::directory::{StoreCounters, StoreFailure};
use crate::threads;
use crate::types::Types;

/// Commands after which the state is published, at the next end of an entry.
const COMMANDS_PER_PUBLICATION_MAX: usize = 256;

/// Completion callback of a change, called after the publication.
pub(super) type Tell = Box<dyn FnOnce() + Send>;
/// Change of the state outside the log.
type Change = Box<dyn FnOnce(&mut Live) -> Tell + Send>;

/// Jobs of the thread, in the order in which they are queued.
pub(super) enum Job {
    /// Apply entries, and publish their effect.
    Apply {
        /// Entries in the order of the log.
        entries: Vec<EntryResponder<Types>>,
        /// The answer once all is published; nothing for entries that no client waits for.
        done: Option<oneshot::Sender<io::Result<()>>>,
    },
    /// Changes the state outside the log, publishes it, then notifies the waiter.
    Change(Change),
}

/// The thread's state.
pub(super) struct ApplyThread {
    pub(super) live: Live,
    pub(super) board: Arc<Board>,
    pub(super) counters: Arc<StoreCounters>,
}

impl Drop for ApplyThread {
    fn drop(&mut self) {
        if thread::panicking() {
            let why = "the thread that applies commands has panicked".to_owned();
            self.board.fail(StoreFailure::Disk(why));
        }
    }
}

impl ApplyThread {
    /// Starts the thread. It ends with the last sender of jobs.
    pub(super) fn start(self) -> io::Result<JobSender> {
        let (jobs, queue) = jobs::queue();
        threads::start("ipamd-apply", self.run(queue))?;
        Ok(jobs)
    }

    async fn run(mut self, queue: JobReceiver) {
        while let Some(jobs) = queue.take().await {
            for job in jobs {
                let lagged = job.lagging();
                let is_applied = self.execute(job);
                queue.note_applied(lagged);
                // An entry is missing in the state, or an invariant broke while the machine changed the
                // state. Nothing later is applied or published.
                if !is_applied || self.board.broken().is_some() {
                    return;
                }
            }
        }
    }

    /// Executes a job. Returns false if an entry can't be applied.
    fn execute(&mut self, job: Job) -> bool {
        match job {
            Job::Apply { entries, done } => {
                let applied = self.apply(entries);
                let is_applied = applied.is_ok();
                match (applied, done) {
                    (applied, Some(done)) => {
                        // The receiver is gone: raft has ended.
                        let _gone = done.send(applied);
                    }
                    (Ok(()), None) => {}
                    // No answer reports the error to raft, so the member fails here.
                    (Err(error), None) => {
                        self.board.fail(StoreFailure::Disk(format!("an entry can't be applied: {error}")));
                    }
                }
                is_applied
            }
            Job::Change(change) => {
                if let Ok(tell) = self.board.guard(|| change(&mut self.live)) {
                    self.board.publish(&mut self.live, 0);
                    tell();
                }
                true
            }
        }
    }

    fn apply(&mut self, entries: Vec<EntryResponder<Types>>) -> io::Result<()> {
        let (mut commands, mut answers) = (0, Vec::new());
        let mut begun = Instant::now();
        let mut entries = entries.into_iter().peekable();
        while let Some(entry) = entries.next() {
            let ready = Ready::new(entry)?;
            let applied = self.board.guard(|| ready.apply(&mut self.live));
            let (applied, answer) = applied.map_err(io::Error::other)??;
            commands += applied;
            answers.extend(answer);
            if commands >= COMMANDS_PER_PUBLICATION_MAX || entries.peek().is_none() {
                self.board.publish(&mut self.live, std::mem::take(&mut commands));
                self.counters.apply.observe(begun.elapsed());
                // Answers follow the publication: an acknowledged write is in every state that is read later.
                for (responder, outcomes) in answers.drain(..) {
                    responder.send(outcomes);
                }
                begun = Instant::now();
            }
        }
        Ok(())
    }
}
