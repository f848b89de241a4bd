//! Bench: the simulated cluster, as the driver of a run and faults see it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::future::BoxFuture;
use ipam_api::client::Client;
use ipam_raft::restore;
use tokio::time::{Instant, sleep};

use super::lan::Lan;
use super::machines::{self, Machine, Machines};
use super::network::url;
use super::node::SimNode;
use super::supervisor::{Command, Supervisor};
use super::throttle::Throttle;
use crate::checker::Exit;
use crate::cluster::{self, Admin, BackupFile, Cluster, Costs, Standing};
use crate::live::run::{Bench, Reachable, Spawner};
use crate::nemesis::{Corruption, Fault, Link};
use crate::random::Random;
use crate::workload::Node;

/// Host of all clients.
pub(super) const CLIENT_HOST: &str = "x1";
/// Time in which the simulation executes a command: it polls for commands at each tick.
pub(super) const EXECUTION: Duration = Duration::from_millis(4);
/// Time limit of a graceful end.
const GRACE: Duration = Duration::from_secs(20);
/// Time limit of the end of a removed member.
const END: Duration = Duration::from_secs(15);
/// Time between two polls.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// A member.
#[derive(Debug, Default)]
struct Member {
    is_started: bool,
    is_paused: bool,
    standing: Standing,
    unexplained_ends: usize,
}

/// The cluster, from the host of the clients.
pub(super) struct SimBench {
    pub(super) active: Vec<Fault>,
    pub(super) random: Random,
    /// Names that a host of the simulation has or had.
    pub(super) hosts: BTreeSet<String>,
    pub(super) supervisor: Supervisor,
    /// Hosts with agents.
    pub(super) nodes: Vec<Arc<SimNode>>,
    pub(super) lan: Lan,
    /// Frames that blindness had dropped when the present fault began.
    pub(super) dropped_before: u64,
    members: BTreeMap<String, Member>,
    machines: Machines,
    /// Directory of all disks.
    disks: PathBuf,
    /// Number of data directories that were made.
    made: usize,
    notes: Vec<String>,
    exits: Vec<Exit>,
    /// Backup of an active restore.
    pub(super) backup: Option<BackupFile>,
    /// Expensive requests in progress.
    pub(super) costs: Costs,
    /// Members with little CPU time.
    pub(super) throttle: Option<Throttle>,
}

impl SimBench {
    /// Bench of founders, whose processes run, and of nodes on one link.
    pub(super) fn new(
        founders: &[Machine],
        (nodes, lan): (Vec<Arc<SimNode>>, Lan),
        machines: Machines,
        supervisor: Supervisor,
        disks: PathBuf,
        seed: u64,
    ) -> Self {
        let running =
            |machine: &Machine| (machine.name.clone(), Member { is_started: true, ..Member::default() });
        let members: BTreeMap<String, Member> = founders.iter().map(running).collect();
        Self {
            active: Vec::new(),
            random: Random::new(seed),
            hosts: members.keys().cloned().chain(nodes.iter().map(|node| node.name().to_owned())).collect(),
            supervisor,
            nodes,
            lan,
            dropped_before: 0,
            made: members.len(),
            members,
            machines,
            disks,
            notes: Vec::new(),
            exits: Vec::new(),
            backup: None,
            costs: Costs::default(),
            throttle: None,
        }
    }

    fn member(&self, name: &str) -> Result<&Member> {
        self.members.get(name).with_context(|| format!("there is no member {name}"))
    }

    fn member_mut(&mut self, name: &str) -> Result<&mut Member> {
        self.members.get_mut(name).with_context(|| format!("there is no member {name}"))
    }

    /// Path of a file or directory that no process has used.
    pub(super) fn new_path(&mut self, name: &str) -> PathBuf {
        self.made += 1;
        self.disks.join(format!("{name}-{}", self.made))
    }

    pub(super) fn set_paused(&mut self, name: &str, is_paused: bool) {
        if let Some(member) = self.members.get_mut(name) {
            member.is_paused = is_paused && member.is_started;
        }
    }
}

impl Cluster for SimBench {
    fn names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    fn hosts(&self) -> Vec<String> {
        let nodes = self.nodes.iter().map(|node| node.name().to_owned());
        nodes.chain([CLIENT_HOST.to_owned()]).collect()
    }

    fn client_of(&self, names: &[String]) -> Result<Client> {
        let urls: Vec<String> = names.iter().map(|name| url(name)).collect();
        Ok(Client::new(&urls)?)
    }

    fn data_dir(&self, name: &str) -> Result<PathBuf> {
        Ok(self.machines.get(name).with_context(|| format!("{name} has no machine"))?.dir)
    }

    fn standing(&self, name: &str) -> Result<&Standing> {
        Ok(&self.member(name)?.standing)
    }

    fn standing_mut(&mut self, name: &str) -> Result<&mut Standing> {
        Ok(&mut self.member_mut(name)?.standing)
    }

    fn is_started(&self, name: &str) -> bool {
        self.member(name).is_ok_and(|member| member.is_started)
    }

    fn answers(&self, name: &str) -> bool {
        self.member(name).is_ok_and(|member| member.is_started && !member.is_paused)
    }

    fn active(&self) -> &[Fault] {
        &self.active
    }

    fn active_mut(&mut self) -> &mut Vec<Fault> {
        &mut self.active
    }

    fn notes(&mut self) -> &mut Vec<String> {
        &mut self.notes
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn unexplained_ends(&self, name: &str) -> usize {
        self.member(name).map_or(0, |member| member.unexplained_ends)
    }

    fn damage(&mut self, name: &str, corruption: Corruption) -> Result<Option<String>> {
        let data_dir = self.data_dir(name)?;
        match cluster::possible(&data_dir, corruption) {
            Corruption::RowsFlip => cluster::damage_all_rows(&data_dir),
            _ => cluster::damage(&data_dir, corruption, &mut self.random),
        }
    }

    fn reap(&mut self) -> Result<()> {
        for (name, end) in self.supervisor.take_ends() {
            let status = end.to_string();
            let (process, is_expected) = if self.nodes.iter().any(|node| node.name() == name) {
                (format!("agent of {name}"), false)
            } else {
                let Some(member) = self.members.get_mut(&name) else { continue };
                member.is_started = false;
                let is_expected = end.cause.is_none_or(|cause| member.standing.note_end(cause));
                member.unexplained_ends += usize::from(!is_expected);
                (name, is_expected)
            };
            self.exits.push(Exit { time_ns: 0, process, status, is_expected, complaints: Vec::new() });
        }
        Ok(())
    }

    fn cut(&mut self, links: &[Link]) {
        for link in links.iter().filter(|link| self.is_link(link)) {
            turmoil::partition_oneway(link.from.as_str(), link.to.as_str());
        }
    }

    fn mend(&mut self, links: &[Link]) {
        for link in links.iter().filter(|link| self.is_link(link)) {
            turmoil::repair_oneway(link.from.as_str(), link.to.as_str());
        }
    }

    fn drop_member(&mut self, name: &str) {
        self.members.remove(name);
    }

    async fn begin(&mut self, fault: &Fault) -> Result<Vec<String>> {
        self.begin_fault(fault).await
    }

    async fn end(&mut self, fault: &Fault) -> Result<Vec<String>> {
        self.end_fault(fault).await
    }

    async fn kill(&mut self, names: &[String]) -> Result<Vec<String>> {
        self.reap()?;
        let mut ends = Vec::new();
        for name in names {
            let member = self.member_mut(name)?;
            member.is_paused = false;
            if std::mem::take(&mut member.is_started) {
                self.supervisor.command(Command::Crash(name.clone()));
                ends.push(format!("{name}: killed"));
            }
        }
        sleep(EXECUTION).await;
        Ok(ends)
    }

    async fn start(&mut self, name: &str) -> Result<()> {
        self.member_mut(name)?.is_started = true;
        let is_new = self.hosts.insert(name.to_owned());
        let name = name.to_owned();
        self.supervisor.command(if is_new { Command::Add(name) } else { Command::Start(name) });
        sleep(EXECUTION).await;
        Ok(())
    }

    async fn stop(&mut self, name: &str) -> Result<Option<String>> {
        machines::stop(name);
        let until = Instant::now() + GRACE;
        while self.is_started(name) {
            if Instant::now() > until {
                bail!("{name} does not end");
            }
            sleep(LOOK).await;
            self.reap()?;
        }
        Ok(Some("stopped".to_owned()))
    }

    fn is_upgraded(&self, name: &str) -> bool {
        machines::is_upgraded(name)
    }

    fn upgrade(&mut self, name: &str) -> Result<()> {
        machines::upgrade(name);
        Ok(())
    }

    fn make_founder(&mut self, name: &str) -> Result<()> {
        let others = self.members.keys().filter(|other| *other != name).cloned().collect();
        let dir = self.new_path(name);
        self.machines.put(Machine { name: name.to_owned(), dir, others, joins: false });
        self.set_conditions();
        Ok(())
    }

    async fn write_data(&mut self, name: &str, file: &Path) -> Result<()> {
        restore(file, &self.data_dir(name)?, None, machines::wall_ms())?;
        Ok(())
    }

    async fn start_joiner(&mut self, name: &str, _admin: &Admin) -> Result<()> {
        if self.members.keys().any(|name| machines::is_upgraded(name)) {
            // A member with the old program can't join a cluster with a raised level.
            machines::upgrade(name);
        }
        let is_known = |other: &&String| {
            *other != name && self.standing(other).is_ok_and(|standing| !standing.must_rejoin)
        };
        let others = self.members.keys().filter(is_known).cloned().collect();
        // A lost directory is not removed: no process uses it again.
        let dir = self.new_path(name);
        self.machines.put(Machine { name: name.to_owned(), dir, others, joins: true });
        self.members.entry(name.to_owned()).or_default();
        self.set_conditions();
        self.start(name).await
    }

    async fn see_off(&mut self, name: &str) -> Result<String> {
        let until = Instant::now() + END;
        while self.is_started(name) && Instant::now() < until {
            self.reap()?;
            sleep(LOOK).await;
        }
        // The member may not have learned of its removal.
        Ok(self.kill(&[name.to_owned()]).await?.pop().unwrap_or_else(|| "ended".to_owned()))
    }
}

impl Bench for SimBench {
    fn members(&self, _host: &str) -> Vec<Reachable> {
        let reachable = |name: &String| Reachable { name: name.clone(), url: url(name) };
        self.members.keys().map(reachable).collect()
    }

    fn names(&self) -> Vec<String> {
        Cluster::names(self)
    }

    fn client(&self, urls: &[&str]) -> Result<Client> {
        Ok(Client::new(urls)?)
    }

    fn control(&self, member: &str) -> Result<Client> {
        self.client_of(&[member.to_owned()])
    }

    fn spawner(&self, _host: &str) -> Result<Spawner> {
        Ok(Spawner(None))
    }

    fn nodes(&self) -> Vec<Arc<dyn Node>> {
        self.nodes.iter().map(|node| Arc::clone(node) as Arc<dyn Node>).collect()
    }

    fn ready(&mut self, within: Duration) -> BoxFuture<'_, Result<()>> {
        Box::pin(cluster::ready(self, within))
    }

    fn exits(&mut self, now_ns: u64) -> BoxFuture<'_, Vec<Exit>> {
        Box::pin(async move {
            if let Err(error) = self.reap() {
                eprintln!("{error:#}");
            }
            std::mem::take(&mut self.exits).into_iter().map(|exit| Exit { time_ns: now_ns, ..exit }).collect()
        })
    }
}
