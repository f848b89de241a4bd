//! Faults of disks: full, failing, slow, stalled.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cluster::{Cause, Cluster as _};
use crate::live::lab::Lab;
use crate::live::lab::outside::EIO;

/// Time limit until a member notices a failing disk.
const NOTICE: Duration = Duration::from_secs(2);

impl Lab {
    pub(in crate::live::lab) fn fill_disks(&mut self, members: &[String]) -> Result<Vec<String>> {
        let mut evidence = Vec::new();
        for name in members {
            let member = self.member_mut(name)?;
            member.standing.excuses.insert(Cause::Disk);
            let filled = member.disk.fill()?;
            evidence.push(format!("{name}: {filled} bytes filled"));
        }
        Ok(evidence)
    }

    pub(in crate::live::lab) fn empty_disks(&mut self, members: &[String]) -> Result<Vec<String>> {
        for name in members {
            if let Ok(member) = self.member_mut(name) {
                member.disk.empty()?;
            }
        }
        Ok(vec![format!("{}: disks are emptied", members.join(" "))])
    }

    pub(in crate::live::lab) async fn fail_disks(&mut self, members: &[String]) -> Result<Vec<String>> {
        let mut before = Vec::new();
        for name in members {
            let member = self.member_mut(name)?;
            member.standing.excuses.insert(Cause::Disk);
            before.push((name, member.outside.altered().failed));
            member.outside.set(|injected| injected.fsync_errno = EIO)?;
        }
        let begun = Instant::now();
        let mut evidence = Vec::new();
        for (name, before) in before {
            let failed = loop {
                let failed = self.member(name)?.outside.altered().failed.saturating_sub(before);
                if failed > 0 || begun.elapsed() > NOTICE {
                    break failed;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            };
            if failed > 0 {
                evidence.push(format!("{name}: failed calls of fsync: {failed}"));
            }
        }
        Ok(evidence)
    }

    pub(in crate::live::lab) fn mend_disks(&mut self, members: &[String]) -> Result<Vec<String>> {
        self.reap()?;
        let mut evidence = Vec::new();
        for name in members {
            let Ok(member) = self.member_mut(name) else { continue };
            member.outside.set(|injected| injected.fsync_errno = 0)?;
            let end = if member.is_started() { "runs on" } else { "ended" };
            evidence.push(format!("{name}: {end}"));
        }
        Ok(evidence)
    }

    pub(in crate::live::lab) fn slow_disks(
        &mut self,
        members: &[String],
        fsync_ms: u64,
    ) -> Result<Vec<String>> {
        for name in members {
            let member = self.member_mut(name)?;
            member.delayed_before = member.outside.altered().delayed;
            member.outside.set(|injected| injected.fsync_ms = fsync_ms)?;
        }
        Ok(vec![format!("{}: fsync takes {fsync_ms} ms longer", members.join(" "))])
    }

    pub(in crate::live::lab) fn hasten_disks(&mut self, members: &[String]) -> Result<Vec<String>> {
        let mut evidence = Vec::new();
        for name in members {
            let Ok(member) = self.member_mut(name) else { continue };
            member.outside.set(|injected| injected.fsync_ms = 0)?;
            let delayed = member.outside.altered().delayed.saturating_sub(member.delayed_before);
            if delayed > 0 {
                evidence.push(format!("{name}: delayed calls of fsync: {delayed}"));
            }
        }
        Ok(evidence)
    }

    pub(in crate::live::lab) fn stall_disks(&mut self, members: &[String]) -> Result<Vec<String>> {
        let mut evidence = Vec::new();
        for name in members {
            self.member_mut(name)?.disk.freeze()?;
            evidence.push(format!("{name}: disk is frozen"));
        }
        Ok(evidence)
    }

    pub(in crate::live::lab) fn thaw_disks(&mut self, members: &[String]) -> Result<Vec<String>> {
        for name in members {
            if let Ok(member) = self.member_mut(name) {
                member.disk.thaw()?;
            }
        }
        Ok(vec![format!("{}: disks are thawed", members.join(" "))])
    }
}
