//! Execution of faults: each kind has a file in `faults/`.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::BoxFuture;

use super::cluster::Lab;
use crate::nemesis::{Fault, Kind, System, View};

/// Time limit of the recovery after the last active fault is healed.
const RECOVERY: Duration = Duration::from_secs(60);

impl System for Lab {
    fn view(&mut self) -> BoxFuture<'_, View> {
        Box::pin(self.look())
    }

    fn inject<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async move {
            // A fault is active before it is complete, so that a failed injection can be healed.
            self.active.push(fault.clone());
            let evidence = self.begin(fault).await;
            if evidence.is_err() || ends_by_itself(&fault.kind) {
                self.forget(fault);
            }
            evidence.with_context(|| format!("{:?} can't be injected", fault.kind))
        })
    }

    fn heal<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async move {
            self.forget(fault);
            let evidence = self.end(fault).await;
            let mut evidence = evidence.with_context(|| format!("{:?} can't be healed", fault.kind))?;
            if self.active.is_empty() {
                self.ready(RECOVERY).await.with_context(|| format!("after {:?}", fault.kind))?;
            } else {
                self.reap()?;
                self.start_stopped().await?;
            }
            evidence.append(&mut self.notes);
            Ok(evidence)
        })
    }
}

/// True for a kind that is complete when its injection returns.
fn ends_by_itself(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Restart { .. } | Kind::Upgrade { .. } | Kind::Membership { .. } | Kind::TransferLeader { .. }
    )
}

impl Lab {
    fn forget(&mut self, fault: &Fault) {
        if let Some(at) = self.active.iter().position(|active| active == fault) {
            self.active.remove(at);
        }
    }

    async fn begin(&mut self, fault: &Fault) -> Result<Vec<String>> {
        match &fault.kind {
            Kind::Partition { links } => Ok(self.cut_links(links)),
            Kind::Packets { hosts, .. } => Ok(self.impair(hosts, &fault.kind)),
            Kind::Kill { members } => self.kill_all(members).await,
            Kind::Pause { members } => self.pause(members).await,
            Kind::Restart { members } => self.restart(members, false).await,
            // A program that ships has no next version, so each member restarts.
            Kind::Upgrade { members } => {
                let upgrades = self.plan.programs.know_next_level().await;
                self.restart(members, upgrades).await
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
            Kind::Corrupt { members, corruption } => self.corrupt(members, *corruption).await,
            Kind::Wipe { members } => self.wipe(members).await,
            Kind::Membership { change } => self.change(change).await,
            Kind::TransferLeader { to } => self.transfer(to).await,
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
            Kind::Restore => self.restore().await,
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
