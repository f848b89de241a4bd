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

/// The first pause after a connection that failed; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause. Short, since an election may hang on it.
const PAUSE_MAX: Duration = Duration::from_millis(320);
/// A connection that doesn't last even that long didn't work.
const WORKED: Duration = Duration::from_millis(500);

/// A call that wasn't answered.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    /// It has never left this machine.
    #[error("{0}")]
    NotSent(String),
    /// It may have been received.
    #[error("{0}")]
    Lost(String),
    /// It may have been received; there was no answer in time.
    #[error("no answer in time")]
    TimedOut,
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) request: Request,
    pub(super) stage: Stage,
    pub(super) reply: oneshot::Sender<Result<Answer, CallError>>,
}

impl Call {
    /// Answers a call that is not going to be sent.
    pub(super) fn fail(self, why: &str) {
        let _ = self.reply.send(Err(CallError::NotSent(why.to_owned())));
    }
}

/// The answer to come.
#[derive(Debug)]
pub(crate) struct Pending {
    stage: Stage,
    answer: oneshot::Receiver<Result<Answer, CallError>>,
}

impl Pending {
    /// Waits for it. May be dropped and called again.
    pub(crate) async fn wait(&mut self, deadline: Instant) -> Result<Answer, CallError> {
        match timeout_at(deadline, &mut self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) if self.stage.try_give_up() => Err(CallError::NotSent("the member stops".to_owned())),
            Ok(Err(_)) => Err(CallError::Lost("the connection was lost before the answer".to_owned())),
            Err(_) if self.stage.try_give_up() => Err(CallError::NotSent("no connection in time".to_owned())),
            Err(_) => Err(CallError::TimedOut),
        }
    }

    /// Waits no longer. A request that hasn't left this machine never will.
    pub(crate) fn give_up(self) -> CallError {
        let why = "the caller waits no longer".to_owned();
        if self.stage.try_give_up() { CallError::NotSent(why) } else { CallError::Lost(why) }
    }
}

/// The callers' end. The connection ends with it.
#[derive(Debug)]
pub(crate) struct Channel {
    calls: mpsc::Sender<Call>,
}

impl Channel {
    /// Creates the channel, without a connection, whose task runs on this runtime.
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

/// Answers calls during the pause with the reason. False when no caller is left.
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
