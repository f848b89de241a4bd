//! Server that answers by a function, and the history of sessions in memory.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use ipam_api::client::{Answer, Call};
use ipam_api::{Code, Problem};
use reqwest::header::HeaderMap;
use serde_json::Value as Json;
use tokio::sync::watch;

use crate::history::{Operation, Recorder};
use crate::random::Random;
use crate::sync::held;
use crate::workload::{Phase, Server, Servers, Session};

type Reply = Box<dyn Fn(&Call) -> Result<Answer, Problem> + Send + Sync>;

/// Server that answers by a function and remembers all requests.
pub(super) struct Scripted {
    reply: Reply,
    calls: Mutex<Vec<Call>>,
}

impl Scripted {
    pub(super) fn new(reply: impl Fn(&Call) -> Result<Answer, Problem> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { reply: Box::new(reply), calls: Mutex::default() })
    }

    /// All requests received so far.
    pub(super) fn calls(&self) -> Vec<Call> {
        held(&self.calls).clone()
    }
}

impl Server for Scripted {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Problem>> {
        let answer = (self.reply)(&call);
        held(&self.calls).push(call);
        Box::pin(async { answer })
    }
}

/// Answer with this body.
pub(super) fn answer(body: &Json) -> Answer {
    Answer::new(200, HeaderMap::new(), serde_json::to_vec(body).unwrap())
}

/// Problem of a request that may have been applied.
pub(super) fn unknown() -> Problem {
    Problem::new(Code::DeadlineExceeded, "timed out").maybe_applied()
}

/// History in memory.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub(super) fn operations(&self) -> Vec<Operation> {
        let text = held(&self.0).clone();
        serde_json::Deserializer::from_slice(&text).into_iter().collect::<Result<_, _>>().unwrap()
    }
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        held(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Session at one member, with its history and the switch of its phase.
pub(super) fn session(server: &Arc<Scripted>) -> (Session, Lines, watch::Sender<Phase>) {
    let lines = Lines::default();
    let recorder = Recorder::new(Box::new(lines.clone()));
    let (phases, phase) = watch::channel(Phase::Work);
    let all: Arc<dyn Server> = Arc::<Scripted>::clone(server);
    let servers = Servers { each: vec![("n1".to_owned(), Arc::clone(&all))], all };
    (Session::new("test", 0, Random::new(1), recorder, servers, None, phase), lines, phases)
}
