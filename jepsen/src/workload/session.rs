//! Session: one client of a workload, which records each of its operations.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::Problem;
use ipam_api::brand::HEADER_IDEMPOTENCY_REPLAYED;
use ipam_api::client::{Answer, Call};
use ipam_api::problem::Applied;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::watch;

use super::choice::PACE;
use super::node::Node;
use super::server::Server;
use crate::history::{Function, Process, Recorder, Type, Value};
use crate::random::Random;

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Clients work while faults are injected and healed.
    Work,
    /// All faults are healed; sessions release their grants if their workload requires it, then return.
    Settle,
    /// Sessions return at once.
    Over,
}

/// Target of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Client of all members.
    All,
    /// The member with this index, modulo the number of members.
    Member(usize),
}

/// Servers of a session.
#[derive(Clone)]
pub struct Servers {
    /// Client of all members.
    pub all: Arc<dyn Server>,
    /// A client of each member alone, with its name.
    pub each: Vec<(String, Arc<dyn Server>)>,
}

/// One client of a workload.
pub struct Session {
    /// Number among the sessions of its workload, from 0.
    pub number: usize,
    /// Random choices of this session.
    pub random: Random,
    /// Host on which the session runs, if it has one.
    pub node: Option<Arc<dyn Node>>,
    /// Mean pause between two operations.
    pub(super) pace: Duration,
    workload: &'static str,
    process: Process,
    recorder: Recorder,
    servers: Servers,
    phase: watch::Receiver<Phase>,
    /// Number of idempotency keys that the session has made.
    keys: u64,
}

impl Session {
    /// A session of a workload.
    #[must_use]
    pub fn new(
        workload: &'static str,
        number: usize,
        random: Random,
        recorder: Recorder,
        servers: Servers,
        node: Option<Arc<dyn Node>>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let process = recorder.new_process();
        Self { number, random, node, pace: PACE, workload, process, recorder, servers, phase, keys: 0 }
    }

    /// The session with another pace.
    #[must_use]
    pub fn with_pace(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }

    /// Another session at the same servers, with a process of its own: for operations at the same time.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        let random = Random::new(self.random.number());
        let (recorder, servers) = (self.recorder.clone(), self.servers.clone());
        let (node, phase) = (self.node.clone(), self.phase.clone());
        Self::new(self.workload, self.number, random, recorder, servers, node, phase).with_pace(self.pace)
    }

    /// Name of the workload.
    #[must_use]
    pub fn workload(&self) -> &'static str {
        self.workload
    }

    /// An `Idempotency-Key` that no other operation has: name of the workload, process and a number.
    #[must_use]
    pub fn new_key(&mut self) -> String {
        self.keys += 1;
        format!("{}-{}-{}", self.workload, self.process, self.keys)
    }

    /// Present phase of the run.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Returns true while clients may begin operations.
    #[must_use]
    pub fn works(&self) -> bool {
        self.phase() == Phase::Work
    }

    /// Waits, at most until the phase changes.
    pub async fn pause(&mut self, time: Duration) {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            _ = self.phase.changed() => {}
        }
    }

    /// Number of members.
    #[must_use]
    pub fn members(&self) -> usize {
        self.servers.each.len()
    }

    /// Sends a request and records it. `done` adds the results of an answer to the value.
    ///
    /// # Errors
    /// The problem, which is recorded: as a failure only if the request surely took no effect.
    pub async fn call<T: DeserializeOwned>(
        &mut self,
        at: At,
        f: Function,
        value: Value,
        call: Call,
        done: impl FnOnce(&T, &mut Value),
    ) -> Result<T, Problem> {
        let (member, server) = self.server(at);
        let is_read = call.method() == "GET";
        let mut value = Value { workload: self.workload.to_owned(), member, ..value };
        value.host = self.node.as_ref().map(|node| node.name().to_owned());
        let invocation = self.recorder.begin(self.process, f, value.clone());
        let answer = server.send(call).await.and_then(|answer| {
            value.revision = answer.revision;
            if answer.header(HEADER_IDEMPOTENCY_REPLAYED) == Some("true") {
                add_detail(&mut value, "replayed", true.into());
            }
            // The request took effect, though its answer is damaged.
            read(&answer).map_err(|problem| if is_read { problem } else { problem.maybe_applied() })
        });
        match answer {
            Ok(answer) => {
                done(&answer, &mut value);
                self.recorder.end(invocation, Type::Ok, value);
                Ok(answer)
            }
            Err(problem) => {
                value.error = Some(problem.code.to_string());
                // A read without an answer has no effect.
                let failed = is_read || problem.applied == Applied::No;
                self.recorder.end(invocation, if failed { Type::Fail } else { Type::Info }, value);
                if !failed {
                    self.process = self.recorder.new_process();
                }
                Err(problem)
            }
        }
    }

    /// Server of a target, with the name of the member if the target is one member.
    #[must_use]
    pub fn server(&self, at: At) -> (Option<String>, Arc<dyn Server>) {
        let member = match at {
            At::All => None,
            At::Member(at) => self.servers.each.get(at.checked_rem(self.members()).unwrap_or_default()),
        };
        match member {
            Some((name, server)) => (Some(name.clone()), Arc::clone(server)),
            None => (None, Arc::clone(&self.servers.all)),
        }
    }

    /// Sends a read that only prepares the next operation, and does not record it.
    ///
    /// # Errors
    /// The problem.
    pub async fn look<T: DeserializeOwned>(&mut self, at: At, call: Call) -> Result<T, Problem> {
        let call = call.within(self.timeout());
        let (_, server) = self.server(at);
        server.send(call).await?.read()
    }

    /// Records an operation that is no request, such as a run of a plugin or several requests. `act` returns
    /// the kind of the end.
    pub async fn record<T>(
        &mut self,
        f: Function,
        value: Value,
        act: impl AsyncFnOnce(&mut Value) -> (Type, T),
    ) -> T {
        let mut value = Value { workload: self.workload.to_owned(), ..value };
        value.host = self.node.as_ref().map(|node| node.name().to_owned());
        let invocation = self.recorder.begin(self.process, f, value.clone());
        let (kind, result) = act(&mut value).await;
        self.recorder.end(invocation, kind, value);
        if kind == Type::Info {
            self.process = self.recorder.new_process();
        }
        result
    }
}

/// Adds a member to the details of an operation.
pub fn add_detail(value: &mut Value, name: &str, detail: serde_json::Value) {
    match value.detail.as_object_mut() {
        Some(details) => drop(details.insert(name.to_owned(), detail)),
        None => value.detail = json!({ name: detail }),
    }
}

/// Reads the body of an answer; an empty one as null.
fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Problem> {
    if answer.body.is_empty()
        && let Ok(nothing) = serde_json::from_value(serde_json::Value::Null)
    {
        return Ok(nothing);
    }
    answer.read()
}
