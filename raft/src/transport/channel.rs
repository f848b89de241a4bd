//! Persistent connection to one peer for one purpose, as its callers see it. It connects on demand,
//! reconnects after a pause, and fails calls at once while it can't.

use std::time::Duration;

use ipam_api::limits::{PEER_CALLS_MAX, PEER_CONNECT_MS_MAX};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connection::converse;
use super::message::{Answer, Request};
use super::peers::Target;
use super::stage::Stage;
use crate::simulation::pausable;

/// The first pause after a failed connection; each further pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause. It is short, since an election may depend on the connection.
const PAUSE_MAX: Duration = Duration::from_millis(320);
/// Minimum duration of a connection that counts as working.
const WORKED: Duration = Duration::from_millis(500);

/// Reason why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    /// The request was never sent.
    #[error("{0}")]
    NotSent(String),
    /// The request may have been received.
    #[error("{0}")]
    Lost(String),
    /// The request may have been received; there was no answer in time.
    #[error("no answer in time")]
    TimedOut,
}

/// A request that waits to be sent.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) request: Request,
    pub(super) stage: Stage,
    pub(super) reply: oneshot::Sender<Result<Answer, CallError>>,
}

impl Call {
    /// Answers a call that will not be sent.
    pub(super) fn fail(self, why: &str) {
        let _ = self.reply.send(Err(CallError::NotSent(why.to_owned())));
    }
}

/// Handle on the pending answer of a request.
#[derive(Debug)]
pub(crate) struct Pending {
    stage: Stage,
    answer: oneshot::Receiver<Result<Answer, CallError>>,
}

impl Pending {
    /// Waits for the answer. The future may be dropped, and the method called again.
    pub(crate) async fn wait(&mut self, deadline: Instant) -> Result<Answer, CallError> {
        match timeout_at(deadline, &mut self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) if self.stage.try_give_up() => Err(CallError::NotSent("the member stops".to_owned())),
            Ok(Err(_)) => Err(CallError::Lost("the connection was lost before the answer".to_owned())),
            Err(_) if self.stage.try_give_up() => Err(CallError::NotSent("no connection in time".to_owned())),
            Err(_) => Err(CallError::TimedOut),
        }
    }

    /// Gives up waiting. A request that hasn't been sent yet never will be.
    pub(crate) fn give_up(self) -> CallError {
        let why = "the caller waits no longer".to_owned();
        if self.stage.try_give_up() { CallError::NotSent(why) } else { CallError::Lost(why) }
    }
}

/// Callers' end of a connection, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Channel {
    calls: mpsc::Sender<Call>,
}

impl Channel {
    /// Creates the channel without a connection; the task of the channel runs on this runtime.
    pub(super) fn new(target: Target, runtime: &Handle) -> Self {
        let (calls, waiting) = mpsc::channel(PEER_CALLS_MAX);
        runtime.spawn(pausable(run(target, waiting)));
        Self { calls }
    }

    /// Queues a request after earlier ones.
    pub(crate) fn submit(&self, request: Request) -> Result<Pending, CallError> {
        let (reply, answer) = oneshot::channel();
        let stage = Stage::default();
        match self.calls.try_send(Call { request, stage: stage.clone(), reply }) {
            Ok(()) => Ok(Pending { stage, answer }),
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(CallError::NotSent(format!("{PEER_CALLS_MAX} calls wait for it already")))
            }
            Err(mpsc::error::TrySendError::Closed(_)) => {
                Err(CallError::NotSent("the member stops".to_owned()))
            }
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn call(&self, request: Request, deadline: Instant) -> Result<Answer, CallError> {
        self.submit(request)?.wait(deadline).await
    }
}

/// Keeps the connection while the channel is held.
async fn run(target: Target, mut waiting: mpsc::Receiver<Call>) {
    let mut pause = PAUSE_MIN;
    while let Some(call) = waiting.recv().await {
        let connected = match timeout(Duration::from_millis(PEER_CONNECT_MS_MAX), target.connect()).await {
            Ok(connected) => connected.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no connection within {PEER_CONNECT_MS_MAX} ms")),
        };
        let why = match connected {
            Ok(stream) => {
                let since = Instant::now();
                target.note_connected();
                let Some(why) = converse(stream, call, &mut waiting).await else { return };
                if since.elapsed() >= WORKED {
                    pause = PAUSE_MIN;
                }
                why
            }
            Err(why) => {
                call.fail(&why);
                why
            }
        };
        target.note_failed(&why);
        if !refuse_all(&mut waiting, &why, pause).await {
            return;
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Refuses calls with the reason during the pause. Returns false when no caller is left.
async fn refuse_all(waiting: &mut mpsc::Receiver<Call>, why: &str, pause: Duration) -> bool {
    let over = sleep(pause);
    tokio::pin!(over);
    loop {
        tokio::select! {
            () = &mut over => return true,
            call = waiting.recv() => match call {
                Some(call) => call.fail(why),
                None => return false,
            },
        }
    }
}
