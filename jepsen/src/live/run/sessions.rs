//! Sessions of all workloads, spread over the hosts of clients.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::bench::{Bench, Spawner};
use super::members::HostServers;
use super::plan::Plan;
use crate::history::Recorder;
use crate::random::Random;
use crate::workload::{Node, Phase, Session, Workload};

/// Host of the clients that use REST only.
const CLIENTS: &str = "x1";
/// Time limit of the preparation of one workload.
const PREPARE: Duration = Duration::from_secs(30);

/// Host on which sessions run.
struct Host {
    name: String,
    node: Option<Arc<dyn Node>>,
    spawner: Spawner,
    servers: HostServers,
}

/// Sessions of a run.
pub(super) struct Sessions {
    hosts: Vec<Host>,
    running: Vec<JoinHandle<()>>,
}

impl Sessions {
    /// Hosts with runtimes and clients; no session runs yet.
    pub(super) fn new<B: Bench + ?Sized>(bench: &B) -> Result<Self> {
        let host = |name: &str, node: Option<Arc<dyn Node>>| {
            let servers = HostServers::new(bench, name)?;
            let spawner = bench.spawner(name).with_context(|| format!("no runtime on {name}"))?;
            anyhow::Ok(Host { name: name.to_owned(), node, spawner, servers })
        };
        let mut hosts = vec![host(CLIENTS, None)?];
        for node in bench.nodes() {
            let name = node.name().to_owned();
            hosts.push(host(&name, Some(node))?);
        }
        Ok(Self { hosts, running: Vec::new() })
    }

    /// Creates the resources of all workloads.
    pub(super) async fn prepare(&self, workloads: &[Arc<dyn Workload>]) -> Result<()> {
        let host = self.hosts.first().context("no host of clients")?;
        for workload in workloads {
            let (workload, admin) = (Arc::clone(workload), host.servers.servers().all);
            let name = workload.name();
            let prepared = host.spawner.spawn(async move { workload.prepare(&*admin).await });
            let prepared = timeout(PREPARE, prepared).await;
            prepared.with_context(|| format!("{name} isn't prepared in time"))??.context(name)?;
        }
        Ok(())
    }

    /// Starts all sessions: those that need a node on the nodes, the others on all hosts in turn.
    pub(super) fn start(
        &mut self,
        workloads: &[Arc<dyn Workload>],
        plan: &Plan,
        random: &mut Random,
        recorder: &Recorder,
        phase: &watch::Receiver<Phase>,
    ) -> Result<()> {
        for workload in workloads {
            for number in 0..workload.sessions() {
                // The number is drawn in any case, so that the choices of other sessions stay the same.
                let random = Random::new(random.number());
                if plan.sessions_max.is_some_and(|most| number >= most) {
                    continue;
                }
                let fits = |host: &&Host| host.node.is_some() || !workload.needs_node();
                let hosts: Vec<&Host> = self.hosts.iter().filter(fits).collect();
                let at = number
                    .checked_rem(hosts.len())
                    .with_context(|| format!("{} needs a node", workload.name()))?;
                let host = hosts.get(at).context("no host")?;
                let session = Session::new(
                    workload.name(),
                    number,
                    random,
                    recorder.clone(),
                    host.servers.servers(),
                    host.node.clone(),
                    phase.clone(),
                );
                let session = session.with_pace(plan.pace);
                let workload = Arc::clone(workload);
                self.running.push(host.spawner.spawn(async move { workload.run(session).await }));
            }
        }
        Ok(())
    }

    /// Replaces the servers of clients if the membership has changed.
    pub(super) fn update<B: Bench + ?Sized>(&mut self, bench: &B) -> Result<()> {
        self.hosts.iter_mut().try_for_each(|host| host.servers.update(bench, &host.name))
    }

    /// Waits until all sessions have returned; returns the number of sessions that still run.
    ///
    /// # Errors
    /// If a session has panicked.
    pub(super) async fn wait(&mut self, within: Duration) -> Result<usize> {
        let deadline = tokio::time::Instant::now() + within;
        let mut left = Vec::new();
        for mut session in self.running.drain(..) {
            match tokio::time::timeout_at(deadline, &mut session).await {
                Ok(ended) => ended.context("a session has ended with a panic")?,
                Err(_) => left.push(session),
            }
        }
        self.running = left;
        Ok(self.running.len())
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        for session in &self.running {
            session.abort();
        }
    }
}
