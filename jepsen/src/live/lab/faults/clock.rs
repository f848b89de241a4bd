//! Faults of wall clocks.

use std::time::Duration;

use anyhow::Result;
use ipam_api::client::Call;

use crate::live::lab::Lab;

/// Time limit until a member reads its clock.
const NOTICE: Duration = Duration::from_secs(1);

impl Lab {
    pub(in crate::live::lab) async fn set_clocks(
        &mut self,
        members: &[String],
        shift_ms: i64,
        drift_ppm: i64,
    ) -> Result<Vec<String>> {
        let mut before = Vec::new();
        for name in members {
            let member = self.member_mut(name)?;
            before.push((name, member.outside.altered().clock));
            member.outside.set(|injected| {
                injected.clock_shift_ms = shift_ms;
                injected.clock_drift_ppm = drift_ppm;
            })?;
        }
        let mut evidence = Vec::new();
        for (name, before) in before {
            let member = self.member(name)?;
            let read = || member.outside.altered().clock.saturating_sub(before);
            if read() == 0 && member.is_started() && !member.is_paused {
                // Followers seldom read their clocks; metrics contain the time.
                let _answer = member.control()?.send(Call::get("/metrics").within(NOTICE)).await;
            }
            let read = read();
            if read > 0 {
                evidence.push(format!("{name}: altered reads of the clock: {read}"));
            }
        }
        Ok(evidence)
    }

    pub(in crate::live::lab) fn reset_clocks(&mut self, members: &[String]) -> Result<Vec<String>> {
        let mut evidence = Vec::new();
        for name in members {
            let Ok(member) = self.member_mut(name) else { continue };
            member.outside.set(|injected| {
                injected.clock_shift_ms = 0;
                injected.clock_drift_ppm = 0;
            })?;
            evidence.push(format!("{name}: altered reads in all: {}", member.outside.altered().clock));
        }
        Ok(evidence)
    }
}
