//! Faults: begin and end of each kind that the simulation knows.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result};
use ipam_api::Problem;
use ipam_api::backup::check;
use ipam_api::client::Call;
use ipam_raft::simulation::{DiskFault, cut_power, faulty_calls, set_disk};
use tokio::time::sleep;

use super::bench::{CLIENT_HOST, SimBench};
use super::machines::{self, Reason, WrongClock};
use super::supervisor::Command;
use super::throttle::Throttle;
use crate::cluster::{self, BackupFile, Cause, Cluster, Costs, Intensity};
use crate::nemesis::{Fault, Kind, Link, Moment};

/// Nemeses whose faults the simulation knows.
pub const NEMESES: &[&str] = &[
    "partition",
    "isolate-client",
    "packets",
    "kill",
    "rolling-kill",
    "power",
    "full-disk",
    "failing-disk",
    "slow-disk",
    "stalled-disk",
    "clock",
    "corruption",
    "wipe",
    "membership",
    "transfer",
    "pause",
    "cpu",
    "upgrade",
    "restore",
    "costly",
    "agents",
    "nodes",
    "probes",
];
/// Longest delay of a message without a fault. It exceeds a tick, so that messages of one tick can arrive in
/// different ones.
pub(super) const DELAY_MAX: Duration = Duration::from_millis(6);
/// Delay of a frame that is sent again, since it was lost, damaged or out of order.
const AGAIN: Duration = Duration::from_millis(200);
/// Time limit of a backup.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest time from a start to the second power cut, in milliseconds.
const START_MS: usize = 400;

impl SimBench {
    pub(super) async fn begin_fault(&mut self, fault: &Fault) -> Result<Vec<String>> {
        match &fault.kind {
            Kind::Kill { members } => self.kill(members).await,
            Kind::Power { members, moment, .. } => self.cut_power(members, *moment).await,
            Kind::Corrupt { members, corruption } => cluster::corrupt(self, members, *corruption).await,
            Kind::Wipe { members } => cluster::wipe(self, members).await,
            Kind::Membership { change } => cluster::change(self, change).await,
            Kind::TransferLeader { to } => cluster::transfer(self, to).await,
            Kind::FullDisk { members } | Kind::FailingDisk { members } => {
                for name in members {
                    self.standing_mut(name)?.excuses.insert(Cause::Disk);
                }
                self.set_conditions();
                Ok(Vec::new())
            }
            Kind::SlowDisk { .. } | Kind::StalledDisk { .. } => {
                self.set_conditions();
                Ok(Vec::new())
            }
            Kind::Partition { links } => {
                self.set_conditions();
                Ok(vec![format!("cut links: {}", links.iter().filter(|link| self.is_link(link)).count())])
            }
            Kind::Packets { hosts, .. } => {
                self.set_conditions();
                Ok(vec![format!("late hosts: {}", hosts.join(" "))])
            }
            Kind::Clock { .. } => {
                self.set_conditions();
                Ok(Vec::new())
            }
            Kind::Pause { members } => {
                self.reap()?;
                let started: Vec<&String> = members.iter().filter(|name| self.is_started(name)).collect();
                for name in &started {
                    machines::pause(name, Reason::Signal);
                    self.set_paused(name, true);
                }
                // The evidence follows at the end: the turns that the tasks of these members did not get.
                Ok(Vec::new())
            }
            Kind::Cpu { members, percent } => {
                self.throttle = Some(Throttle::begin(members.clone(), *percent));
                Ok(Vec::new())
            }
            Kind::Restart { members } => cluster::restart(self, members, false).await,
            Kind::Upgrade { members } => cluster::restart(self, members, true).await,
            Kind::Restore => self.back_up().await,
            Kind::Costly { cost, clients } => {
                let all =
                    (0..*clients).map(|_| self.client_of(&Cluster::names(self))).collect::<Result<_>>()?;
                self.costs =
                    Costs::begin(*cost, all, Intensity::SIMULATED, |task| tokio::spawn(task).abort_handle());
                Ok(vec![format!("clients: {clients}")])
            }
            Kind::Agents { hosts } => Ok(self.kill_agents(hosts).await),
            Kind::Nodes { hosts } => self.lose_nodes(hosts).await,
            Kind::BlindProbes { hosts } => {
                self.dropped_before = self.lan.dropped();
                self.lan.set_blind(hosts, true);
                // The evidence follows at the end: the dropped frames.
                Ok(Vec::new())
            }
            Kind::ForeignStation { addresses } => match self.add_station(usize::from(*addresses)).await {
                // Without an answer of a server, the station has no effect.
                Err(error) if error.is::<Problem>() => Ok(Vec::new()),
                done => done,
            },
        }
    }

    /// Writes a backup; the evidence has its revision.
    async fn back_up(&mut self) -> Result<Vec<String>> {
        let path = self.new_path("backup");
        let call = Call::get("/v1/cluster/backup").within(PATIENCE);
        let mut download = cluster::administrator(self)?.download(&call).await?;
        let mut file = File::create(&path)?;
        while let Some(piece) = download.piece().await? {
            file.write_all(piece.as_ref())?;
        }
        let revision = check(BufReader::new(File::open(&path)?))?.header.revision;
        self.backup = Some(BackupFile { path, revision });
        Ok(vec![format!("backup-revision={revision}")])
    }

    pub(super) async fn end_fault(&mut self, fault: &Fault) -> Result<Vec<String>> {
        self.reap()?;
        let mut evidence = Vec::new();
        match &fault.kind {
            Kind::Pause { members } => {
                for name in members {
                    self.set_paused(name, false);
                    let turns = machines::resume(name, Reason::Signal);
                    if turns > 0 {
                        evidence.push(format!("{name}: turns without a process: {turns}"));
                    }
                }
            }
            Kind::Cpu { .. } => {
                evidence.extend(self.throttle.take().and_then(|throttle| throttle.evidence()))
            }
            Kind::Restore => {
                let backup = self.backup.take().context("there is no backup")?;
                evidence.extend(cluster::restore(self, &backup).await?);
            }
            Kind::Costly { .. } => evidence.extend(std::mem::take(&mut self.costs).evidence()),
            Kind::Partition { links } => self.mend(links),
            Kind::FullDisk { members }
            | Kind::FailingDisk { members }
            | Kind::SlowDisk { members, .. }
            | Kind::StalledDisk { members } => {
                for name in members {
                    let calls = self.data_dir(name).map_or(0, |dir| faulty_calls(&dir));
                    if calls > 0 {
                        evidence.push(format!("{name}: calls that the disk changed: {calls}"));
                    }
                }
            }
            Kind::Clock { members, .. } => {
                for name in members.iter().filter(|name| self.is_started(name)) {
                    let difference_ms = machines::clock_difference_ms(name);
                    if difference_ms != 0 {
                        evidence.push(format!("{name}: its clock differs by {difference_ms} ms"));
                    }
                }
            }
            Kind::Agents { hosts } => evidence.extend(self.start_agents(hosts).await?),
            Kind::Nodes { hosts } => evidence.extend(self.boot_nodes(hosts).await?),
            Kind::BlindProbes { hosts } => {
                self.lan.set_blind(hosts, false);
                let dropped = self.lan.dropped().saturating_sub(self.dropped_before);
                if dropped > 0 {
                    evidence.push(format!("{dropped} frames dropped"));
                }
            }
            Kind::ForeignStation { .. } => self.remove_station(),
            _ => {}
        }
        self.set_conditions();
        Ok(evidence)
    }

    /// Sets links, delays, disks and clocks by the active faults.
    pub(super) fn set_conditions(&mut self) {
        let active = self.active.clone();
        for fault in &active {
            if let Kind::Partition { links } = &fault.kind {
                self.cut(links);
            }
        }
        let hosts: Vec<&str> = self.hosts.iter().map(String::as_str).chain([CLIENT_HOST]).collect();
        for (at, one) in hosts.iter().enumerate() {
            for other in hosts.iter().skip(at + 1) {
                let delays = active.iter().filter_map(|fault| late(&fault.kind, one, other));
                let longest = delays.max().unwrap_or(DELAY_MAX);
                let delay = Command::Delay((*one).to_owned(), (*other).to_owned(), longest);
                self.supervisor.command(delay);
            }
        }
        for name in self.names() {
            let of_member = || active.iter().rev().filter(|fault| fault.kind.touched().contains(&name));
            if let Ok(dir) = self.data_dir(&name) {
                set_disk(&dir, of_member().find_map(|fault| disk_fault(&fault.kind)));
            }
            machines::set_clock(&name, of_member().find_map(|fault| wrong_clock(&fault.kind)));
        }
    }

    /// Returns true for a link between hosts of the simulation.
    pub(super) fn is_link(&self, link: &Link) -> bool {
        [&link.from, &link.to].iter().all(|name| *name == CLIENT_HOST || self.hosts.contains(*name))
    }

    async fn cut_power(&mut self, members: &[String], moment: Moment) -> Result<Vec<String>> {
        let mut evidence = self.cut_now(members).await?;
        if moment == Moment::Starting {
            for name in members {
                if !self.standing(name)?.must_rejoin {
                    self.start(name).await?;
                }
            }
            let pause = self.random.below(START_MS);
            sleep(Duration::from_millis(pause as u64)).await;
            evidence.extend(self.cut_now(members).await?);
        }
        Ok(evidence)
    }

    async fn cut_now(&mut self, members: &[String]) -> Result<Vec<String>> {
        self.kill(members).await?;
        let mut evidence = Vec::new();
        for name in members {
            let dir = self.data_dir(name)?;
            machines::boot(&dir);
            let lost = cut_power(&dir).with_context(|| dir.display().to_string())?;
            evidence.push(format!("{name} has no power; lost pages: {lost}"));
        }
        Ok(evidence)
    }
}

/// Fault of a disk by a fault of its member.
fn disk_fault(kind: &Kind) -> Option<DiskFault> {
    match kind {
        Kind::FullDisk { .. } => Some(DiskFault::Full),
        Kind::FailingDisk { .. } => Some(DiskFault::Failing),
        Kind::SlowDisk { fsync_ms, .. } => Some(DiskFault::Slow(Duration::from_millis(*fsync_ms))),
        Kind::StalledDisk { .. } => Some(DiskFault::Stalled),
        _ => None,
    }
}

/// Wall clock by a fault of its member.
fn wrong_clock(kind: &Kind) -> Option<WrongClock> {
    match *kind {
        Kind::Clock { shift_ms, drift_ppm, .. } => Some(WrongClock { shift_ms, drift_ppm }),
        _ => None,
    }
}

/// Longest delay of messages between two hosts by a fault of one of them.
fn late(kind: &Kind, one: &str, other: &str) -> Option<Duration> {
    let Kind::Packets {
        hosts,
        delay_ms,
        jitter_ms,
        loss_percent,
        reorder_percent,
        corrupt_percent,
        duplicate_percent: _,
    } = kind
    else {
        return None;
    };
    let is_late = hosts.iter().any(|host| host == one || host == other);
    let is_lossy = [loss_percent, reorder_percent, corrupt_percent].iter().any(|percent| **percent > 0);
    let delay = Duration::from_millis(delay_ms + jitter_ms) + if is_lossy { AGAIN } else { Duration::ZERO };
    is_late.then_some(delay.max(DELAY_MAX))
}
