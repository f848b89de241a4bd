//! Log entries on their way to a peer.

use std::collections::VecDeque;

use ipam_api::limits::APPEND_BYTES_MAX;
use openraft::EntryPayload;
use openraft::raft::{AppendEntriesResponse, StreamAppendError};

use super::message::{Append, Appended};
use crate::types::{Entry, LogId, Types};

/// Bytes that are counted for an entry besides its commands.
const SMALL_ENTRY_BYTES: usize = 256;

/// The part of the log that an append is about: the entry before it, and its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    before: Option<LogId>,
    last: Option<LogId>,
}

impl Span {
    pub(crate) fn of(append: &Append) -> Self {
        let last = append.entries.last().map(|entry| entry.log_id).or(append.prev_log_id);
        Self { before: append.prev_log_id, last }
    }

    /// Returns true if the answer obeys the protocol, on which openraft relies.
    pub(super) fn allows(&self, answer: &Appended) -> bool {
        match answer {
            Ok(matching) => *matching == self.last,
            Err(StreamAppendError::Conflict(at)) => Some(*at) == self.before,
            Err(StreamAppendError::HigherVote(_)) => true,
        }
    }

    /// Converts the response of this member's raft into the answer to a peer. Returns none for a conflict
    /// without a preceding entry, which no answer can express.
    pub(crate) fn answer(&self, response: AppendEntriesResponse<Types>) -> Option<Appended> {
        Some(match response {
            AppendEntriesResponse::Success => Ok(self.last),
            AppendEntriesResponse::PartialSuccess(matching) => Ok(matching),
            AppendEntriesResponse::Conflict => Err(StreamAppendError::Conflict(self.before?)),
            AppendEntriesResponse::HigherVote(vote) => Err(StreamAppendError::HigherVote(vote)),
        })
    }
}

fn entry_bytes(entry: &Entry) -> usize {
    match &entry.payload {
        EntryPayload::Normal(batch) => batch.size() + SMALL_ENTRY_BYTES,
        EntryPayload::Blank | EntryPayload::Membership(_) => SMALL_ENTRY_BYTES,
    }
}

/// Splits an append into parts of bounded size, in order. Each part is a valid append by itself.
pub(super) fn divide(mut append: Append) -> VecDeque<Append> {
    let mut parts = VecDeque::new();
    let entries = std::mem::take(&mut append.entries);
    let mut part = append.clone();
    let mut bytes = 0_usize;
    for entry in entries {
        let more = entry_bytes(&entry);
        if !part.entries.is_empty() && bytes.saturating_add(more) > APPEND_BYTES_MAX {
            let last = part.entries.last().map(|entry| entry.log_id);
            parts.push_back(part);
            part = Append { prev_log_id: last, ..append.clone() };
            bytes = 0;
        }
        bytes = bytes.saturating_add(more);
        part.entries.push(entry);
    }
    parts.push_back(part);
    parts
}

/// Checks the protocol's rules for a leader: entries without gaps, none from a later leadership.
///
/// # Errors
/// The violated rule, in words.
pub(crate) fn check(append: &Append) -> Result<(), String> {
    let leader = append.vote.leader_id();
    if !append.vote.is_committed() {
        return Err("an append of a member that isn't the leader".to_owned());
    }
    let mut before = append.prev_log_id;
    for entry in &append.entries {
        let next_index = before.map_or(0, |before| before.index.saturating_add(1));
        if entry.log_id.index != next_index || before.is_some_and(|before| entry.log_id <= before) {
            return Err("an append with gaps in it".to_owned());
        }
        before = Some(entry.log_id);
    }
    let owner = |log_id: LogId| (log_id.leader_id.term, log_id.leader_id.node_id);
    if before.is_some_and(|last| owner(last) > (leader.term, leader.node_id)) {
        return Err("an append with entries of a later leader".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Vote;
    use ipam_machine::batch::{Batch, Leadership, Opened};

    fn log_id(term: u64, index: u64) -> LogId {
        LogId { leader_id: *Vote::new_committed(term, 1).leader_id(), index }
    }

    fn entry(term: u64, index: u64) -> Entry {
        let batch = Batch::seal(&Opened {
            leadership: Leadership::Number(0),
            log_time_ms: 0,
            wall_ms: 0,
            commands: Vec::new(),
        })
        .unwrap();
        Entry { log_id: log_id(term, index), payload: EntryPayload::Normal(batch) }
    }

    fn append(before: Option<LogId>, entries: Vec<Entry>) -> Append {
        Append { vote: Vote::new_committed(2, 1), prev_log_id: before, entries, leader_commit: None }
    }

    #[test]
    fn parts_join_without_gaps() {
        let count = APPEND_BYTES_MAX / SMALL_ENTRY_BYTES * 2;
        let entries = (1..=count as u64).map(|index| entry(1, index)).collect();
        let parts = divide(append(Some(log_id(1, 0)), entries));
        assert!(parts.len() >= 2);
        let mut before = Some(log_id(1, 0));
        for part in &parts {
            check(part).unwrap();
            assert_eq!(part.prev_log_id, before);
            before = Span::of(part).last;
        }
        assert_eq!(before, Some(log_id(1, count as u64)));
        assert_eq!(divide(append(None, Vec::new())).len(), 1, "a heartbeat stays one");
    }

    #[test]
    fn an_append_that_no_leader_sends_is_refused() {
        check(&append(None, vec![entry(1, 0), entry(2, 1)])).unwrap();
        for bad in [
            append(None, vec![entry(1, 1)]),
            append(Some(log_id(1, 3)), vec![entry(1, 5)]),
            append(Some(log_id(2, 3)), vec![entry(1, 4)]),
            append(Some(log_id(1, 3)), vec![entry(3, 4)]),
            Append { vote: Vote::new(2, 1), ..append(None, Vec::new()) },
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn answers_that_no_follower_gives_are_known() {
        let span = Span::of(&append(Some(log_id(1, 3)), vec![entry(2, 4)]));
        assert!(span.allows(&Ok(Some(log_id(2, 4)))));
        assert!(!span.allows(&Ok(Some(log_id(2, 5)))));
        assert!(span.allows(&Err(StreamAppendError::Conflict(log_id(1, 3)))));
        assert!(!span.allows(&Err(StreamAppendError::Conflict(log_id(1, 2)))));
    }
}
