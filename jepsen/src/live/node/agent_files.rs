//! Files of an agent, in a directory of its node. Live and simulated agents have the same.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// Intervals that let the agent see ended containers within about a second.
const INTERVALS: &str = "heartbeat_interval_ms = 500\ninventory_interval_ms = 500\norphan_grace_ms = 1000\n";

/// Directory with the files.
#[derive(Debug, Clone)]
pub(crate) struct AgentFiles(pub(crate) PathBuf);

impl AgentFiles {
    /// Writes the configuration, and creates the state directory.
    pub(crate) fn write(&self, name: &str, servers: &[String], more: &str) -> Result<()> {
        let (config, socket, state_dir) = (self.config(), self.socket(), self.state_dir());
        fs::create_dir_all(&state_dir).with_context(|| state_dir.display().to_string())?;
        // The additional lines come last, because they may contain sections.
        let text = format!(
            "servers = {servers:?}\nnode = {name:?}\nsocket = {socket:?}\nstate_dir = {state_dir:?}\n\
             {INTERVALS}{more}"
        );
        fs::write(&config, text).with_context(|| config.display().to_string())
    }

    /// Path of the configuration file.
    pub(crate) fn config(&self) -> PathBuf {
        self.0.join("agent.toml")
    }

    /// Path of the socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("agent.sock")
    }

    /// Path of the state directory, which contains the journal.
    fn state_dir(&self) -> PathBuf {
        self.0.join("state")
    }
}
