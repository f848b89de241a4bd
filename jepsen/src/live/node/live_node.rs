//! Live node: a host of the network with its agent, its plugins and its containers.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::Result;
use futures::future::BoxFuture;
use tokio::sync::Mutex;

use super::agent::Agent;
use super::containers::Containers;
use super::plugin;
use super::power::Power;
use super::settings::NodeSettings;
use crate::workload::{Node, Plugin, PluginEnd};

/// Host with an agent. Workloads and faults share it.
#[derive(Debug)]
pub struct LiveNode {
    settings: NodeSettings,
    socket: String,
    agent: Mutex<Agent>,
    containers: Mutex<Containers>,
    power: Power,
}

impl LiveNode {
    /// A node whose agent isn't started.
    ///
    /// # Errors
    /// If its files can't be written.
    pub fn new(settings: NodeSettings) -> Result<Self> {
        let agent = Agent::new(settings.clone())?;
        let containers = Containers::new(settings.number);
        Ok(Self {
            socket: agent.socket().display().to_string(),
            settings,
            agent: Mutex::new(agent),
            containers: Mutex::new(containers),
            power: Power::default(),
        })
    }

    /// Starts the agent, unless it runs, and waits until it serves its socket.
    ///
    /// # Errors
    /// If it ends, or doesn't serve within 20 s.
    pub async fn start_agent(&self) -> Result<()> {
        if !self.power.is_on() {
            // The agent starts when the host boots.
            return Ok(());
        }
        self.agent.lock().await.start().await
    }

    /// Kills the agent with SIGKILL. Returns its process id and exit status, if it ran.
    ///
    /// # Errors
    /// If its end can't be awaited.
    pub async fn kill_agent(&self) -> Result<Option<(u32, ExitStatus)>> {
        let mut agent = self.agent.lock().await;
        let id = agent.id();
        Ok(id.zip(agent.kill().await?))
    }

    /// Stops the agent with SIGSTOP, or continues it. Returns false if it doesn't run.
    ///
    /// # Errors
    /// If the signal can't be sent.
    pub async fn pause_agent(&self, is_paused: bool) -> Result<bool> {
        self.agent.lock().await.pause(is_paused)
    }

    /// Exit status of an agent that ended by itself since the last call.
    ///
    /// # Errors
    /// If the kernel doesn't know the process.
    pub async fn ended_agent(&self) -> Result<Option<ExitStatus>> {
        self.agent.lock().await.ended()
    }

    /// Ends plugins, agent and containers at once. Returns the number of containers.
    ///
    /// # Errors
    /// If the agent or a container doesn't end.
    pub async fn lose_power(&self) -> Result<usize> {
        self.power.lose();
        self.kill_agent().await?;
        self.containers.lock().await.end_all().await
    }

    /// Boots the host after a loss of power, with another boot id and no containers. Returns the boot id.
    ///
    /// # Errors
    /// If its agent doesn't start.
    pub async fn boot(&self) -> Result<String> {
        let mut agent = self.agent.lock().await;
        let id = agent.boot()?;
        self.power.restore();
        agent.start().await?;
        Ok(id)
    }

    /// Log of all processes of the agent.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.settings.dir.join(super::agent::LOG)
    }

    /// Network namespace of the host.
    #[must_use]
    pub fn netns(&self) -> &Path {
        &self.settings.netns
    }
}

impl Node for LiveNode {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn agent_socket(&self) -> &str {
        &self.socket
    }

    fn run_plugin(&self, plugin: Plugin) -> BoxFuture<'_, Result<PluginEnd>> {
        Box::pin(async move {
            let NodeSettings { name, plugin: program, netns, .. } = &self.settings;
            // A dropped run kills its process.
            self.power.run(name, plugin::run(program, netns, &plugin)).await
        })
    }

    fn plug_in<'a>(&'a self, container: &'a str, addresses: &'a [IpAddr]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut containers = self.containers.lock().await;
            self.power.check(&self.settings.name)?;
            containers.plug_in(&self.settings.netns, container, addresses).await
        })
    }

    fn unplug<'a>(&'a self, container: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.containers.lock().await.end(container).await })
    }

    fn namespace<'a>(&'a self, container: &'a str) -> BoxFuture<'a, Result<String>> {
        Box::pin(async move {
            let mut containers = self.containers.lock().await;
            self.power.check(&self.settings.name)?;
            let file = containers.namespace(container)?;
            Ok(file.display().to_string())
        })
    }

    fn losses(&self) -> u64 {
        self.power.losses()
    }
}
