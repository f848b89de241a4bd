//! Types of this crate in the form that raft-log needs, with an encoding of their own.
//!
//! raft-log takes a record that extends past the end of the file for a torn write, and drops it with all that
//! follows. So no damage may look like that: every item begins with a byte of its kind that is checked first,
//! ids have a fixed length, and the payload's length has a checksum of its own.

use std::io::{self, Read, Write};

use codeq::{Decode, Encode};
use openraft::EntryPayload;
use openraft::vote::RaftLeaderId as _;
use raft_log::RaftWalTypes;

use super::turn::Turn;
use crate::store::directory::frame;
use crate::types::{Entry, LogId, Member, Types, Vote};
use ipam_machine::batch::Batch;

const LOG_ID: u8 = 0xA1;
const VOTE: u8 = 0xA2;
const PAYLOAD: u8 = 0xA3;
const PAYLOAD_VERSION: u8 = 1;

type LeaderId = openraft::type_config::alias::LeaderIdOf<Types>;
pub(super) type Payload = EntryPayload<Batch, u64, Member>;
/// One record of the log's files.
pub(in crate::store) type Record = raft_log::WALRecord<RaftWalTypes<Wal>>;

/// raft-log's type parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct Wal;

impl raft_log::Types for Wal {
    type LogId = WalLogId;
    type LogPayload = WalPayload;
    type Vote = WalVote;
    type Callback = Turn;
    type UserData = ();

    fn log_index(log_id: &WalLogId) -> u64 {
        log_id.0.index
    }

    fn payload_size(payload: &WalPayload) -> u64 {
        payload_size(&payload.0) as u64
    }
}

/// Roughly what an entry takes up in memory.
pub(super) fn payload_size(payload: &Payload) -> usize {
    let variable = match payload {
        EntryPayload::Normal(batch) => batch.size(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    };
    size_of::<Entry>() + variable
}

/// A log id in 25 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct WalLogId(pub(in crate::store) LogId);

impl Encode for WalLogId {
    fn encode<W: Write>(&self, mut to: W) -> io::Result<usize> {
        let LogId { leader_id, index } = self.0;
        to.write_all(&[LOG_ID])?;
        write_numbers(to, [leader_id.term, leader_id.node_id, index]).map(|length| length + 1)
    }
}

impl Decode for WalLogId {
    fn decode<R: Read>(mut from: R) -> io::Result<Self> {
        frame::expect_kind(&mut from, LOG_ID)?;
        let [term, node_id, index] = read_numbers(from)?;
        Ok(Self(LogId { leader_id: LeaderId { term, node_id }, index }))
    }
}

/// A vote in 26 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(in crate::store) struct WalVote(pub(in crate::store) Vote);

impl Encode for WalVote {
    fn encode<W: Write>(&self, mut to: W) -> io::Result<usize> {
        let Vote { leader_id, committed } = self.0;
        to.write_all(&[VOTE, u8::from(committed)])?;
        write_numbers(to, [leader_id.term, leader_id.node_id]).map(|length| length + 2)
    }
}

impl Decode for WalVote {
    fn decode<R: Read>(mut from: R) -> io::Result<Self> {
        frame::expect_kind(&mut from, VOTE)?;
        let committed = match frame::read_array(&mut from)? {
            [0] => false,
            [1] => true,
            [other] => return Err(frame::invalid(format!("a vote is neither open nor won: {other}"))),
        };
        let [term, node_id] = read_numbers(from)?;
        Ok(Self(Vote { leader_id: LeaderId::new(term, node_id), committed }))
    }
}

/// The payload of an entry.
#[derive(Debug, Clone)]
pub(in crate::store) struct WalPayload(pub(in crate::store) Payload);

impl Encode for WalPayload {
    fn encode<W: Write>(&self, to: W) -> io::Result<usize> {
        let body = postcard::to_stdvec(&self.0).map_err(frame::codec)?;
        frame::write(to, PAYLOAD, PAYLOAD_VERSION, &body)
    }
}

impl Decode for WalPayload {
    fn decode<R: Read>(from: R) -> io::Result<Self> {
        let frame = frame::read(from, PAYLOAD)?;
        if frame.version != PAYLOAD_VERSION {
            return Err(frame::invalid(format!("a log entry has version {}", frame.version)));
        }
        postcard::from_bytes(&frame.body).map(Self).map_err(frame::codec)
    }
}

fn write_numbers<const N: usize>(mut to: impl Write, numbers: [u64; N]) -> io::Result<usize> {
    for number in numbers {
        to.write_all(&number.to_be_bytes())?;
    }
    Ok(N * size_of::<u64>())
}

fn read_numbers<const N: usize>(mut from: impl Read) -> io::Result<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64::from_be_bytes(frame::read_array(&mut from)?);
    }
    Ok(numbers)
}
