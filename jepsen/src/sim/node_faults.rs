//! Faults of nodes: killed agents, hosts without power, and foreign stations. Each returns its evidence.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

use super::agent_socket::is_served;
use super::bench::{EXECUTION, LOOK, SimBench};
use super::lan::{GATEWAY_HOST, GATEWAY_MAC};
use super::node::SimNode;
use super::supervisor::Command;
use crate::cluster;
use crate::live::node::free_addresses;
use crate::workload::Node as _;

/// Time limit for an agent to serve its socket.
const STARTING: Duration = Duration::from_secs(20);
/// Station on the host of the gateways that answers at free addresses.
const FOREIGN: &str = "foreign";

impl SimBench {
    /// Ends the agents of some hosts at once.
    pub(super) async fn kill_agents(&self, hosts: &[String]) -> Vec<String> {
        let mut evidence = Vec::new();
        for node in self.nodes_of(hosts) {
            if serves(&node) {
                evidence.push(format!("agent of {}: killed", node.name()));
            }
            self.supervisor.command(Command::Crash(node.name().to_owned()));
        }
        sleep(EXECUTION).await;
        evidence
    }

    /// Starts the agents of some hosts, and waits until they serve their sockets. A host without power has
    /// no agent until it boots.
    pub(super) async fn start_agents(&self, hosts: &[String]) -> Result<Vec<String>> {
        let nodes = self.nodes_of(hosts);
        let nodes: Vec<Arc<SimNode>> = nodes.into_iter().filter(|node| node.has_power()).collect();
        for node in nodes.iter().filter(|node| !serves(node)) {
            self.supervisor.command(Command::Start(node.name().to_owned()));
        }
        sleep(EXECUTION).await;
        let until = Instant::now() + STARTING;
        while let Some(late) = nodes.iter().find(|node| !serves(node)) {
            if Instant::now() > until {
                bail!("the agent of {} doesn't serve its socket", late.name());
            }
            sleep(LOOK).await;
        }
        Ok(nodes.iter().map(|node| format!("agent of {}: serves again", node.name())).collect())
    }

    /// Takes the power from some hosts: plugins, agents and containers end, in this order.
    pub(super) async fn lose_nodes(&self, hosts: &[String]) -> Result<Vec<String>> {
        let nodes = self.nodes_of(hosts);
        nodes.iter().for_each(|node| node.lose_power());
        self.kill_agents(hosts).await;
        let lost = |node: &Arc<SimNode>| {
            let count = node.end_containers()?;
            anyhow::Ok(format!("host {}: no power, {count} containers ended", node.name()))
        };
        // The containers of each host end, even after a failure of another host.
        let lost: Vec<Result<String>> = nodes.iter().map(lost).collect();
        lost.into_iter().collect()
    }

    /// Boots hosts that have lost their power.
    pub(super) async fn boot_nodes(&self, hosts: &[String]) -> Result<Vec<String>> {
        let boot = |node: Arc<SimNode>| format!("host {}: boot {}", node.name(), node.boot());
        let evidence = self.nodes_of(hosts).into_iter().map(boot).collect();
        self.start_agents(hosts).await?;
        Ok(evidence)
    }

    /// Lets a foreign station answer at addresses that probed pools would allocate next.
    pub(super) async fn add_station(&self, count: usize) -> Result<Vec<String>> {
        let free = free_addresses(&cluster::administrator(self)?, count).await?;
        self.lan.answer(GATEWAY_HOST, FOREIGN, GATEWAY_MAC, &free);
        Ok(free.iter().map(|address| format!("{address} answers")).collect())
    }

    pub(super) fn remove_station(&self) {
        self.lan.unplug(GATEWAY_HOST, FOREIGN);
    }

    fn nodes_of(&self, hosts: &[String]) -> Vec<Arc<SimNode>> {
        let is_meant = |node: &&Arc<SimNode>| hosts.iter().any(|host| host == node.name());
        self.nodes.iter().filter(is_meant).cloned().collect()
    }
}

/// True if the agent of a node serves its socket.
fn serves(node: &SimNode) -> bool {
    is_served(node.agent_socket().as_ref())
}
