//! Proposals and reads, on any member.

use std::time::Duration;

use ipam_api::Code;
use ipam_api::limits::{BUDGET_MS_MAX, PEER_LAST_WORD_MS};
use tokio::time::{Instant, sleep, timeout_at};

use super::counters::Counters;
use super::error::{ProposeError, ReadError};
use super::handle::Node;
use super::inner::Inner;
use super::proposal_timing::ProposalTiming;
use super::proposals::COMMAND_BYTES_MAX;
use super::raft::{Leader, RaftHandle, leader, superseded};
use super::running::Running;
use crate::durations::as_ms;
use crate::transport::{Answer, CallError, Declined, Purpose, Request};
use crate::types::Member;
use ipam_machine::{Command, Outcome, SeededBug, State};

impl Node {
    /// Proposes a command and waits for its outcome. Any member accepts it; followers forward it to the
    /// leader, and wait for one until the deadline.
    ///
    /// # Errors
    /// See [`ProposeError`]: each says whether the command may have been applied.
    pub async fn propose(
        &self,
        command: Command,
        deadline: impl Into<Instant>,
    ) -> Result<Outcome, ProposeError> {
        self.propose_timed(command, deadline).await.map(|(outcome, _timing)| outcome)
    }

    /// Like `propose`, and returns the time of each step.
    ///
    /// # Errors
    /// See [`ProposeError`].
    pub async fn propose_timed(
        &self,
        command: Command,
        deadline: impl Into<Instant>,
    ) -> Result<(Outcome, ProposalTiming), ProposeError> {
        let inner = self.inner();
        let bytes = admit(inner, &command)?;
        let outcome = match inner.places.take(&command, bytes) {
            Ok(_share) => {
                let _waiting = inner.counters.wait();
                propose_until(inner, command, bytes, bounded(deadline)).await
            }
            Err(declined) => Err(declined),
        };
        outcome.map_err(|declined| {
            Counters::add(&inner.counters.proposals_failed);
            match declined {
                Declined::Unknown => {
                    ProposeError::Unknown { leader: inner.status().leader.map(|leader| leader.name) }
                }
                declined => declined.into(),
            }
        })
    }

    /// Proposes a command of a leader-only task under the leadership in which the task observed the state. It
    /// has no effect under another one, and is never forwarded.
    ///
    /// # Errors
    /// See [`ProposeError`]; [`ProposeError::NoLeader`] if that leadership has ended.
    pub async fn propose_as_leader(
        &self,
        leadership: u64,
        command: Command,
        deadline: impl Into<Instant>,
    ) -> Result<(Outcome, ProposalTiming), ProposeError> {
        let inner = self.inner();
        let bytes = admit(inner, &command)?;
        let running = inner.lifecycle.running().ok_or(ProposeError::NoLeader)?;
        let proposed = running.proposals.propose_under(Some(leadership), command, bytes, deadline.into());
        proposed.await.map_err(|declined| {
            Counters::add(&inner.counters.proposals_failed);
            declined.into()
        })
    }

    /// Returns a state with all writes that any member acknowledged before this call.
    ///
    /// # Errors
    /// When no member leads or this member doesn't catch up until the deadline.
    pub async fn read(&self, deadline: impl Into<Instant>) -> Result<State, ReadError> {
        let (inner, deadline) = (self.inner(), bounded(deadline));
        Counters::add(&inner.counters.reads);
        loop {
            if let Some(why) = inner.integrity.trust.quarantine_reason() {
                return Err(ReadError::Quarantined(why));
            }
            if inner.lifecycle.is_stopping() {
                return Err(ReadError::ShuttingDown);
            }
            if Instant::now() >= deadline {
                return Err(ReadError::NoLeader);
            }
            let Some(running) = inner.lifecycle.running_by(deadline).await else { continue };
            if SeededBug::LocalRead.is_on() {
                return trusted(inner);
            }
            match running.reads.log_id(deadline).await {
                Ok(log_id) => {
                    let reached = inner.state.until(|live| live.applied >= Some(log_id));
                    return match timeout_at(deadline, reached).await {
                        Ok(Ok(_)) => trusted(inner),
                        Ok(Err(_)) => Err(ReadError::ShuttingDown),
                        Err(_) => Err(ReadError::DeadlineExceeded),
                    };
                }
                Err(Declined::Overloaded) => return Err(ReadError::Overloaded),
                // Raft has ended on this member, so it learns of no new leader.
                Err(Declined::ShuttingDown) => return Err(ReadError::ShuttingDown),
                Err(_) => inner.lifecycle.change(&running, deadline).await,
            }
        }
    }

    /// Returns this member's state once it has reached `revision`. No other member is contacted.
    ///
    /// # Errors
    /// If it doesn't before the deadline.
    pub async fn reached(&self, revision: u64, deadline: impl Into<Instant>) -> Result<State, ReadError> {
        let inner = self.inner();
        let mut stopping = inner.lifecycle.stopping.subscribe();
        let reached = inner.state.until(|live| live.state.revision() >= revision);
        tokio::select! {
            reached = timeout_at(bounded(deadline), reached) => match reached {
                Ok(Ok(_)) => trusted(inner),
                Ok(Err(_)) => Err(ReadError::ShuttingDown),
                Err(_) => Err(ReadError::NotReached { revision, at: inner.state.with(State::revision) }),
            },
            _ = stopping.wait_for(|stopping| *stopping) => Err(ReadError::ShuttingDown),
        }
    }
}

/// Returns the encoded size of a command, if it may be proposed on this member.
fn admit(inner: &Inner, command: &Command) -> Result<usize, ProposeError> {
    let bytes = postcard::experimental::serialized_size(command).unwrap_or(usize::MAX);
    if bytes > COMMAND_BYTES_MAX {
        return Err(ProposeError::TooLarge { bytes });
    }
    inner.integrity.trust.quarantine_reason().map_or(Ok(bytes), |why| Err(ProposeError::Quarantined(why)))
}

/// Limits a deadline to the maximum budget of a request.
fn bounded(deadline: impl Into<Instant>) -> Instant {
    deadline.into().min(Instant::now() + Duration::from_millis(BUDGET_MS_MAX))
}

/// Returns the state unless it is suspect.
fn trusted(inner: &Inner) -> Result<State, ReadError> {
    let state = inner.state.view();
    inner.integrity.trust.quarantine_reason().map_or(Ok(state), |why| Err(ReadError::Quarantined(why)))
}

/// Repeats the proposal until its outcome is known, can't become known, or the deadline passes.
async fn propose_until(
    inner: &Inner,
    command: Command,
    bytes: usize,
    deadline: Instant,
) -> Result<(Outcome, ProposalTiming), Declined> {
    // Set once the outcome of an attempt is unknown: a later attempt doesn't tell it.
    let mut maybe_applied = false;
    let declined = loop {
        if inner.lifecycle.is_stopping() {
            break Declined::ShuttingDown;
        }
        if Instant::now() >= deadline {
            break Declined::NoLeader;
        }
        let Some(running) = inner.lifecycle.running_by(deadline).await else { continue };
        let known = leader(&running.raft);
        // This member's disk is stalled: on another member the client finds the next leader sooner.
        if matches!(known, Leader::Me)
            && !inner.integrity.trust.is_quarantined()
            && inner.gate.stalled().is_some()
        {
            break Declined::NoLeader;
        }
        match ask(inner, &running, known, &command, bytes, deadline).await {
            // The proposal was certainly not appended, so it may be repeated.
            Err(Declined::NoLeader) => inner.lifecycle.change(&running, deadline).await,
            Err(Declined::Unknown)
                if command.has_replicated_identity() || SeededBug::RepeatedForward.is_on() =>
            {
                maybe_applied = true;
                // A connection that breaks at once would let this loop spin.
                inner.lifecycle.change(&running, deadline).await;
            }
            Err(declined) => break declined,
            Ok((Err(refusal), _)) if maybe_applied && refusal.code() == Code::DeadlineExceeded => {
                break Declined::Expired { maybe_applied };
            }
            Ok(decided) => return Ok(decided),
        }
    };
    Err(match declined {
        Declined::Expired { .. } if maybe_applied => Declined::Expired { maybe_applied },
        Declined::TooLarge { bytes } => Declined::TooLarge { bytes },
        _ if maybe_applied => Declined::Unknown,
        declined => declined,
    })
}

/// Makes one attempt with the known leader.
async fn ask(
    inner: &Inner,
    running: &Running,
    known: Leader,
    command: &Command,
    bytes: usize,
    deadline: Instant,
) -> Result<(Outcome, ProposalTiming), Declined> {
    match known {
        Leader::Unknown => Err(Declined::NoLeader),
        Leader::Me if inner.integrity.trust.is_quarantined() => Err(Declined::NoLeader),
        // Under another leader, too, this member's log determines the outcome of an entry.
        Leader::Me => running.proposals.propose(command.clone(), bytes, deadline).await,
        Leader::Other(id, member) => {
            let _share = inner.forwards.take(command, bytes)?;
            Counters::add(&inner.counters.proposals_forwarded);
            let begun = Instant::now();
            let outcome = pass_on(running, id, &member, command.clone(), deadline).await;
            outcome.map(|outcome| (outcome, ProposalTiming::Forwarded(begun.elapsed())))
        }
    }
}

/// Forwards a proposal to the leader, which doesn't forward it again.
async fn pass_on(
    running: &Running,
    id: u64,
    member: &Member,
    command: Command,
    deadline: Instant,
) -> Result<Outcome, Declined> {
    let budget_ms = as_ms(deadline.saturating_duration_since(Instant::now()));
    // A leader that has just handed over learns the outcome at once; a stopped one never does.
    let last_word_ms = if command.has_replicated_identity() { 0 } else { PEER_LAST_WORD_MS };
    let request = Request::Propose { command: Box::new(command), budget_ms };
    let answer = match running.peers.channel(id, member, Purpose::Control).submit(request) {
        Ok(mut pending) => tokio::select! {
            biased;
            answer = pending.wait(deadline) => answer,
            () = superseded_for(&running.raft, id, last_word_ms) => Err(pending.give_up()),
        },
        Err(error) => Err(error),
    };
    match answer {
        Ok(Answer::Propose(Err(Declined::ShuttingDown))) => Err(Declined::NoLeader),
        Ok(Answer::Propose(outcome)) => outcome,
        // The peer received the request and can't process it.
        Ok(_) => Err(Declined::NoLeader),
        Err(CallError::NotSent(_)) => Err(Declined::NoLeader),
        Err(CallError::TimedOut) => Err(Declined::Expired { maybe_applied: true }),
        Err(CallError::Lost(_)) => Err(Declined::Unknown),
    }
}

/// Waits until this member has known a leader other than `id` for this long.
async fn superseded_for(raft: &RaftHandle, id: u64, long_ms: u64) {
    superseded(raft, id).await;
    sleep(Duration::from_millis(long_ms)).await;
}
