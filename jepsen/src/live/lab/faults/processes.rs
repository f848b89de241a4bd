//! Faults of processes: kill, pause, rolling restart and upgrade, transfer of leadership.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::Signal;

use crate::cluster::{Cluster as _, shown};
use crate::live::lab::Lab;

/// Time limit of a graceful end.
const GRACE: Duration = Duration::from_secs(20);
/// Time limit of a member's return.
const RETURN: Duration = Duration::from_secs(40);
/// Time limit until the feature level of an upgraded cluster rises.
const RISE: Duration = Duration::from_secs(10);
/// Time limit until a stopped process rests.
const STOP: Duration = Duration::from_secs(1);

impl Lab {
    pub(in crate::live::lab) async fn pause(&mut self, members: &[String]) -> Result<Vec<String>> {
        self.reap()?;
        let mut evidence = Vec::new();
        for name in members {
            let member = self.member_mut(name)?;
            member.signal(Signal::STOP)?;
            member.is_paused = member.is_started();
        }
        for name in members {
            let Some(id) = self.member(name)?.process_id() else { continue };
            let begun = Instant::now();
            while state(id) != Some('T') && begun.elapsed() < STOP {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if state(id) == Some('T') {
                evidence.push(format!("{name}: process {id} is stopped"));
            }
        }
        Ok(evidence)
    }

    pub(in crate::live::lab) fn resume(&mut self, members: &[String]) -> Result<Vec<String>> {
        for name in members {
            // A member may be gone meanwhile.
            let Ok(member) = self.member_mut(name) else { continue };
            member.is_paused = false;
            member.signal(Signal::CONT)?;
        }
        Ok(vec![format!("{} continue", members.join(" "))])
    }

    /// Restarts members gracefully, one after the other. With `upgrades`, each gets the program of the next
    /// feature level, from which there is no way back: later upgrades are restarts.
    pub(in crate::live::lab) async fn restart(
        &mut self,
        members: &[String],
        upgrades: bool,
    ) -> Result<Vec<String>> {
        let mut evidence = Vec::new();
        for name in members {
            self.reap()?;
            let member = self.member_mut(name)?;
            if !member.is_started() || member.is_paused {
                continue;
            }
            member.signal(Signal::TERM)?;
            let Some(status) = member.wait(GRACE).await? else { continue };
            member.is_upgraded |= upgrades;
            self.note_end(name, status, status.success());
            self.start_member(name)?;
            evidence.push(format!("{name}: {status}"));
            self.ready(RETURN).await?;
        }
        if upgrades {
            evidence.push(format!("feature levels: {}", self.levels().await));
        }
        Ok(evidence)
    }

    /// Feature level of each member. If all have the next one, the cluster's level rises soon.
    async fn levels(&self) -> String {
        let begun = Instant::now();
        let rises = self.members.iter().all(|member| member.is_upgraded);
        loop {
            let shown = shown(self).await;
            let is_complete = shown.len() == self.members.len();
            let has_risen = is_complete && shown.iter().all(|(_, shown)| shown.level > 1);
            if has_risen || !rises || begun.elapsed() > RISE {
                let levels = shown.iter().map(|(name, shown)| format!("{name} {}", shown.level));
                return levels.collect::<Vec<_>>().join(", ");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// State of a process: `T` if it is stopped.
fn state(id: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
