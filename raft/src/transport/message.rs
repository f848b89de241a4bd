//! Requests of peers and their answers once a connection stands.

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
/// Up to where the logs agree now, or why they don't.
pub(crate) type Appended = StreamAppendResult<Types>;

/// Every request travels with a number that its answer repeats.
pub(crate) type Numbered<T> = (u64, T);

/// A question. Variants are only ever appended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// A sign of life.
    Ping,
    /// Append these entries; or, on the control connection, a heartbeat.
    Append(Append),
    /// A vote in an election.
    Vote(VoteRequest<Types>),
    /// Would there be a vote? Changes nothing.
    PreVote(VoteRequest<Types>),
    /// The leader hands its leadership over.
    TransferLeader(TransferLeaderRequest<Types>),
    /// A proposal that came to a member that doesn't lead.
    Propose {
        /// The command, with the principal in it.
        command: Box<Command>,
        /// Time for which the proposer will still wait.
        budget_ms: u64,
    },
    /// Up to where must a reader have applied, for its read to be linearizable?
    ReadIndex,
    /// A piece of a sealed segment of the journal.
    JournalPiece {
        /// The segment's number.
        number: u64,
        /// The offset in its file.
        offset: u64,
    },
    /// The member's report about its state and its program.
    Report,
    /// Build a snapshot, and send it.
    SendSnapshot {
        /// The requesting member, whose state is wrong.
        to: u64,
        /// Up to where it must reach at least.
        at_least: u64,
    },
    /// The members, as the one that leads sees them.
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

/// The answer. Variants are only ever appended.
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
    /// It can't be answered, and why.
    Failed(String),
    /// A piece of a segment; empty at its end.
    JournalPiece {
        /// The bytes.
        piece: Vec<u8>,
        /// The length of the whole file.
        length: u64,
    },
    Report(Box<Report>),
    /// The snapshot was sent, and taken.
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
    /// Its state at the newest places at which it can be compared.
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// True if its state is suspect and another comparison could end that.
    pub(crate) waits: bool,
    /// Report for people and for the leader.
    pub(crate) peer_report: PeerReport,
}

/// A member's statement about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerReport {
    /// Reason for which it doesn't serve, if its state is suspect.
    pub(crate) quarantine: Option<String>,
    /// The version of its program.
    pub(crate) version: String,
    /// The highest level that its program knows.
    pub(crate) level: u32,
}

/// A refusal of a peer to do what another passed on to it. Variants are only ever appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Declined {
    /// It doesn't lead, or not for sure; nothing was appended.
    NoLeader,
    /// Too many proposals wait; nothing was appended.
    Overloaded,
    /// It is stopping; nothing was appended.
    ShuttingDown,
    /// The time was up.
    Expired {
        /// True if it may have entered the log.
        maybe_applied: bool,
    },
    /// It entered the log, and the leader lost its leadership before it knew the outcome.
    Unknown,
    /// A majority of the disks has no space; nothing was appended.
    DiskFull,
    /// It entered the log, and its outcome is larger than a frame may be.
    TooLarge {
        /// Bytes of the answer.
        bytes: u64,
    },
    /// It takes no proposals of this requester now; nothing was appended.
    Busy {
        why: Busy,
        /// Pause before a repetition has a chance.
        retry_after_ms: u64,
    },
}

/// The reason for which a queue takes in no more. Variants are only ever appended.
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
    /// It didn't take over in time.
    Late,
}
