//! Pause of processes by signals.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::Signal;

use crate::cluster::Cluster as _;
use crate::live::lab::Lab;

/// Time limit until a process is stopped.
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
            // A member may have been removed meanwhile.
            let Ok(member) = self.member_mut(name) else { continue };
            member.is_paused = false;
            member.signal(Signal::CONT)?;
        }
        Ok(vec![format!("{} continue", members.join(" "))])
    }
}

/// State of a process: `T` if it is stopped.
fn state(id: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
