//! Execution of faults: each kind has a file in `faults/`, or is the same for simulated members.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use ipam_api::client::Client;
use rustix::process::Signal;

use super::cluster::Lab;
use super::member::{Member, Origin};
use crate::cluster::{self, Admin, Cause, Cluster, Standing};
use crate::nemesis::{Fault, Kind, Link};
use crate::random::Random;

/// Hosts with an agent or with clients.
const HOSTS: [&str; 3] = ["c1", "c2", "x1"];
/// Time limit of a graceful end.
const GRACE: Duration = Duration::from_secs(20);
/// Time limit of the end of a removed member.
const END: Duration = Duration::from_secs(15);

impl Cluster for Lab {
    fn names(&self) -> Vec<String> {
        self.member_names()
    }

    fn hosts(&self) -> Vec<String> {
        HOSTS.map(str::to_owned).to_vec()
    }

    fn client_of(&self, names: &[String]) -> Result<Client> {
        let urls: Vec<String> =
            names.iter().map(|name| Ok(self.member(name)?.socket_url())).collect::<Result<_>>()?;
        Ok(Client::new(&urls)?)
    }

    fn data_dir(&self, name: &str) -> Result<PathBuf> {
        Ok(self.member(name)?.data_dir())
    }

    fn standing(&self, name: &str) -> Result<&Standing> {
        Ok(&self.member(name)?.standing)
    }

    fn standing_mut(&mut self, name: &str) -> Result<&mut Standing> {
        Ok(&mut self.member_mut(name)?.standing)
    }

    fn is_started(&self, name: &str) -> bool {
        self.member(name).is_ok_and(Member::is_started)
    }

    fn answers(&self, name: &str) -> bool {
        self.member(name).is_ok_and(|member| member.is_started() && !member.is_paused)
    }

    fn has_power(&self, name: &str) -> bool {
        self.member(name).is_ok_and(|member| member.cut.is_none())
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
        self.ends.iter().filter(|end| end.process == name && !end.is_expected).count()
    }

    fn tails(&self, names: &[String]) -> String {
        Self::tails(self, names)
    }

    fn reap(&mut self) -> Result<()> {
        for at in 0..self.members.len() {
            let Some(member) = self.members.get_mut(at) else { continue };
            let Some(status) = member.ended()? else { continue };
            let is_explained = member.standing.note_end(status.code().map_or(Cause::Other, cause));
            let (name, is_expected) = (member.name.clone(), member.is_shot || is_explained);
            self.note_end(&name, status, is_expected);
        }
        Ok(())
    }

    fn cut(&mut self, links: &[Link]) {
        self.network().cut(links);
    }

    fn mend(&mut self, links: &[Link]) {
        self.network().heal(links);
    }

    fn drop_member(&mut self, name: &str) {
        self.members.retain(|member| member.name != name);
    }

    async fn kill(&mut self, names: &[String]) -> Result<Vec<String>> {
        self.reap()?;
        for name in names {
            self.member_mut(name)?.shoot()?;
        }
        let mut ends = Vec::new();
        for name in names {
            if let Some(status) = self.member_mut(name)?.kill().await? {
                self.note_end(name, status, true);
                ends.push(format!("{name}: {status}"));
            }
        }
        Ok(ends)
    }

    async fn start(&mut self, name: &str) -> Result<()> {
        self.start_member(name)
    }

    async fn stop(&mut self, name: &str) -> Result<Option<String>> {
        let member = self.member_mut(name)?;
        member.signal(Signal::TERM)?;
        let Some(status) = member.wait(GRACE).await? else { return Ok(None) };
        self.note_end(name, status, status.success());
        Ok(Some(status.to_string()))
    }

    fn is_upgraded(&self, name: &str) -> bool {
        self.member(name).is_ok_and(|member| member.is_upgraded)
    }

    fn upgrade(&mut self, name: &str) -> Result<()> {
        self.member_mut(name)?.is_upgraded = true;
        Ok(())
    }

    fn make_founder(&mut self, name: &str) -> Result<()> {
        let member = self.member_mut(name)?;
        member.wipe()?;
        member.origin = Origin::Founder;
        Ok(())
    }

    async fn write_data(&mut self, name: &str, file: &Path) -> Result<()> {
        self.restore_data(name, file).await
    }

    async fn start_joiner(&mut self, name: &str, admin: &Admin) -> Result<()> {
        self.join(name, admin).await
    }

    async fn see_off(&mut self, name: &str) -> Result<String> {
        match self.member_mut(name)?.wait(END).await {
            Ok(Some(status)) => {
                let is_removal = status.code().map(cause) == Some(Cause::Removal);
                self.note_end(name, status, is_removal);
                Ok(status.to_string())
            }
            Ok(None) => Ok("ended before".to_owned()),
            // The member didn't learn of its removal.
            Err(_) => Ok(self.kill(&[name.to_owned()]).await?.pop().unwrap_or_default()),
        }
    }

    async fn begin(&mut self, fault: &Fault) -> Result<Vec<String>> {
        match &fault.kind {
            Kind::Partition { links } => Ok(self.cut_links(links)),
            Kind::Packets { hosts, .. } => Ok(self.impair(hosts, &fault.kind)),
            Kind::Kill { members } => self.kill(members).await,
            Kind::Pause { members } => self.pause(members).await,
            Kind::Restart { members } => cluster::restart(self, members, false).await,
            // A shipped program has no next feature level, so each member is only restarted.
            Kind::Upgrade { members } => {
                let upgrades = self.plan.programs.know_next_level().await;
                cluster::restart(self, members, upgrades).await
            }
            Kind::Power { members, cut, moment } => self.cut_power(members, *cut, *moment).await,
            Kind::FullDisk { members } => self.fill_disks(members),
            Kind::FailingDisk { members } => self.fail_disks(members).await,
            Kind::SlowDisk { members, fsync_ms } => self.slow_disks(members, *fsync_ms),
            Kind::StalledDisk { members } => self.stall_disks(members),
            Kind::Clock { members, shift_ms, drift_ppm } => {
                self.set_clocks(members, *shift_ms, *drift_ppm).await
            }
            Kind::Cpu { members, percent } => self.limit_cpu(members, *percent),
            Kind::Corrupt { members, corruption } => cluster::corrupt(self, members, *corruption).await,
            Kind::Wipe { members } => cluster::wipe(self, members).await,
            Kind::Membership { change } => cluster::change(self, change).await,
            Kind::TransferLeader { to } => cluster::transfer(self, to).await,
            Kind::Restore => self.back_up().await,
            Kind::Costly { cost, clients } => self.begin_costs(*cost, *clients),
            // Nodes are no part of the lab.
            Kind::Agents { .. }
            | Kind::Nodes { .. }
            | Kind::BlindProbes { .. }
            | Kind::ForeignStation { .. } => Ok(Vec::new()),
        }
    }

    async fn end(&mut self, fault: &Fault) -> Result<Vec<String>> {
        match &fault.kind {
            Kind::Partition { links } => Ok(self.heal_links(links)),
            Kind::Packets { hosts, .. } => Ok(self.lift(hosts, &fault.kind)),
            Kind::Pause { members } => self.resume(members),
            Kind::Power { members, .. } => self.power_on(members).await,
            Kind::FullDisk { members } => self.empty_disks(members),
            Kind::FailingDisk { members } => self.mend_disks(members),
            Kind::SlowDisk { members, .. } => self.hasten_disks(members),
            Kind::StalledDisk { members } => self.thaw_disks(members),
            Kind::Clock { members, .. } => self.reset_clocks(members),
            Kind::Cpu { members, .. } => self.release_cpu(members).await,
            Kind::Restore => {
                let backup = self.backup.take().context("there is no backup")?;
                cluster::restore(self, &backup).await
            }
            Kind::Costly { .. } => Ok(self.end_costs()),
            // Nodes are no part of the lab.
            Kind::Agents { .. }
            | Kind::Nodes { .. }
            | Kind::BlindProbes { .. }
            | Kind::ForeignStation { .. } => Ok(Vec::new()),
            // Members return when the lab recovers; some faults end by themselves.
            Kind::Kill { members }
            | Kind::Wipe { members }
            | Kind::Corrupt { members, .. }
            | Kind::Restart { members }
            | Kind::Upgrade { members } => Ok(vec![format!("{} return", members.join(" "))]),
            Kind::Membership { .. } | Kind::TransferLeader { .. } => Ok(Vec::new()),
        }
    }
}

/// Cause of an end with this exit code of the daemon (`deploy/docs/operating.md`).
fn cause(code: i32) -> Cause {
    match code {
        3 => Cause::Disk,
        4 => Cause::Damage,
        5 => Cause::Removal,
        _ => Cause::Other,
    }
}
