//! Agent of a node: its own tasks, routes and journal, on a simulated host.

use std::fs;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use ipam_agent::config::Config;
use ipam_agent::journal::{Journal, JournalFile};
use ipam_agent::node::Node;
use ipam_agent::serve::start_tasks;
use ipam_agent::{identity, socket};

use super::agent_socket::AgentSocket;
use super::lan::Lan;
use super::machines;
use super::member::End;
use crate::cluster::Cause;
use crate::live::node::AgentFiles;

/// Host of an agent.
#[derive(Debug, Clone)]
pub(super) struct AgentHost {
    /// Name of the host and of the node, in the realm `default`.
    pub(super) name: String,
    /// Number of the host on the link.
    pub(super) number: u8,
    /// Directory of the host's files.
    pub(super) dir: PathBuf,
}

impl AgentHost {
    /// Files of the agent.
    pub(super) fn files(&self) -> AgentFiles {
        AgentFiles(self.dir.clone())
    }
}

/// Runs the agent until it ends by itself.
pub(super) async fn run(host: &AgentHost, lan: &Lan) -> End {
    serve(host, lan).await.unwrap_or_else(|error| End::new(Cause::Other, format!("{error:#}")))
}

async fn serve(host: &AgentHost, lan: &Lan) -> Result<End> {
    let config = Config::read(&host.files().config())?;
    let (file, attachments) = JournalFile::open(&config.state_dir)?;
    let (journal, writing) = Journal::new(file, attachments);
    tokio::spawn(writing);
    let cluster = identity::connect(&config).await?;
    // The heartbeat reports a missing socket file. Simulated plugins need no file.
    let path = config.socket.clone();
    fs::write(&path, "")?;
    let wire = lan.wire(&host.name, host.number);
    let node = Arc::new(Node::new(config, machines::boot_id(&host.dir), cluster, journal, None));
    start_tasks(&node, &wire);
    let _served = AgentSocket::begin(path, socket::router(node, wire));
    pending().await
}
