//! Execution of commands on the log's files.
//!
//! The thread takes all commands that wait, writes them, syncs once, answers, and begins again. While one
//! sync is under way the next group gathers by itself, so the disk sets the pace and a lone writer waits for
//! no other.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use openraft::storage::IOFlushed;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::files::LogFiles;
use super::record::Record;
use super::view::View;
use crate::simulation;
use crate::store::directory::{Durable, Headroom, LogMark, StoreCounters, StoreFailure, fail};
use crate::store::rows::Notifier;
use crate::sync::held;
use crate::types::{Entry, LogId, Types, Vote};
use ipam_machine::SeededBug;

/// Commands at which a group is closed, so that the last one doesn't delay the first.
const GROUP_COMMANDS_MAX: usize = 4096;

pub(super) type Answer<T> = oneshot::Sender<io::Result<T>>;

/// Jobs of the thread, in the order in which they are queued.
pub(super) enum Command {
    Append {
        entries: Vec<Entry>,
        number: u64,
        done: IOFlushed<Types>,
    },
    Vote {
        vote: Vote,
        done: Answer<()>,
    },
    Truncate {
        keep: Option<LogId>,
    },
    Purge {
        upto: LogId,
    },
    Read {
        range: Range<u64>,
        bytes_max: usize,
        done: Answer<Vec<Entry>>,
    },
    Close {
        done: Answer<()>,
    },
    /// Writes the committed index.
    #[cfg(test)]
    Commit {
        done: Answer<()>,
    },
    /// Stands still until the other end is dropped, so that a test can let a group gather.
    #[cfg(test)]
    Hold(std::sync::mpsc::Receiver<()>),
}

/// The thread's state.
pub(super) struct LogThread {
    pub(super) commands: UnboundedReceiver<Command>,
    pub(super) files: LogFiles,
    pub(super) view: Arc<Mutex<View>>,
    pub(super) durable: Arc<Durable>,
    pub(super) notifier: Notifier,
    pub(super) failed: watch::Sender<Option<StoreFailure>>,
    pub(super) headroom: Arc<Headroom>,
    pub(super) counters: Arc<StoreCounters>,
}

/// Callers that wait for the sync of the current group.
#[derive(Default)]
pub(super) struct Group {
    appends: Vec<IOFlushed<Types>>,
    votes: Vec<(Vote, Answer<()>)>,
    closing: Vec<Answer<()>>,
    /// Records must reach the disk.
    pub(super) sync: bool,
    /// Records are written.
    is_written: bool,
    /// Instant at which the group was handed to the disk.
    begun: Option<Instant>,
    #[cfg(test)]
    commits: Vec<Answer<()>>,
}

impl LogThread {
    /// Writes until the log is closed, or its last handle is dropped. After an error it refuses commands
    /// until then: the kernel may have dropped the dirty pages, and a second fsync would succeed without
    /// them.
    pub(super) async fn run(mut self) {
        match self.write_groups().await {
            Ok(closing) => {
                drop(self);
                for done in closing {
                    // An error means that the closer has given up.
                    let _gone = done.send(Ok(()));
                }
            }
            Err(_reported) => self.refuse_all().await,
        }
    }

    /// Returns the answers of the callers that wait for the end of the thread.
    async fn write_groups(&mut self) -> io::Result<Vec<Answer<()>>> {
        while let Some(group) = self.next_group().await? {
            let syncs = group.sync;
            if syncs {
                simulation::ready(self.files.dir()).await;
            }
            let closing = self.write(group)?;
            if syncs {
                // The removal counts as a flush, so that a disk that stalls meanwhile is detected.
                self.counters.flush.begin();
                let removed = self.files.remove_purged();
                self.counters.flush.end();
                if let Err(error) = removed {
                    return Err(self.fail(Group::default(), error));
                }
            }
            if !closing.is_empty() {
                return Ok(closing);
            }
        }
        Ok(Vec::new())
    }

    /// Executes commands until a group of them has to be written, and returns that. None if the log is closed
    /// or its last handle is dropped.
    async fn next_group(&mut self) -> io::Result<Option<Group>> {
        loop {
            let Some(first) = self.commands.recv().await else { return Ok(None) };
            self.counters.flush.begin();
            let mut group = Group::default();
            let mut outcome = self.take(first, &mut group);
            for _ in 1..GROUP_COMMANDS_MAX {
                match self.commands.try_recv() {
                    Ok(command) if outcome.is_ok() => outcome = self.take(command, &mut group),
                    Ok(command) => refuse(command, &mut group),
                    Err(_) => break,
                }
            }
            if outcome.is_err() || group.is_written {
                group.begun = Some(Instant::now());
                return match outcome {
                    Ok(()) => Ok(Some(group)),
                    Err(error) => Err(self.fail(group, error)),
                };
            }
            self.counters.flush.end();
            group.grant(&self.view);
        }
    }

    /// Writes a group, and answers it. Returns the answers that wait for the end of the thread.
    fn write(&mut self, mut group: Group) -> io::Result<Vec<Answer<()>>> {
        if group.sync {
            // Overwriting existing zeros needs no more space.
            let growth = self.files.growth();
            if growth > 0 {
                self.headroom.make_room(growth);
            }
            #[cfg(feature = "testing")]
            self.counters.flush.linger();
        }
        let written = self.files.write(group.sync && !SeededBug::SkippedFsync.is_on());
        self.counters.flush.end();
        if let Err(error) = written {
            return Err(self.fail(group, error));
        }
        if group.sync {
            self.synced(&group);
        }
        let closing = std::mem::take(&mut group.closing);
        group.grant(&self.view);
        Ok(closing)
    }

    async fn refuse_all(&mut self) {
        while let Some(command) = self.commands.recv().await {
            let mut group = Group::default();
            refuse(command, &mut group);
            group.refuse("the log is closed");
        }
    }

    fn take(&mut self, command: Command, group: &mut Group) -> io::Result<()> {
        match command {
            Command::Append { entries, number, done } => {
                group.appends.push(done);
                group.sync();
                self.commit()?;
                for entry in entries {
                    self.files.add(&Record::Append(entry))?;
                }
                held(&self.view).pass_on(number);
            }
            Command::Vote { vote, done } => {
                group.votes.push((vote, done));
                // This record only marks the vote on disk as committed, so it needs no sync: a majority has
                // the vote even if the mark is lost, and no entry of that leader is on disk before the mark.
                // This saves one fsync per election on each side.
                let known = self.files.state().vote.map(|known| known.leader_id);
                if vote.committed && known == Some(vote.leader_id) {
                    group.is_written = true;
                } else {
                    group.sync();
                }
                self.files.add(&Record::Vote(vote))?;
            }
            Command::Truncate { keep } => {
                group.sync();
                self.files.add(&Record::TruncateAfter(keep))?;
            }
            Command::Purge { upto } => {
                group.sync();
                self.files.add(&Record::PurgeUpto(upto))?;
            }
            Command::Read { range, bytes_max, done } => {
                let _gone = done.send(self.files.read(range, bytes_max));
            }
            Command::Close { done } => {
                group.closing.push(done);
                group.sync();
                self.commit()?;
            }
            #[cfg(test)]
            Command::Commit { done } => {
                self.commit()?;
                group.is_written = true;
                group.commits.push(done);
            }
            #[cfg(test)]
            Command::Hold(until) => drop(until.recv()),
        }
        Ok(())
    }

    /// Records the committed index together with other records. It isn't needed for safety and only shortens
    /// the replay at a start.
    fn commit(&mut self) -> io::Result<()> {
        let state = self.files.state();
        let committed = held(&self.view).committed.min(state.last);
        if let Some(log_id) = committed
            && state.committed < committed
        {
            self.files.add(&Record::Commit(log_id))?;
        }
        Ok(())
    }

    /// Publishes the part of the log that is now durable.
    fn synced(&self, group: &Group) {
        if let Some(begun) = group.begun {
            let took = begun.elapsed();
            self.counters.fsync.observe(took);
            self.counters.flush.took(took);
        }
        let state = self.files.state();
        self.durable.set_log(LogMark { end: self.files.end(), last: state.last, vote: state.vote });
        if group.votes.is_empty() { self.notifier.changed() } else { self.notifier.soon() }
    }

    /// Ends the log, and refuses the group. Returns the error.
    pub(super) fn fail(&self, group: Group, error: io::Error) -> io::Error {
        let reason = format!("the log can't be written: {error}");
        tracing::error!(reason, "the process must be started again; nothing acknowledged is lost");
        held(&self.view).failed = Some(reason.clone());
        self.durable.end();
        // Recorded first, so that an observer of raft's end finds the reason.
        fail(&self.failed, StoreFailure::Disk(reason.clone()));
        group.refuse(&reason);
        error
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _reported = self.fail(Group::default(), io::Error::other("its thread has panicked"));
        }
        self.durable.end();
        while let Ok(command) = self.commands.try_recv() {
            let mut group = Group::default();
            refuse(command, &mut group);
            group.refuse("the log is closed");
        }
        let mut view = held(&self.view);
        if view.failed.is_none() {
            view.failed = Some("the log is closed".to_owned());
        }
    }
}

impl Group {
    fn sync(&mut self) {
        self.sync = true;
        self.is_written = true;
    }

    fn grant(self, view: &Mutex<View>) {
        #[cfg(test)]
        self.commits.into_iter().for_each(|done| done.send(Ok(())).unwrap_or_default());
        for done in self.appends {
            done.io_completed(Ok(()));
        }
        for (vote, done) in self.votes {
            held(view).vote = Some(vote);
            let _gone = done.send(Ok(()));
        }
    }

    pub(super) fn refuse(self, reason: &str) {
        for done in self.appends {
            done.io_completed(Err(io::Error::other(reason)));
        }
        for done in self.votes.into_iter().map(|(_, done)| done).chain(self.closing) {
            let _gone = done.send(Err(io::Error::other(reason)));
        }
    }
}

/// Adds a command to a group that is to be refused.
fn refuse(command: Command, group: &mut Group) {
    match command {
        Command::Append { done, .. } => group.appends.push(done),
        Command::Vote { vote, done } => group.votes.push((vote, done)),
        Command::Close { done } => group.closing.push(done),
        // A reader sees its channel close.
        Command::Read { .. } | Command::Truncate { .. } | Command::Purge { .. } => {}
        #[cfg(test)]
        Command::Hold(_) | Command::Commit { .. } => {}
    }
}
