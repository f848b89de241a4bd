//! Proposals on the leader: waiting proposals are batched into one entry (`waiting.rs` selects them).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipam_api::limits::BODY_BYTES_MAX;
use ipam_api::time::Timestamp;
use openraft::errors::ClientWriteError;
use openraft::raft::ClientWriteResult;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::counters::Counters;
use super::gate::Gate;
use super::own_leadership::OwnLeadership;
use super::proposal_timing::ProposalTiming;
use super::raft::RaftHandle;
use super::requester::Requester;
use super::shares::Size;
use super::waiting::{Arrival, Closed, InFlight, Waiting};
use crate::durations::as_ms;
use crate::store::SharedState;
use crate::sync::held;
use crate::transport::{Declined, Stage};
use crate::types::{Outcomes, Recipient, Types};
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::Text;
use ipam_machine::{At, Cause, Command, Outcome, SeededBug, State};

/// Maximum number of entries in flight. It is small, so that waiting proposals share one entry, and above
/// one, so that the disk doesn't wait for the network.
const ENTRIES_IN_FLIGHT_MAX: usize = 2;
/// Maximum encoded size of a command, in bytes. No admitted request produces a larger one.
pub(super) const COMMAND_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

type Result<T> = std::result::Result<T, Declined>;

struct Proposal {
    command: Command,
    /// Number of the only leadership that may decide the proposal; none if any leadership may.
    leadership: Option<u64>,
    deadline: Instant,
    proposer: Proposer,
}

/// Outcome of a proposal, with its timing.
type Decided = (Outcome, ProposalTiming);

/// Sending end of the answer to a proposal, with data for the measurements.
struct Proposer {
    principal: Text,
    weight: usize,
    stage: Stage,
    since: Instant,
    reply: oneshot::Sender<Result<Decided>>,
}

impl Proposer {
    fn answer(self, answer: Result<Decided>) {
        // An error means that the proposer has given up.
        let _ = self.reply.send(answer);
    }

    /// Declines a proposal that was taken from the queue and isn't sent.
    fn decline(self, why: Declined) {
        let stage = self.stage.clone();
        // The answer comes first, so that the waiter never takes the proposal for sent.
        self.answer(Err(why));
        let _is_taken = stage.try_send();
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

    /// Proposes under the given leadership only, or under any.
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
        // Dropping the place removes a waiting proposal from the queue, even if this future is cancelled.
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
    let places = Arc::new(Semaphore::new(places));
    // First a slot, then the proposals: the longer the wait for a slot, the larger the batch.
    while let Ok(place) = places.clone().acquire_owned().await {
        let Some((taken, in_flight)) = waiting.0.take().await else { return };
        let taken = taken.into_iter().map(|queued| queued.item);
        // One instant serves the budgets and the entry's log time: a pause of the process between the two
        // can't admit a proposal that has expired by then.
        let held_leadership = own_leadership.borrow().clone().filter(OwnLeadership::has_quorum);
        let now = Instant::now();
        let Some(held_leadership) = held_leadership else {
            taken.for_each(|proposal| proposal.proposer.decline(Declined::NoLeader));
            continue;
        };
        let log_time_ms = held_leadership.log_time_ms(now);
        let (commands, proposers) = still_wanted(taken, held_leadership.number, log_time_ms, now);
        if !commands.is_empty() {
            let counters = Arc::clone(&counters);
            let entry = Entry { proposers, begun: now, place, in_flight, counters };
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
            proposal.proposer.decline(Declined::Expired { maybe_applied: false });
        } else if proposal.leadership.is_some_and(|leadership| leadership != number) {
            proposal.proposer.decline(Declined::NoLeader);
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
    begun: Instant,
    place: OwnedSemaphorePermit,
    in_flight: InFlight<Proposal>,
    counters: Arc<Counters>,
}

impl Entry {
    fn decline(self, why: &Declined) {
        self.proposers.into_iter().for_each(|proposer| proposer.answer(Err(why.clone())));
    }

    /// Delivers the outcomes to the proposers, on the thread that applies.
    fn deliver(self, result: ClientWriteResult<Types>) {
        let outcomes = match result {
            Ok(response) => response.data,
            // Refused before it was appended.
            Err(ClientWriteError::ForwardToLeader(_)) => return self.decline(&Declined::NoLeader),
            Err(_) => return self.decline(&Declined::Unknown),
        };
        let Self { proposers, begun, place, in_flight, counters } = self;
        let took = begun.elapsed();
        counters.committed(took);
        let Outcomes { all: outcomes, took: each } = outcomes;
        let apply: Duration = each.iter().sum();
        {
            let mut costs = in_flight.waiting.costs();
            for (proposer, took) in proposers.iter().zip(each) {
                costs.note(&proposer.principal, proposer.weight, took);
            }
        }
        drop((place, in_flight));
        if outcomes.len() != proposers.len() && !SeededBug::EarlyAck.is_on() {
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
                Some(Err(refusal)) if matches!(*refusal.cause, Cause::LeadershipEnded) => {
                    Err(Declined::NoLeader)
                }
                Some(outcome) => Ok((outcome, timing)),
                None => Err(Declined::Unknown),
            });
        }
    }
}

async fn append(
    raft: &RaftHandle,
    held_leadership: &OwnLeadership,
    log_time_ms: u64,
    commands: Vec<Command>,
    mut entry: Entry,
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
    if SeededBug::EarlyAck.is_on() {
        acknowledge_early(std::mem::take(&mut entry.proposers), &opened, state.view());
    }
    entry.begun = Instant::now();
    let entry = Arc::new(Mutex::new(Some(entry)));
    let proposed = Arc::clone(&entry);
    let recipient = Recipient::new(move |result| {
        if let Some(entry) = held(&proposed).take() {
            entry.deliver(result);
        }
    });
    // The write names the leadership, so that a batch can't enter the log with the log time of another one.
    let written = raft.write(batch).with_leader(held_leadership.leader_id).responder(recipient).await;
    if written.is_err()
        && let Some(entry) = held(&entry).take()
    {
        // The entry didn't even reach raft's queue.
        entry.decline(&Declined::ShuttingDown);
    }
}

/// Answers before the entry is committed, with the outcomes of a trial: a seeded bug.
fn acknowledge_early(proposers: Vec<Proposer>, opened: &Opened, mut state: State) {
    let at = At { log_time_ms: opened.log_time_ms, wall_ms: opened.wall_ms, leadership: state.leadership() };
    for (command, proposer) in opened.commands.iter().zip(proposers) {
        let (outcome, _) = ipam_machine::carry_out(&mut state, at, command);
        proposer.answer(Ok((outcome, ProposalTiming::Forwarded(Duration::ZERO))));
    }
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
        let declined = [&late, &of_another].map(|proposal| proposal.proposer.stage.clone());
        let all = [late, in_time, of_another, of_this];
        let (commands, proposers) = still_wanted(all.into_iter(), 7, 60_000, now);
        assert_eq!((commands.len(), proposers.len()), (2, 2));
        for command in commands {
            assert_eq!(command.origin.not_after_ms, Some(60_250), "in log time, from the entry on");
        }
        let expired = Declined::Expired { maybe_applied: false };
        assert_eq!(late_answer.try_recv().unwrap().unwrap_err(), expired);
        assert_eq!(other_answer.try_recv().unwrap().unwrap_err(), Declined::NoLeader);
        for stage in declined {
            assert!(!stage.try_give_up() && !stage.is_given_up(), "its place isn't looked for in the queue");
        }
    }
}
