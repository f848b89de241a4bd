//! Requests between peers and their answers, on an established connection.

use openraft::raft::{
    AppendEntriesRequest, StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse, VoteRequest,
    VoteResponse,
};
use serde::{Deserialize, Serialize};

use crate::store::{Checkpoint, FreeSpace};
use crate::types::{LogId, MemberInfo, Types};
use ipam_machine::{Command, Outcome};

/// Entries to append, or a heartbeat.
pub(crate) type Append = AppendEntriesRequest<Types>;
/// Result of an append: the last matching entry, or the reason for a mismatch.
pub(crate) type Appended = StreamAppendResult<Types>;

/// Every request travels with a number that its answer repeats.
pub(crate) type Numbered<T> = (u64, T);

/// A request to a peer. Variants are only ever appended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Keeps the connection alive.
    Ping,
    /// Append these entries; or, on the control connection, a heartbeat.
    Append(Append),
    /// Requests a vote in an election.
    Vote(VoteRequest<Types>),
    /// Requests a pre-vote: whether a vote would be granted. Changes nothing.
    PreVote(VoteRequest<Types>),
    /// The leader hands its leadership over.
    TransferLeader(TransferLeaderRequest<Types>),
    /// Forwards a proposal to the leader.
    Propose {
        /// The command, with the principal in it.
        command: Box<Command>,
        /// Time for which the proposer will still wait.
        budget_ms: u64,
    },
    /// Requests the log id up to which a reader must have applied for a linearizable read.
    ReadIndex,
    /// Requests a piece of a sealed segment of the journal.
    JournalPiece {
        /// The segment's number.
        number: u64,
        /// The offset in the segment's file.
        offset: u64,
    },
    /// Requests the member's report about its state and its program.
    Report,
    /// Requests a snapshot, which the peer builds and sends.
    SendSnapshot {
        /// The requesting member, whose state is wrong.
        to: u64,
        /// Index of the entry that the snapshot must reach at least.
        at_least: u64,
    },
    /// Requests the members as the leader sees them.
    Members,
    /// Makes this voter the leader; for the leader.
    HandOver {
        /// The voter's id.
        to: u64,
        /// Time for which the caller will still wait.
        budget_ms: u64,
    },
    /// Requests the free space of the disk.
    Headroom,
}

/// An answer to a request. Variants are only ever appended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The answer to a ping.
    Pong,
    /// The result of the append.
    Append(Appended),
    /// The vote, or the result of a pre-vote.
    Vote(VoteResponse<Types>),
    /// Response of the target to a leadership transfer.
    TransferLeader(TransferLeaderResponse<Types>),
    /// The result of the proposal.
    Propose(Result<Outcome, Declined>),
    /// The log id to wait for.
    ReadIndex(Result<LogId, Declined>),
    /// The request can't be answered, with the reason.
    Failed(String),
    /// A piece of a segment; empty at its end.
    JournalPiece {
        /// The bytes.
        piece: Vec<u8>,
        /// The length of the whole file.
        length: u64,
    },
    Report(Box<Report>),
    /// The snapshot was sent and accepted.
    SnapshotSent,
    /// Members, if the called member leads.
    Members(Result<Vec<MemberInfo>, Declined>),
    /// The result of handing over.
    HandOver(Result<(), NotHandedOver>),
    /// Free space of the disk.
    Headroom(FreeSpace),
}

/// A member's report about its state and its program, for the others to compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Newest checkpoints of the member's state.
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// True if the member's state is suspect and another comparison could end that.
    pub(crate) waits: bool,
    /// Report for people and for the leader.
    pub(crate) peer_report: PeerReport,
}

/// A member's statement about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerReport {
    /// Reason why the member doesn't serve, if its state is suspect.
    pub(crate) quarantine: Option<String>,
    /// Version of the member's program.
    pub(crate) version: String,
    /// Highest level that the member's program knows.
    pub(crate) level: u32,
}

/// Refusal of a forwarded request. Variants are only ever appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Declined {
    /// The called member doesn't lead, or can't prove it; nothing was appended.
    NoLeader,
    /// Too many proposals or reads wait; nothing was appended.
    Overloaded,
    /// The called member is stopping; nothing was appended.
    ShuttingDown,
    /// The deadline passed.
    Expired {
        /// True if the proposal may have entered the log.
        maybe_applied: bool,
    },
    /// The proposal may be in the log, but the leader lost its leadership before it knew the outcome.
    Unknown,
    /// A majority of the disks has no space; nothing was appended.
    DiskFull,
    /// The proposal is in the log, but its outcome is larger than a frame may be.
    TooLarge {
        /// Bytes of the answer.
        bytes: u64,
    },
    /// The called member takes no proposals of this requester now; nothing was appended.
    Busy {
        why: Busy,
        /// Recommended pause before the next attempt, in milliseconds.
        retry_after_ms: u64,
    },
}

/// Reason why a queue accepts no more. Variants are only ever appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Busy {
    /// The requester holds its share of the places.
    Share,
    /// The queue can't serve the proposal in time.
    Wait,
}

/// A refusal to hand leadership over. Variants are only ever appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotHandedOver {
    /// The called member doesn't lead.
    NoLeader,
    /// The chosen member can't lead, with the reason.
    Unfit(String),
    /// The chosen member didn't take over in time.
    Late,
}
