//! Signs of a leader, and the answers to candidates that follow from them.
//!
//! A voter grants no vote during the leader's lease, so that a member that returns from a partition doesn't
//! depose a working leader. The lease of a leader whose process has ended protects nothing: the system closes
//! its connections at once, and a voter that sees it no longer waits for the lease. Each voter relies on its
//! own connections, so a majority must have lost the leader. Safety doesn't depend on leases, because no read
//! does.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::raft::{VoteRequest, VoteResponse};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::config::Timing;
use super::super::raft::{RaftError, RaftHandle};
use crate::durations::as_ms;
use crate::sync::held;
use crate::types::{Types, Vote};

/// Part of the elections that other tasks access.
#[derive(Debug)]
pub(in super::super) struct Elections {
    start: Instant,
    /// Time of the last append of a leader, in milliseconds since the start; 0 if there was none.
    heard_ms: AtomicU64,
    heartbeat: Duration,
    /// Leader that closed a connection and sent nothing since, with the time of the close.
    gone: Mutex<Option<(Vote, Instant)>>,
    /// Notification of a leader that is gone.
    pub(super) lost: Notify,
    allowed: AtomicBool,
}

impl Elections {
    pub(in super::super) fn new(timing: Timing) -> Self {
        Self {
            start: Instant::now(),
            heartbeat: Duration::from_millis(timing.heartbeat_ms),
            heard_ms: AtomicU64::new(0),
            gone: Mutex::default(),
            lost: Notify::new(),
            allowed: AtomicBool::new(true),
        }
    }

    /// Records an append of a leader on arrival, since the answer to it waits for the disk.
    pub(in super::super) fn heard(&self, raft: &RaftHandle, leader: &Vote) {
        if *leader >= raft.server_metrics().borrow_watched().vote {
            self.heard_ms.store(as_ms(self.start.elapsed()).max(1), Relaxed);
            *held(&self.gone) = None;
        }
    }

    /// Records that a member closed a connection, if it is the leader.
    pub(in super::super) fn closed(&self, raft: &RaftHandle, member_id: u64) {
        let vote = raft.server_metrics().borrow_watched().vote;
        if vote.committed && vote.leader_id().node_id == member_id && self.gone_at(&vote).is_none() {
            *held(&self.gone) = Some((vote, Instant::now()));
            self.lost.notify_one();
        }
    }

    /// Allows or forbids campaigns. A leadership that is handed over needs no campaign.
    pub(in super::super) fn allow(&self, allowed: bool) {
        self.allowed.store(allowed, Relaxed);
    }

    pub(super) fn allowed(&self) -> bool {
        self.allowed.load(Relaxed)
    }

    /// Time of the last append of a leader.
    pub(super) fn heard_at(&self) -> Option<Instant> {
        let ms = Some(self.heard_ms.load(Relaxed)).filter(|ms| *ms > 0)?;
        Some(self.start + Duration::from_millis(ms))
    }

    /// Time at which the leader of this vote closed its connection, if it is gone.
    pub(super) fn gone_at(&self, leader: &Vote) -> Option<Instant> {
        held(&self.gone).filter(|(gone, _)| gone == leader).map(|(_, at)| at)
    }

    /// True if the leader of this vote has been gone for at least one heartbeat interval.
    fn is_lost(&self, leader: &Vote) -> bool {
        self.gone_at(leader).is_some_and(|at| at.elapsed() >= self.heartbeat)
    }

    /// Answers a candidate's request for the vote of this member.
    pub(in super::super) async fn vote(
        &self,
        raft: &RaftHandle,
        request: VoteRequest<Types>,
    ) -> Result<VoteResponse<Types>, RaftError> {
        let answer = raft.vote(request.clone()).await?;
        if answer.vote_granted || !self.is_lost(&answer.vote) {
            return Ok(answer);
        }
        // openraft ignores the lease for a transfer alone.
        raft.vote(VoteRequest { leadership_transfer: true, ..request }).await
    }

    /// Answers a candidate's request for a pre-vote of this member. It changes nothing.
    pub(in super::super) async fn pre_vote(
        &self,
        raft: &RaftHandle,
        request: VoteRequest<Types>,
    ) -> Result<VoteResponse<Types>, RaftError> {
        let mut answer = raft.pre_vote(request.clone()).await?;
        // The rules of openraft without its lease.
        answer.vote_granted |= self.is_lost(&answer.vote)
            && request.vote >= answer.vote
            && request.last_log_id >= answer.last_log_id;
        Ok(answer)
    }
}
