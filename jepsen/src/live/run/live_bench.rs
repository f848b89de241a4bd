//! Lab with nodes, as the bench of a run.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::future::BoxFuture;
use ipam_api::client::Client;

use super::bench::{Bench, Reachable, Spawner};
use super::nodes::Nodes;
use crate::checker::Exit;
use crate::live::lab::Lab;
use crate::nemesis::{Fault, Kind, System, View};
use crate::workload::Node;

/// Threads of the clients on one host.
const THREADS: usize = 1;

/// Lab with nodes. Nodes end before their network.
pub(super) struct LiveBench {
    pub(super) nodes: Nodes,
    pub(super) lab: Lab,
}

impl System for LiveBench {
    fn view(&mut self) -> BoxFuture<'_, View> {
        self.lab.view()
    }

    fn inject<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>> {
        match is_of_nodes(&fault.kind) {
            true => Box::pin(self.nodes.inject(&self.lab, fault)),
            false => self.lab.inject(fault),
        }
    }

    fn heal<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>> {
        match is_of_nodes(&fault.kind) {
            true => Box::pin(self.nodes.heal(&self.lab, fault)),
            false => self.lab.heal(fault),
        }
    }
}

fn is_of_nodes(kind: &Kind) -> bool {
    let is_agent = matches!(kind, Kind::Agents { .. } | Kind::Nodes { .. });
    is_agent || matches!(kind, Kind::BlindProbes { .. } | Kind::ForeignStation { .. })
}

impl Bench for LiveBench {
    fn members(&self, host: &str) -> Vec<Reachable> {
        let urls = self.lab.servers(host).urls;
        urls.into_iter().map(|(name, url)| Reachable { name, url }).collect()
    }

    fn names(&self) -> Vec<String> {
        self.lab.member_names()
    }

    fn client(&self, urls: &[&str]) -> Result<Client> {
        Ok(Client::with(urls, &self.lab.options())?)
    }

    fn control(&self, member: &str) -> Result<Client> {
        self.lab.control(member)
    }

    fn spawner(&self, host: &str) -> Result<Spawner> {
        self.lab.host(host)?.runtime(THREADS).map(|runtime| Spawner(Some(runtime)))
    }

    fn nodes(&self) -> Vec<Arc<dyn Node>> {
        self.nodes.all()
    }

    fn ready(&mut self, within: Duration) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.lab.ready(within))
    }

    fn exits(&mut self, now_ns: u64) -> BoxFuture<'_, Vec<Exit>> {
        Box::pin(async move {
            let mut exits = self.lab.exits(now_ns);
            exits.extend(self.nodes.exits(now_ns).await);
            exits
        })
    }
}
