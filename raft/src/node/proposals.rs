//! Proposals on the leader: waiting proposals are batched into one entry (`waiting.rs` selects them).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipam_api::limits::BODY_BYTES_MAX;
use ipam_api::time::Timestamp;
use openraft::errors::ClientWriteError;
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;
use openraft::type_config::alias::OneshotReceiverOf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::counters::Counters;
use super::gate::Gate;
use super::own_leadership::OwnLeadership;
use super::proposal_timing::ProposalTiming;
use super::queue::Costs;
use super::raft::RaftHandle;
use super::requester::Requester;
use super::shares::Size;
use super::waiting::{Arrival, Closed, Waiting};
use crate::durations::as_ms;
use crate::store::SharedState;
use crate::sync::held;
use crate::transport::{Declined, Stage};
use crate::types::{Outcomes, Types};
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::Text;
use ipam_machine::{At, Cause, Command, Outcome, SeededBug, State};

/// Entries that may be on their way at once. Few, so that what waits meanwhile becomes one entry; more than
/// one, so that the disk doesn't wait for the network.
const ENTRIES_IN_FLIGHT_MAX: usize = 2;
/// A command larger than that came from no request that was let in.
pub(super) const COMMAND_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

type Result<T> = std::result::Result<T, Declined>;

struct Proposal {
    command: Command,
    /// The leadership that it belongs to alone; none for what any leadership may decide.
    leadership: Option<u64>,
    deadline: Instant,
    proposer: Proposer,
}

/// An outcome, and where its time went.
type Decided = (Outcome, ProposalTiming);

/// The proposer's end of a proposal.
struct Proposer {
    principal: Text,
    weight: usize,
    stage: Stage,
    since: Instant,
    reply: oneshot::Sender<Result<Decided>>,
}

impl Proposer {
    fn answer(self, answer: Result<Decided>) {
        // The proposer has given up meanwhile.
        let _ = self.reply.send(answer);
    }
}

/// The queue of proposals.
pub(super) struct Proposals {
    waiting: Arc<Waiting<Proposal>>,
    own_leadership: watch::Receiver<Option<OwnLeadership>>,
    gate: Arc<Gate>,
}

impl Drop for Proposals {
    fn drop(&mut self) {
        self.waiting.close();
    }
}

impl Proposals {
    /// Starts the queue on a member, whether it leads or not.
    pub(super) fn new(
        raft: RaftHandle,
        own_leadership: watch::Receiver<Option<OwnLeadership>>,
        gate: Arc<Gate>,
        counters: Arc<Counters>,
        state: SharedState,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let waiting = Arc::new(Waiting::new(Arc::clone(&counters)));
        (
            Self { waiting: Arc::clone(&waiting), own_leadership: own_leadership.clone(), gate },
            run(raft, own_leadership, Closed(waiting), counters, state),
        )
    }

    /// Proposes on this member, and waits for the outcome.
    pub(super) async fn propose(&self, command: Command, bytes: usize, deadline: Instant) -> Result<Decided> {
        self.propose_under(None, command, bytes, deadline).await
    }

    /// Does the same under one leadership alone, or under any.
    pub(super) async fn propose_under(
        &self,
        leadership: Option<u64>,
        command: Command,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Decided> {
        match self.own_leadership.borrow().as_ref().map(|held_leadership| held_leadership.number) {
            Some(number) if leadership.is_none_or(|leadership| leadership == number) => {}
            _ => return Err(Declined::NoLeader),
        }
        self.gate.admit(&command.action)?;
        let (reply, mut answer) = oneshot::channel();
        let stage = Stage::default();
        let (requester, size) = (Requester::of(&command), Size::of(&command.action, bytes));
        let (principal, weight) = (Text::clone(&requester.principal), size.weight);
        let proposer = Proposer { principal, weight, stage: stage.clone(), since: Instant::now(), reply };
        let item = Proposal { command, leadership, deadline, proposer };
        let arrival = Arrival { requester, size, deadline, stage: stage.clone(), item };
        // It leaves the queue when this future ends, also when its caller goes away.
        let _place = self.waiting.enter(arrival, Instant::now())?;
        match timeout_at(deadline, &mut answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) if stage.try_give_up() => Err(Declined::ShuttingDown),
            Ok(Err(_)) => Err(Declined::Unknown),
            Err(_) => Err(Declined::Expired { maybe_applied: !stage.try_give_up() }),
        }
    }
}

async fn run(
    raft: RaftHandle,
    own_leadership: watch::Receiver<Option<OwnLeadership>>,
    waiting: Closed<Proposal>,
    counters: Arc<Counters>,
    state: SharedState,
) {
    let places = if SeededBug::EarlyAck.is_on() { 1 } else { ENTRIES_IN_FLIGHT_MAX };
    let in_flight = Arc::new(Semaphore::new(places));
    let costs = Arc::new(Mutex::new(Costs::default()));
    // First a slot, then the proposals: the longer the wait for a slot, the larger the batch.
    while let Ok(place) = in_flight.clone().acquire_owned().await {
        let Some(taken) = waiting.0.take(&costs).await else { return };
        let taken = taken.into_iter().map(|queued| queued.item);
        // One instant for the budgets and the entry's log time: a pause of the process between them can't let
        // in what is late by then.
        let held_leadership = own_leadership.borrow().clone().filter(OwnLeadership::has_quorum);
        let now = Instant::now();
        let Some(held_leadership) = held_leadership else {
            taken.for_each(|proposal| proposal.proposer.answer(Err(Declined::NoLeader)));
            continue;
        };
        let log_time_ms = held_leadership.log_time_ms(now);
        let (commands, proposers) = still_wanted(taken, held_leadership.number, log_time_ms, now);
        if !commands.is_empty() {
            let (costs, counters) = (Arc::clone(&costs), Arc::clone(&counters));
            let entry = Entry { proposers, place, counters, costs };
            append(&raft, &held_leadership, log_time_ms, commands, entry, &state).await;
        }
    }
}

/// Returns commands whose callers still wait. Commands whose budget has passed on the monotonic clock (which
/// counts pauses of the process in full), and those of an earlier leadership, are answered and dropped.
fn still_wanted(
    proposals: impl Iterator<Item = Proposal>,
    number: u64,
    log_time_ms: u64,
    now: Instant,
) -> (Vec<Command>, Vec<Proposer>) {
    let (mut commands, mut proposers) = (Vec::new(), Vec::new());
    for mut proposal in proposals {
        if proposal.deadline <= now {
            proposal.proposer.answer(Err(Declined::Expired { maybe_applied: false }));
        } else if proposal.leadership.is_some_and(|leadership| leadership != number) {
            proposal.proposer.answer(Err(Declined::NoLeader));
        } else if !proposal.proposer.reply.is_closed() && proposal.proposer.stage.try_send() {
            let left_ms = as_ms(proposal.deadline.saturating_duration_since(now));
            proposal.command.origin.not_after_ms = Some(log_time_ms.saturating_add(left_ms));
            commands.push(proposal.command);
            proposers.push(proposal.proposer);
        }
    }
    (commands, proposers)
}

/// Proposed entry with its waiting proposers.
struct Entry {
    proposers: Vec<Proposer>,
    place: OwnedSemaphorePermit,
    counters: Arc<Counters>,
    costs: Arc<Mutex<Costs>>,
}

impl Entry {
    fn decline(self, why: &Declined) {
        self.proposers.into_iter().for_each(|proposer| proposer.answer(Err(why.clone())));
    }
}

async fn append(
    raft: &RaftHandle,
    held_leadership: &OwnLeadership,
    log_time_ms: u64,
    commands: Vec<Command>,
    entry: Entry,
    state: &SharedState,
) {
    let opened = Opened {
        leadership: Leadership::Number(held_leadership.number),
        log_time_ms,
        wall_ms: Timestamp::now().0,
        commands,
    };
    let batch = match Batch::seal(&opened) {
        Ok(batch) => batch,
        Err(error) => {
            tracing::error!(%error, "commands couldn't be encoded");
            return entry.decline(&Declined::NoLeader);
        }
    };
    entry.counters.proposed(opened.commands.len(), batch.size());
    let (responder, outcome) = ProgressResponder::complete_only();
    let begun = Instant::now();
    // Naming the leadership, so that a batch can't enter the log with the log time of another one.
    match raft.write(batch).with_leader(held_leadership.leader_id).responder(responder).await {
        Ok(()) if SeededBug::EarlyAck.is_on() => {
            tokio::spawn(acknowledge_early(outcome, entry, opened, state.view()));
        }
        Ok(()) => {
            tokio::spawn(deliver(outcome, begun, entry));
        }
        // It hasn't even reached raft's queue.
        Err(_) => entry.decline(&Declined::ShuttingDown),
    }
}

/// Delivers the outcomes of an entry to their proposers.
async fn deliver(outcome: OneshotReceiverOf<Types, ClientWriteResult<Types>>, begun: Instant, entry: Entry) {
    let outcomes = match outcome.await {
        Ok(Ok(response)) => response.data,
        // Refused before it was appended.
        Ok(Err(ClientWriteError::ForwardToLeader(_))) => return entry.decline(&Declined::NoLeader),
        Ok(Err(_)) | Err(_) => return entry.decline(&Declined::Unknown),
    };
    let Entry { proposers, place, counters, costs } = entry;
    let took = begun.elapsed();
    counters.committed(took);
    let Outcomes { all: outcomes, took: each } = outcomes;
    let apply: Duration = each.iter().sum();
    {
        let mut costs = held(&costs);
        for (proposer, took) in proposers.iter().zip(each) {
            costs.note(&proposer.principal, proposer.weight, took);
        }
    }
    drop(place);
    if outcomes.len() != proposers.len() {
        tracing::error!(
            commands = proposers.len(),
            outcomes = outcomes.len(),
            "an entry came back with another number of outcomes than it had commands"
        );
    }
    let mut outcomes = outcomes.into_iter();
    for proposer in proposers {
        let queue = begun.saturating_duration_since(proposer.since);
        counters.queued(queue);
        let timing = ProposalTiming::Here { queue, log: took.saturating_sub(apply), apply };
        proposer.answer(match outcomes.next() {
            // Another leadership of the same term began first: nothing was changed.
            Some(Err(refusal)) if matches!(*refusal.cause, Cause::LeadershipEnded) => Err(Declined::NoLeader),
            Some(outcome) => Ok((outcome, timing)),
            None => Err(Declined::Unknown),
        });
    }
}

/// Does the same before the entry is committed, with the outcomes of a trial: a seeded bug.
async fn acknowledge_early(
    committed: OneshotReceiverOf<Types, ClientWriteResult<Types>>,
    entry: Entry,
    opened: Opened,
    mut state: State,
) {
    let at = At { log_time_ms: opened.log_time_ms, wall_ms: opened.wall_ms, leadership: state.leadership() };
    for (command, proposer) in opened.commands.iter().zip(entry.proposers) {
        let (outcome, _) = ipam_machine::carry_out(&mut state, at, command);
        proposer.answer(Ok((outcome, ProposalTiming::Forwarded(Duration::ZERO))));
    }
    // The next entry is tried on a state that has this one.
    let _decided = committed.await;
    drop(entry.place);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipam_machine::{Action, fixtures};

    type Answers = oneshot::Receiver<Result<Decided>>;

    fn proposal(deadline: Instant, leadership: Option<u64>) -> (Proposal, Answers) {
        let command = fixtures::command(Action::Expire);
        let (reply, answer) = oneshot::channel();
        let (principal, stage) = (Text::given("test"), Stage::default());
        let proposer = Proposer { principal, weight: 1, stage, since: deadline, reply };
        (Proposal { command, leadership, deadline, proposer }, answer)
    }

    /// The runtime's timers have not fired yet, as after a pause of the process.
    #[test]
    fn only_commands_with_a_budget_left_and_of_this_leadership_are_stamped() {
        let now = Instant::now();
        let left = now + Duration::from_millis(250);
        let (in_time, _waits) = proposal(left, None);
        let (of_this, _also_waits) = proposal(left, Some(7));
        let (late, mut late_answer) = proposal(now, None);
        let (of_another, mut other_answer) = proposal(left, Some(6));
        let all = [late, in_time, of_another, of_this];
        let (commands, proposers) = still_wanted(all.into_iter(), 7, 60_000, now);
        assert_eq!((commands.len(), proposers.len()), (2, 2));
        for command in commands {
            assert_eq!(command.origin.not_after_ms, Some(60_250), "in log time, from the entry on");
        }
        let expired = Declined::Expired { maybe_applied: false };
        assert_eq!(late_answer.try_recv().unwrap().unwrap_err(), expired);
        assert_eq!(other_answer.try_recv().unwrap().unwrap_err(), Declined::NoLeader);
    }
}
