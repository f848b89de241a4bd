//! Records of the log's files, and their bytes.
//!
//! `tag u32, content, crc32 of both as u64`, numbers in big-endian order: the format of the crate raft-log
//! 0.4, which wrote these files once, and the tag 6. A record that extends past the end of its file counts as
//! a torn write, so no damage may look like that: every item of a content begins with a byte of its kind that
//! is checked first, ids have a fixed length, and the length of a payload has a checksum of its own.

use std::io::{self, Write};

use openraft::EntryPayload;
use openraft::vote::RaftLeaderId as _;

use super::state::LogState;
use crate::store::directory::frame;
use crate::types::{Entry, LogId, Types, Vote};

const LOG_ID: u8 = 0xA1;
const VOTE: u8 = 0xA2;
const PAYLOAD: u8 = 0xA3;
const PAYLOAD_VERSION: u8 = 1;
const STATE_VERSION: u8 = 1;
const SYNCED: u32 = 6;

type LeaderId = openraft::type_config::alias::LeaderIdOf<Types>;

/// Record of the log. The first record of a file is a checkpoint, so that earlier files can be removed.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::store) enum Record {
    Vote(Vote),
    Append(Entry),
    /// Everything up to this entry is committed.
    Commit(LogId),
    /// All entries after this one are removed from the log.
    TruncateAfter(Option<LogId>),
    /// All entries up to this one are purged.
    PurgeUpto(LogId),
    /// The state of the log after all earlier records.
    Checkpoint(LogState),
    /// All bytes before this record were on disk when it was written. The value is the record's position in
    /// the log.
    Synced(u64),
}

/// Length of [`Record::Synced`].
const SYNCED_BYTES: usize = 20;

impl Record {
    fn tag(&self) -> u32 {
        match self {
            Self::Vote(_) => 0,
            Self::Append(_) => 1,
            Self::Commit(_) => 2,
            Self::TruncateAfter(_) => 3,
            Self::PurgeUpto(_) => 4,
            Self::Checkpoint(_) => 5,
            Self::Synced(_) => SYNCED,
        }
    }

    /// Writes the record at the end of `to`.
    ///
    /// # Errors
    /// If the payload is longer than a frame may be.
    pub(in crate::store) fn encode(&self, to: &mut Vec<u8>) -> io::Result<()> {
        let begin = to.len();
        to.extend(self.tag().to_be_bytes());
        match self {
            Self::Vote(vote) => write_vote(to, vote),
            Self::Append(entry) => {
                write_log_id(to, &entry.log_id);
                let body = postcard::to_stdvec(&entry.payload).map_err(frame::codec)?;
                frame::write(&mut *to, PAYLOAD, PAYLOAD_VERSION, &body)?;
            }
            Self::Commit(log_id) | Self::PurgeUpto(log_id) => write_log_id(to, log_id),
            Self::TruncateAfter(keep) => write_option(to, keep.as_ref(), write_log_id),
            Self::Checkpoint(state) => {
                to.push(STATE_VERSION);
                write_option(to, state.vote.as_ref(), write_vote);
                for log_id in [&state.last, &state.committed, &state.purged] {
                    write_option(to, log_id.as_ref(), write_log_id);
                }
                // The field that raft-log keeps for user data.
                to.push(0);
            }
            Self::Synced(position) => to.extend(position.to_be_bytes()),
        }
        let sum = crc32fast::hash(to.get(begin..).unwrap_or_default());
        to.write_all(&u64::from(sum).to_be_bytes())
    }

    /// Reads a record from the beginning of `from`, and moves `from` behind it. `UnexpectedEof` means that
    /// `from` ends inside the record, and nothing else does; wrong bytes are `InvalidData`.
    pub(in crate::store) fn decode(from: &mut &[u8]) -> io::Result<Self> {
        let whole = *from;
        let record = match u32::from_be_bytes(frame::read_array(&mut *from)?) {
            0 => Self::Vote(read_vote(from)?),
            1 => {
                let log_id = read_log_id(from)?;
                let frame = frame::read(&mut *from, PAYLOAD)?;
                if frame.version != PAYLOAD_VERSION {
                    return Err(frame::invalid(format!("a log entry has version {}", frame.version)));
                }
                let payload: EntryPayload<_, _, _> =
                    postcard::from_bytes(&frame.body).map_err(frame::codec)?;
                Self::Append(Entry { log_id, payload })
            }
            2 => Self::Commit(read_log_id(from)?),
            3 => Self::TruncateAfter(read_option(from, read_log_id)?),
            4 => Self::PurgeUpto(read_log_id(from)?),
            5 => Self::Checkpoint(read_state(from)?),
            SYNCED => Self::Synced(u64::from_be_bytes(frame::read_array(&mut *from)?)),
            other => return Err(frame::invalid(format!("a record has the unknown tag {other}"))),
        };
        let length = whole.len() - from.len();
        let sum = crc32fast::hash(whole.get(..length).unwrap_or_default());
        if u64::from_be_bytes(frame::read_array(&mut *from)?) != u64::from(sum) {
            return Err(frame::invalid("the checksum of a record is wrong"));
        }
        Ok(record)
    }

    /// Returns true if a write that came after a sync begins somewhere behind the first of `bytes`, which
    /// stand at a position in the log. Its record names its own place, which no content of a client can do by
    /// chance.
    pub(super) fn has_later_write(position: u64, bytes: &[u8]) -> bool {
        (position..).zip(bytes.windows(SYNCED_BYTES)).skip(1).any(|(at, mut bytes)| {
            bytes.starts_with(&SYNCED.to_be_bytes())
                && matches!(Self::decode(&mut bytes), Ok(Self::Synced(synced)) if synced == at)
        })
    }
}

fn read_state(from: &mut &[u8]) -> io::Result<LogState> {
    let [version] = frame::read_array(&mut *from)?;
    if version != STATE_VERSION {
        return Err(frame::invalid(format!("a checkpoint has version {version}")));
    }
    let state = LogState {
        vote: read_option(from, read_vote)?,
        last: read_option(from, read_log_id)?,
        committed: read_option(from, read_log_id)?,
        purged: read_option(from, read_log_id)?,
    };
    frame::expect_kind(from, 0)?;
    Ok(state)
}

fn write_log_id(to: &mut Vec<u8>, log_id: &LogId) {
    let LogId { leader_id, index } = log_id;
    to.push(LOG_ID);
    write_numbers(to, [leader_id.term, leader_id.node_id, *index]);
}

fn read_log_id(from: &mut &[u8]) -> io::Result<LogId> {
    frame::expect_kind(&mut *from, LOG_ID)?;
    let [term, node_id, index] = read_numbers(from)?;
    Ok(LogId { leader_id: LeaderId { term, node_id }, index })
}

fn write_vote(to: &mut Vec<u8>, vote: &Vote) {
    let Vote { leader_id, committed } = vote;
    to.extend([VOTE, u8::from(*committed)]);
    write_numbers(to, [leader_id.term, leader_id.node_id]);
}

fn read_vote(from: &mut &[u8]) -> io::Result<Vote> {
    frame::expect_kind(&mut *from, VOTE)?;
    let committed = read_flag(from)?;
    let [term, node_id] = read_numbers(from)?;
    Ok(Vote { leader_id: LeaderId::new(term, node_id), committed })
}

fn write_option<T>(to: &mut Vec<u8>, value: Option<&T>, write: impl FnOnce(&mut Vec<u8>, &T)) {
    to.push(u8::from(value.is_some()));
    if let Some(value) = value {
        write(to, value);
    }
}

fn read_option<T>(from: &mut &[u8], read: impl FnOnce(&mut &[u8]) -> io::Result<T>) -> io::Result<Option<T>> {
    if read_flag(from)? { read(from).map(Some) } else { Ok(None) }
}

fn read_flag(from: &mut &[u8]) -> io::Result<bool> {
    match frame::read_array(from)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(frame::invalid(format!("{other} is neither yes nor no"))),
    }
}

fn write_numbers<const N: usize>(to: &mut Vec<u8>, numbers: [u64; N]) {
    to.extend(numbers.into_iter().flat_map(u64::to_be_bytes));
}

fn read_numbers<const N: usize>(from: &mut &[u8]) -> io::Result<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64::from_be_bytes(frame::read_array(&mut *from)?);
    }
    Ok(numbers)
}
