//! Execution of commands on the log's files.
//!
//! The thread takes all commands that wait, writes them, syncs once, answers, and begins again ([`Turn`]).
//! While one sync is under way the next group gathers by itself, so the disk sets the pace and a lone writer
//! waits for no other.

use std::io;
use std::ops::Range;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use openraft::storage::IOFlushed;
use raft_log::RaftLog;
use raft_log::api::raft_log_writer::RaftLogWriter as _;
use tokio::sync::{oneshot, watch};

use super::turn::Turn;
use super::view::{View, next};
use super::wal::{Wal, WalLogId, WalPayload, WalVote};
use crate::store::directory::{Durable, Headroom, LogMark, StoreCounters, StoreFailure};
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
    Hold(Receiver<()>),
}

/// The thread's state.
pub(super) struct LogThread {
    pub(super) commands: Receiver<Command>,
    pub(super) log: RaftLog<Wal>,
    pub(super) end: u64,
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
    /// Executes commands until a group of them has to be written, and returns that. None if the log is closed
    /// or its last handle is dropped.
    pub(super) fn next_group(&mut self) -> io::Result<Option<Group>> {
        loop {
            let Ok(first) = self.commands.recv() else { return Ok(None) };
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

    /// Notes the end of a group's write. Returns the answers of those that wait for the end of the thread, if
    /// any does.
    pub(super) fn written(&mut self, group: Group, outcome: io::Result<()>) -> io::Result<Vec<Answer<()>>> {
        self.counters.flush.end();
        if let Err(error) = outcome {
            return Err(self.fail(group, error));
        }
        if group.sync {
            self.synced(&group);
        }
        let mut group = group;
        let closing = std::mem::take(&mut group.closing);
        group.grant(&self.view);
        Ok(closing)
    }

    /// Refuses all commands until the last handle is dropped. The log is never written again after an error:
    /// the kernel may have dropped the dirty pages, and a second fsync would then succeed without them.
    pub(super) fn refuse_all(&self) {
        for command in &self.commands {
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
                let records = entries.into_iter().map(|e| (WalLogId(e.log_id), WalPayload(e.payload)));
                self.end = end_of(self.log.append(records)?);
                held(&self.view).pass_on(number);
            }
            Command::Vote { vote, done } => {
                group.votes.push((vote, done));
                // The vote on disk has won, which is a note on it: a majority has the vote even if the note
                // is lost, and no entry of that leader is on disk before the note. An election has one fsync
                // less on each side.
                let known = self.log.log_state().vote().map(|known| known.0.leader_id);
                if vote.committed && known == Some(vote.leader_id) {
                    group.is_written = true;
                } else {
                    group.sync();
                }
                self.end = end_of(self.log.save_vote(WalVote(vote))?);
            }
            Command::Truncate { keep } => {
                group.sync();
                self.end = end_of(self.log.truncate(next(keep))?);
            }
            Command::Purge { upto } => {
                group.sync();
                self.end = end_of(self.log.purge(WalLogId(upto))?);
            }
            Command::Read { range, bytes_max, done } => {
                let _gone = done.send(self.read(range, bytes_max));
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

    /// Records the committed index, on the way of other records. It isn't needed for safety and only shortens
    /// the replay at a start. raft-log refuses to go backwards or beyond its end.
    fn commit(&mut self) -> io::Result<()> {
        let committed = held(&self.view).committed.map(WalLogId);
        let state = self.log.log_state();
        let committed = committed.min(state.last().copied());
        if let Some(log_id) = committed
            && state.committed() < Some(&log_id)
        {
            self.end = end_of(self.log.commit(log_id)?);
        }
        Ok(())
    }

    fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let mut left = bytes_max;
        let mut entries = Vec::new();
        for item in self.log.read(range.start, range.end) {
            let (WalLogId(log_id), WalPayload(payload)) = item?;
            left = left.saturating_sub(super::wal::payload_size(&payload));
            entries.push(Entry { log_id, payload });
            if left == 0 {
                break;
            }
        }
        Ok(entries)
    }

    /// Hands a group to the disk; `turn` continues once it is there.
    pub(super) fn write(&mut self, sync: bool, turn: Turn) -> io::Result<()> {
        if sync {
            self.headroom.make_room(self.end.saturating_sub(self.durable.log().end));
            #[cfg(feature = "testing")]
            self.counters.flush.linger();
        }
        self.log.flush(sync && !SeededBug::SkippedFsync.is_on(), Some(turn))
    }

    /// Notes what is durable from now on.
    fn synced(&self, group: &Group) {
        if let Some(begun) = group.begun {
            let took = begun.elapsed();
            self.counters.fsync.observe(took);
            self.counters.flush.took(took);
        }
        let state = self.log.log_state();
        let (last, vote) = (state.last().map(|id| id.0), state.vote().map(|vote| vote.0));
        self.durable.set_log(LogMark { end: self.end, last, vote });
        if group.votes.is_empty() { self.notifier.changed() } else { self.notifier.soon() }
    }

    /// Ends the log, and refuses the group. Returns the error.
    pub(super) fn fail(&self, group: Group, error: io::Error) -> io::Error {
        let reason = format!("the log can't be written: {error}");
        tracing::error!(reason, "the process must be started again; nothing acknowledged is lost");
        held(&self.view).failed = Some(reason.clone());
        self.durable.end();
        // Recorded first, so that an observer of raft's end finds the reason.
        self.failed.send_replace(Some(StoreFailure::Disk(reason.clone())));
        group.refuse(&reason);
        error
    }

    /// Reports a panic of the thread.
    pub(super) fn panicked(&self) {
        let why = "the thread of the log has panicked".to_owned();
        self.failed.send_replace(Some(StoreFailure::Disk(why)));
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
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

/// Puts a command where it will be refused with its group.
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

fn end_of(segment: raft_log::types::Segment) -> u64 {
    segment.offset + segment.size
}
