//! Readiness: members that have ended are started again, and all are waited for.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::future::join_all;
use ipam_api::client::Call;

use super::cluster::Lab;
use crate::nemesis::Kind;

/// Exit code of a member whose data directory is damaged.
const DAMAGED: i32 = 4;
/// Starts of a member until it counts as lost.
const STARTS_MAX: usize = 3;
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Time limit of one answer.
const PATIENCE: Duration = Duration::from_millis(500);

impl Lab {
    /// Starts members that have ended, and waits until all are ready, except for those that an active fault
    /// holds down.
    ///
    /// # Errors
    /// If some are not ready in time; the error has the ends of their logs.
    pub async fn ready(&mut self, limit: Duration) -> Result<()> {
        let until = Instant::now() + limit;
        let ends = self.ends.len();
        loop {
            self.reap()?;
            self.still_starts(ends)?;
            self.start_stopped().await?;
            if self.active.is_empty() {
                self.rejoin_lost(until).await?;
            }
            let late = self.unready().await;
            if late.is_empty() {
                break;
            }
            if Instant::now() > until {
                let reasons: Vec<String> = late.iter().map(|(name, why)| format!("{name} ({why})")).collect();
                let names: Vec<String> = late.into_iter().map(|(name, _)| name).collect();
                let seconds = limit.as_secs();
                bail!("not ready within {seconds} s: {}{}", reasons.join(", "), self.tails(&names));
            }
            tokio::time::sleep(LOOK).await;
        }
        if self.active.is_empty() {
            self.members.iter_mut().for_each(|member| member.excuses.clear());
        }
        Ok(())
    }

    /// Fails if a member has ended again and again since `from`, without a fault that explains it.
    fn still_starts(&self, from: usize) -> Result<()> {
        for name in self.member_names() {
            let ends = self.ends.iter().skip(from).filter(|end| end.process == name && !end.is_expected);
            if ends.count() >= STARTS_MAX {
                bail!("{name} doesn't start{}", self.tails(std::slice::from_ref(&name)));
            }
        }
        Ok(())
    }

    /// Members that are not ready, with the reasons.
    async fn unready(&self) -> Vec<(String, String)> {
        let ask = self.members.iter().filter(|member| !self.is_held_down(&member.name)).map(async |member| {
            let why = match member.control() {
                Err(error) => format!("{error:#}"),
                Ok(client) => match client.send(Call::get("/readyz").within(PATIENCE)).await {
                    Ok(_) => return None,
                    Err(problem) => problem.detail,
                },
            };
            Some((member.name.clone(), why))
        });
        join_all(ask).await.into_iter().flatten().collect()
    }

    /// Notes the ends of processes.
    pub(super) fn reap(&mut self) -> Result<()> {
        for at in 0..self.members.len() {
            let Some(member) = self.members.get_mut(at) else { continue };
            let Some(status) = member.ended()? else { continue };
            let is_expected =
                member.is_shot || status.code().is_some_and(|code| member.excuses.contains(&code));
            member.must_rejoin |= status.code() == Some(DAMAGED);
            let name = member.name.clone();
            self.note_end(&name, status, is_expected);
        }
        Ok(())
    }

    /// Starts the stopped members that no active fault holds down and that have their data.
    pub(super) async fn start_stopped(&mut self) -> Result<()> {
        for name in self.member_names() {
            let held = self.is_held_down(&name);
            let member = self.member_mut(&name)?;
            if !held && !member.is_started() && !member.must_rejoin && member.cut.is_none() {
                self.start_member(&name)?;
            }
        }
        Ok(())
    }

    /// True if an active fault keeps a member from running.
    pub(super) fn is_held_down(&self, name: &str) -> bool {
        self.active.iter().any(|fault| match &fault.kind {
            Kind::Kill { members }
            | Kind::Power { members, .. }
            | Kind::Wipe { members }
            | Kind::Corrupt { members, .. }
            | Kind::FailingDisk { members }
            | Kind::FullDisk { members }
            | Kind::StalledDisk { members } => members.iter().any(|member| member == name),
            _ => false,
        })
    }

    /// Kills members at the same time, and notes their ends as expected.
    pub(super) async fn kill_all(&mut self, names: &[String]) -> Result<Vec<String>> {
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

    /// Kills a member, and notes its end as expected.
    pub(super) async fn kill(&mut self, name: &str) -> Result<Option<String>> {
        Ok(self.kill_all(&[name.to_owned()]).await?.pop())
    }
}
