//! Servers of an operation, in order: the node's agent if there is one, then the servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ipam_api::brand::{
    GATEWAY_OF_NODE, HEADER_GATEWAY, HEADER_LINK, HEADER_NETNS, HEADER_RUNTIME, HEADER_TRACE_PARENT,
};
use ipam_api::client::{Answer, Call, Client, Options};
use ipam_api::limits::ATTEMPT_MS_MAX;
use ipam_api::problem::{Code, Problem};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::config::{Network, Reach};
use crate::container;
use crate::environment::Environment;
use crate::fail::{Failure, TRY_LATER};
use crate::link::{link, node_is_gateway};

/// Longest time that a connection to the agent's socket may take; it is on this machine.
const CONNECT: Duration = Duration::from_millis(250);

/// Servers of an operation, with one deadline for all attempts.
#[derive(Debug)]
pub struct Ask {
    agent: Option<Agent>,
    servers: Option<Client>,
    trace_parent: Option<String>,
    began: Instant,
    deadline: Duration,
}

/// The node's agent.
#[derive(Debug)]
struct Agent {
    path: PathBuf,
    client: Client,
    /// Facts about the container that the agent can't see itself.
    headers: Vec<(&'static str, String)>,
}

impl Ask {
    /// Prepares the clients, without a connection.
    ///
    /// # Errors
    /// Code 7 for a malformed server address.
    pub fn new(environment: &Environment, network: &Network) -> Result<Self, Failure> {
        let reach = network.reach(&environment.servers)?;
        let (over_socket, servers) = clients(&reach)?;
        let agent = match (reach.socket, over_socket) {
            (Some(path), Some(client)) => {
                let netns = container::netns(&environment.network_namespace).map(|netns| netns.to_string());
                let link = link(network).map(|link| link.to_string());
                let gateway = node_is_gateway(network).then(|| GATEWAY_OF_NODE.to_owned());
                let headers = [
                    (HEADER_NETNS, netns),
                    (HEADER_RUNTIME, runtime(network)?),
                    (HEADER_LINK, link),
                    (HEADER_GATEWAY, gateway),
                ];
                let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                Some(Agent { path, client, headers })
            }
            _ => None,
        };
        let (trace_parent, deadline) = (environment.trace_parent.clone(), environment.deadline);
        Ok(Self { agent, servers, trace_parent, began: Instant::now(), deadline })
    }

    /// Sends a call, and parses the answer.
    ///
    /// # Errors
    /// The last problem.
    pub async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, Problem> {
        self.send(call).await?.read()
    }

    /// Sends a call. An agent without a useful answer costs little time if there are servers: every call of
    /// the plugin may be repeated, so that sending it to both is harmless.
    ///
    /// # Errors
    /// The last problem.
    pub async fn send(&self, call: Call) -> Result<Answer, Problem> {
        let call = match &self.trace_parent {
            Some(trace_parent) => call.header(HEADER_TRACE_PARENT, trace_parent)?,
            None => call,
        };
        match (&self.agent, &self.servers) {
            (Some(agent), Some(servers)) => {
                if connects(&agent.path).await {
                    // Half of the time at most, so that the servers get their turn.
                    let limit = (self.left() / 2).min(Duration::from_millis(ATTEMPT_MS_MAX));
                    match agent.send(call.clone().within(limit)).await {
                        Err(problem) if helps_elsewhere(&problem) => {}
                        answer => return answer,
                    }
                }
                servers.send(call.within(self.left())).await
            }
            (Some(agent), None) => agent.send(call.within(self.left())).await,
            (None, Some(servers)) => servers.send(call.within(self.left())).await,
            (None, None) => Err(Problem::new(Code::Unreachable, "neither an agent nor a server is named")),
        }
    }

    /// Sends a call that only the agent serves; `None` if the configuration names no agent.
    ///
    /// # Errors
    /// The last problem.
    pub async fn send_to_agent(&self, call: Call) -> Result<Option<Answer>, Problem> {
        match &self.agent {
            Some(agent) => agent.send(call.within(self.left())).await.map(Some),
            None => Ok(None),
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.began.elapsed())
    }
}

/// Returns true if the servers may serve a request that the agent didn't. The servers can't look up pods, so
/// an agent's refusal of an unknown pod is final.
fn helps_elsewhere(problem: &Problem) -> bool {
    problem.code.entry().cni == TRY_LATER && problem.code != Code::PodUnknown
}

impl Agent {
    async fn send(&self, call: Call) -> Result<Answer, Problem> {
        let headers = self.headers.iter();
        // A fact that no header can carry is left out.
        let call = headers.fold(call, |call, (name, value)| call.clone().header(name, value).unwrap_or(call));
        self.client.send(call).await.map_err(|problem| match problem.code {
            Code::Unreachable => Problem::new(
                Code::AgentUnreachable,
                format!("no answer at {}: {}", self.path.display(), problem.detail),
            ),
            _ => problem,
        })
    }
}

/// Clients of the agent and of the servers.
///
/// # Errors
/// Code 7 for a malformed server address or an unreadable token.
pub(crate) fn clients(reach: &Reach) -> Result<(Option<Client>, Option<Client>), Failure> {
    let agent = reach.socket.as_deref().map(Client::over_socket).transpose()?;
    let options = Options { token_file: reach.token_file.clone(), ..Options::default() };
    let servers = match reach.servers.as_slice() {
        [] => None,
        named => Some(Client::with(named, &options)?),
    };
    Ok((agent, servers))
}

/// Name of the runtime, as configured or as observed.
///
/// # Errors
/// Code 7.
pub(crate) fn runtime(network: &Network) -> Result<Option<String>, Failure> {
    Ok(network.runtime()?.map(str::to_owned).or_else(container::runtime))
}

/// True if the socket accepts a connection. The client itself would retry until its deadline.
async fn connects(path: &Path) -> bool {
    matches!(tokio::time::timeout(CONNECT, tokio::net::UnixStream::connect(path)).await, Ok(Ok(_)))
}
