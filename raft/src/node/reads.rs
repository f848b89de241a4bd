//! Linearizable reads: a log id confirmed by a majority, requested once for all waiting readers.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::limits::PROPOSALS_WAITING_MAX;
use openraft::ReadPolicy;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::RaftError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::counters::Counters;
use super::raft::{Leader, RaftHandle, leader, superseded};
use crate::simulation::pausable;
use crate::transport::{Answer, CallError, Declined, Peers, Purpose, Request};
use crate::types::LogId;
use ipam_machine::SeededBug;

/// Maximum number of concurrent rounds. A reader joins only a round that begins after its arrival, so a
/// second one halves the wait of readers that arrive during the first.
const ROUNDS_IN_FLIGHT_MAX: usize = 2;
/// Time limit of one round; a reader with more time left joins another round.
const ROUND_PATIENCE: Duration = Duration::from_secs(1);

type Reader = oneshot::Sender<Result<LogId, Declined>>;

/// The queue of readers.
pub(super) struct Reads(mpsc::Sender<Reader>);

impl Reads {
    /// Starts the queue.
    pub(super) fn new(
        raft: RaftHandle,
        peers: Peers,
        counters: Arc<Counters>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, waiting) = mpsc::channel(PROPOSALS_WAITING_MAX);
        (Self(queue), run(raft, peers, waiting, counters))
    }

    /// Returns the log id up to which the state must be applied for a read that begins now.
    pub(super) async fn log_id(&self, deadline: Instant) -> Result<LogId, Declined> {
        let (reader, answer) = oneshot::channel();
        match self.0.try_send(reader) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => return Err(Declined::Overloaded),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Declined::ShuttingDown),
        }
        match timeout_at(deadline, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Declined::ShuttingDown),
            // The leader got no confirmation from a majority in time.
            Err(_) => Err(Declined::NoLeader),
        }
    }
}

async fn run(raft: RaftHandle, peers: Peers, mut waiting: mpsc::Receiver<Reader>, counters: Arc<Counters>) {
    let rounds = Arc::new(Semaphore::new(ROUNDS_IN_FLIGHT_MAX));
    while let Ok(place) = rounds.clone().acquire_owned().await {
        let Some(first) = waiting.recv().await else { return };
        let mut readers = vec![first];
        while let Ok(reader) = waiting.try_recv() {
            readers.push(reader);
        }
        Counters::add(&counters.read_rounds);
        let (raft, peers) = (raft.clone(), peers.clone());
        tokio::spawn(pausable(async move {
            let answer = round(&raft, &peers).await;
            drop(place);
            for reader in readers {
                let _ = reader.send(answer.clone());
            }
        }));
    }
}

/// Requests the log id from the leader, and at once from each new leader: a stopped leader doesn't answer.
async fn round(raft: &RaftHandle, peers: &Peers) -> Result<LogId, Declined> {
    let until = Instant::now() + ROUND_PATIENCE;
    loop {
        let known = leader(raft);
        let Some(id) = known.id(peers.my_id()) else { return Err(Declined::NoLeader) };
        tokio::select! {
            answer = ask(raft, peers, known, until) => return answer,
            () = superseded(raft, id) => {}
        }
    }
}

async fn ask(raft: &RaftHandle, peers: &Peers, known: Leader, until: Instant) -> Result<LogId, Declined> {
    match known {
        Leader::Unknown => Err(Declined::NoLeader),
        Leader::Me => of_leader(raft).await,
        Leader::Other(id, member) => {
            let channel = peers.channel(id, &member, Purpose::Control);
            match channel.call(Request::ReadIndex, until).await {
                Ok(Answer::ReadIndex(Err(Declined::ShuttingDown))) => Err(Declined::NoLeader),
                Ok(Answer::ReadIndex(answer)) => answer,
                Ok(_) | Err(CallError::NotSent(_) | CallError::Lost(_) | CallError::TimedOut) => {
                    Err(Declined::NoLeader)
                }
            }
        }
    }
}

/// Returns the log id on the leader, once a majority has confirmed its leadership. Leases are never used: a
/// follower forgets them when it restarts.
pub(super) async fn of_leader(raft: &RaftHandle) -> Result<LogId, Declined> {
    // A stopped raft would log an error for each reader.
    if raft.metrics().borrow_watched().running_state.is_err() {
        return Err(Declined::ShuttingDown);
    }
    if SeededBug::UnconfirmedRead.is_on() {
        return raft.metrics().borrow_watched().last_applied.ok_or(Declined::NoLeader);
    }
    match raft.get_read_log_id(ReadPolicy::ReadIndex).await {
        Ok((read, _)) => Ok(*read.log_id()),
        Err(RaftError::APIError(_)) => Err(Declined::NoLeader),
        Err(RaftError::Fatal(_)) => Err(Declined::ShuttingDown),
    }
}
