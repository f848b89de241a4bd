//! Nodes of a run: two hosts with agents, and the station whose addresses conflict.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::checker::Exit;
use crate::live::lab::Lab;
use crate::live::log;
use crate::live::node::{
    LiveNode, NodeSettings, Station, boot_nodes, create_token, free_addresses, kill_agents, lose_nodes,
    start_agents,
};
use crate::nemesis::{Fault, Kind};
use crate::workload::Node;

/// Hosts with an agent, with their numbers.
const NODES: [(&str, u8); 2] = [("c1", 11), ("c2", 12)];
/// Host of the foreign station.
const STATION: &str = "e1";

/// Nodes with their agents.
pub(super) struct Nodes {
    nodes: Vec<Arc<LiveNode>>,
    station: Station,
    /// Frames that blindness had dropped when the present fault began.
    blinded: u64,
    /// Positions up to which logs were searched for complaints, by node.
    searched: BTreeMap<String, u64>,
}

impl Nodes {
    /// Starts the agents.
    pub(super) async fn start(lab: &Lab, test_options: &[String]) -> Result<Self> {
        let admin = lab.administrator()?;
        let mut nodes = Vec::new();
        for (name, number) in NODES {
            let endpoints = lab.servers(name);
            let dir = lab.work_dir().join(name);
            std::fs::create_dir_all(&dir)?;
            let token_file = match endpoints.options.token_file {
                Some(_) => {
                    let file = dir.join("token");
                    create_token(&admin, name, &file).await.context("no token of a node")?;
                    Some(file)
                }
                None => None,
            };
            let node = LiveNode::new(NodeSettings {
                name: name.to_owned(),
                number,
                netns: lab.host(name)?.netns().to_owned(),
                dir,
                agent: lab.programs().ipam_agent.clone(),
                plugin: lab.programs().ipam_cni.clone(),
                servers: endpoints.urls.into_iter().map(|(_, url)| url).collect(),
                ca_file: endpoints.options.ca_file,
                token_file,
                more: String::new(),
                test_options: test_options.to_vec(),
            })?;
            node.start_agent().await?;
            nodes.push(Arc::new(node));
        }
        let station = Station::new(lab.host(STATION)?.netns().to_owned());
        station.be_gateway().await?;
        Ok(Self { nodes, station, blinded: 0, searched: BTreeMap::new() })
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn Node>> {
        self.nodes.iter().map(|node| Arc::clone(node) as Arc<dyn Node>).collect()
    }

    /// Injects a fault of nodes.
    pub(super) async fn inject(&mut self, lab: &Lab, fault: &Fault) -> Result<Vec<String>> {
        match &fault.kind {
            Kind::Agents { hosts } => kill_agents(&self.nodes, hosts).await,
            Kind::Nodes { hosts } => lose_nodes(&self.nodes, hosts).await,
            Kind::BlindProbes { hosts } => {
                self.blinded = lab.network().counters().total.blinded;
                hosts.iter().for_each(|host| lab.network().blind(host, true));
                // The evidence follows at the end: the dropped frames.
                Ok(Vec::new())
            }
            Kind::ForeignStation { addresses } => {
                let admin = lab.administrator()?;
                let taken = free_addresses(&admin, usize::from(*addresses)).await?;
                self.station.answer(&taken).await?;
                Ok(taken.iter().map(|address| format!("{address} answers")).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Heals a fault of nodes.
    pub(super) async fn heal(&mut self, lab: &Lab, fault: &Fault) -> Result<Vec<String>> {
        match &fault.kind {
            Kind::Agents { hosts } => start_agents(&self.nodes, hosts).await,
            Kind::Nodes { hosts } => boot_nodes(&self.nodes, hosts).await,
            Kind::BlindProbes { hosts } => {
                hosts.iter().for_each(|host| lab.network().blind(host, false));
                let dropped = lab.network().counters().total.blinded.saturating_sub(self.blinded);
                Ok((dropped > 0).then(|| format!("{dropped} frames dropped")).into_iter().collect())
            }
            Kind::ForeignStation { .. } => Ok(self
                .station
                .silence()
                .await?
                .iter()
                .map(|address| format!("{address} is silent"))
                .collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// Agents that have ended by themselves, and complaints of all agents, since the last call.
    pub(super) async fn exits(&mut self, now_ns: u64) -> Vec<Exit> {
        let mut exits = Vec::new();
        for node in &self.nodes {
            let ended = node.ended_agent().await.ok().flatten();
            let from = self.searched.entry(node.name().to_owned()).or_default();
            let complaints = log::complaints(&node.log_file(), from);
            if ended.is_none() && complaints.is_empty() {
                continue;
            }
            exits.push(Exit {
                time_ns: now_ns,
                process: format!("agent of {}", node.name()),
                status: ended.map_or_else(|| Exit::RUNS.to_owned(), |status| status.to_string()),
                is_expected: false,
                complaints,
            });
        }
        exits
    }

    /// Logs of the agents, with the names under which they are stored.
    pub(super) fn logs(&self) -> Vec<(String, PathBuf)> {
        self.nodes.iter().map(|node| (format!("agent-{}.log", node.name()), node.log_file())).collect()
    }
}
