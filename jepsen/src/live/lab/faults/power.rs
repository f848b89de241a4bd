//! Power cuts of members.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::Signal;

use crate::cluster::{Cause, Cluster as _};
use crate::live::lab::Lab;
use crate::nemesis::{Cut, Moment};

/// Time limit of waiting for a snapshot.
const SNAPSHOT: Duration = Duration::from_secs(3);
/// Longest time in which processes see their disk fail, in milliseconds.
const AGONY_MS: usize = 40;
/// Longest time from a start to the second cut, in milliseconds.
const START_MS: usize = 400;

impl Lab {
    pub(in crate::live::lab) async fn cut_power(
        &mut self,
        members: &[String],
        cut: Cut,
        moment: Moment,
    ) -> Result<Vec<String>> {
        let mut evidence = Vec::new();
        if moment == Moment::Snapshot
            && let Some(name) = self.snapshot_in_progress(members).await
        {
            evidence.push(format!("{name}: a snapshot in progress"));
        }
        evidence.extend(self.cut_now(members, cut).await?);
        if moment == Moment::Starting {
            self.power_on(members).await?;
            for name in members {
                if !self.member(name)?.standing.must_rejoin {
                    self.start_member(name)?;
                }
            }
            tokio::time::sleep(self.milliseconds(START_MS)).await;
            evidence.extend(self.cut_now(members, cut).await?);
        }
        Ok(evidence)
    }

    fn milliseconds(&mut self, most: usize) -> Duration {
        Duration::from_millis(u64::try_from(self.random.below(most)).unwrap_or_default())
    }

    /// Cuts the power of all members that have power, at once.
    async fn cut_now(&mut self, members: &[String], cut: Cut) -> Result<Vec<String>> {
        self.reap()?;
        let mut evidence = Vec::new();
        let mut names = Vec::new();
        for name in members {
            let member = self.member_mut(name)?;
            if member.cut.is_some() {
                continue;
            }
            if member.disk.is_frozen() {
                // The process must not write between the thaw and the cut.
                member.signal(Signal::STOP)?;
                member.disk.thaw()?;
            }
            if member.disk.set_canary().is_err() {
                evidence.push(format!("{name}: no room for a canary"));
            }
            member.standing.excuses.insert(Cause::Disk);
            names.push(name.clone());
        }
        let pause = self.milliseconds(AGONY_MS);
        let victims: Vec<_> = self.members.iter().filter(|member| names.contains(&member.name)).collect();
        let places: Vec<&Path> = victims.iter().map(|member| member.disk.place()).collect();
        let processes: Vec<u32> = victims.iter().filter_map(|member| member.process_id()).collect();
        if cut == Cut::Flushed {
            self.tools.cut(cut, &places, &[])?;
            tokio::time::sleep(pause).await;
        } else {
            self.tools.cut(cut, &places, &processes)?;
        }
        for end in self.kill(&names).await? {
            evidence.push(format!("{end}, no power"));
        }
        for name in &names {
            self.member_mut(name)?.cut = Some(cut);
        }
        evidence.push(format!("disks without power: {}", names.join(" ")));
        Ok(evidence)
    }

    /// Waits until one of the members writes or receives a snapshot, for some seconds at most.
    async fn snapshot_in_progress(&self, members: &[String]) -> Option<String> {
        let begun = Instant::now();
        while begun.elapsed() < SNAPSHOT {
            for member in self.members.iter().filter(|member| members.contains(&member.name)) {
                if has_unfinished_snapshot(&member.data_dir()) {
                    return Some(member.name.clone());
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        None
    }

    /// Restores the power; the disk replays its journal, and the boot id changes.
    pub(in crate::live::lab) async fn power_on(&mut self, members: &[String]) -> Result<Vec<String>> {
        let mut evidence = Vec::new();
        for name in members {
            let Ok(member) = self.member_mut(name) else { continue };
            let Some(cut) = member.cut.take() else { continue };
            member.disk.power_on(cut)?;
            member.boot()?;
            evidence.push(format!("{name}: power on"));
        }
        Ok(evidence)
    }
}

fn has_unfinished_snapshot(data_dir: &Path) -> bool {
    let Ok(files) = fs::read_dir(data_dir.join("snapshot")) else { return false };
    files.flatten().any(|file| file.file_name() != "current")
}
