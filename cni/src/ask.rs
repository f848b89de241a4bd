//! Servers of an operation, in order: the node's agent if there is one, then the servers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ipam_api::brand::HEADER_TRACE_PARENT;
use ipam_api::client::{Answer, Call, Client, Options};
use ipam_api::limits::ATTEMPT_MS_MAX;
use ipam_api::problem::{Code, Problem};
use serde::de::DeserializeOwned;

use crate::config::Reach;
use crate::fail::{Failure, TRY_LATER};

/// Longest time that a connection to the agent's socket may take; it is on this machine.
const CONNECT: Duration = Duration::from_millis(250);

/// Servers of an operation, with one deadline for all attempts.
#[derive(Debug)]
pub struct Ask {
    agent: Option<(PathBuf, Client)>,
    servers: Option<Client>,
    trace_parent: Option<String>,
    began: Instant,
    deadline: Duration,
}

impl Ask {
    /// Prepares the clients, without a connection.
    ///
    /// # Errors
    /// Code 7 for a malformed server address.
    pub fn new(reach: &Reach, trace_parent: Option<&str>, deadline: Duration) -> Result<Self, Failure> {
        let agent = match &reach.socket {
            Some(path) => Some((path.clone(), Client::over_socket(path)?)),
            None => None,
        };
        let options = Options { token_file: reach.token_file.clone(), ..Options::default() };
        let servers = match reach.servers.as_slice() {
            [] => None,
            named => Some(Client::with(named, &options)?),
        };
        let trace_parent = trace_parent.map(str::to_owned);
        Ok(Self { agent, servers, trace_parent, began: Instant::now(), deadline })
    }

    /// Sends a call, and parses the answer.
    ///
    /// # Errors
    /// The last problem.
    pub async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, Problem> {
        self.send(call).await?.read()
    }

    /// Sends a call. An agent without a useful answer costs little time if there are servers: every call here
    /// may be repeated, so that sending it to both is harmless.
    ///
    /// # Errors
    /// The last problem.
    pub async fn send(&self, call: Call) -> Result<Answer, Problem> {
        let call = match &self.trace_parent {
            Some(trace_parent) => call.header(HEADER_TRACE_PARENT, trace_parent)?,
            None => call,
        };
        match (&self.agent, &self.servers) {
            (Some((path, agent)), Some(servers)) => {
                if connects(path).await {
                    // Half of the time at most, so that the servers get their turn.
                    let limit = (self.left() / 2).min(Duration::from_millis(ATTEMPT_MS_MAX));
                    match agent.send(call.clone().within(limit)).await {
                        Err(problem) if problem.code.entry().cni == TRY_LATER => {}
                        answer => return answer,
                    }
                }
                servers.send(call.within(self.left())).await
            }
            (Some((path, agent)), None) => {
                agent.send(call.within(self.left())).await.map_err(|problem| match problem.code {
                    Code::Unreachable => Problem::new(
                        Code::AgentUnreachable,
                        format!("no answer at {}: {}", path.display(), problem.detail),
                    ),
                    _ => problem,
                })
            }
            (None, Some(servers)) => servers.send(call.within(self.left())).await,
            (None, None) => Err(Problem::new(Code::Unreachable, "neither an agent nor a server is named")),
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.began.elapsed())
    }
}

/// True if the socket accepts a connection. The client itself would retry until its deadline.
async fn connects(path: &Path) -> bool {
    matches!(tokio::time::timeout(CONNECT, tokio::net::UnixStream::connect(path)).await, Ok(Ok(_)))
}
