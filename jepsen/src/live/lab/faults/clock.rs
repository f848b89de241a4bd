//! Faults of wall clocks.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::live::lab::Lab;

/// Time limit until a member reads its clock.
const NOTICE: Duration = Duration::from_secs(2);

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
        let begun = Instant::now();
        let mut evidence = Vec::new();
        for (name, before) in before {
            let read = loop {
                let read = self.member(name)?.outside.altered().clock.saturating_sub(before);
                if read > 0 || begun.elapsed() > NOTICE {
                    break read;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            };
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
