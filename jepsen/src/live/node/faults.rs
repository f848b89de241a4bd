//! Faults of nodes: lost, killed and paused agents, and hosts without power. Each returns its evidence.

use std::sync::Arc;

use anyhow::Result;

use super::live_node::LiveNode;
use crate::workload::Node as _;

/// Kills the agents of some hosts with SIGKILL.
///
/// # Errors
/// If an agent doesn't end.
pub async fn kill_agents(nodes: &[Arc<LiveNode>], hosts: &[String]) -> Result<Vec<String>> {
    let mut evidence = Vec::new();
    for node in of(nodes, hosts) {
        if let Some((id, status)) = node.kill_agent().await? {
            evidence.push(format!("agent of {}: process {id} ended, {status}", node.name()));
        }
    }
    Ok(evidence)
}

/// Starts the agents of some hosts again, unless a host has no power.
///
/// # Errors
/// If an agent doesn't serve its socket in time.
pub async fn start_agents(nodes: &[Arc<LiveNode>], hosts: &[String]) -> Result<Vec<String>> {
    for node in of(nodes, hosts) {
        node.start_agent().await?;
    }
    Ok(of(nodes, hosts).map(|node| format!("agent of {}: serves again", node.name())).collect())
}

/// Stops the agents of some hosts with SIGSTOP, or continues them.
///
/// # Errors
/// If a signal can't be sent.
pub async fn pause_agents(nodes: &[Arc<LiveNode>], hosts: &[String], is_paused: bool) -> Result<Vec<String>> {
    let mut evidence = Vec::new();
    for node in of(nodes, hosts) {
        if node.pause_agent(is_paused).await? {
            let state = if is_paused { "stopped" } else { "continued" };
            evidence.push(format!("agent of {}: {state}", node.name()));
        }
    }
    Ok(evidence)
}

/// Takes the power from some hosts: plugins, agents and containers end at once.
///
/// # Errors
/// If a process or a container doesn't end.
pub async fn lose_nodes(nodes: &[Arc<LiveNode>], hosts: &[String]) -> Result<Vec<String>> {
    let mut evidence = Vec::new();
    for node in of(nodes, hosts) {
        let containers = node.lose_power().await?;
        evidence.push(format!("host {}: no power, {containers} containers ended", node.name()));
    }
    Ok(evidence)
}

/// Boots hosts that have lost their power.
///
/// # Errors
/// If an agent doesn't serve its socket in time.
pub async fn boot_nodes(nodes: &[Arc<LiveNode>], hosts: &[String]) -> Result<Vec<String>> {
    let mut evidence = Vec::new();
    for node in of(nodes, hosts) {
        evidence.push(format!("host {}: boot {}", node.name(), node.boot().await?));
    }
    Ok(evidence)
}

fn of<'a>(nodes: &'a [Arc<LiveNode>], hosts: &'a [String]) -> impl Iterator<Item = &'a Arc<LiveNode>> {
    nodes.iter().filter(|node| hosts.iter().any(|host| host == node.name()))
}
