//! Limit of CPU time: members get turns in a share of each period.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::machines::{self, Reason};

/// Period of the scheduler.
const PERIOD: Duration = Duration::from_millis(100);

/// Members with little CPU time. Dropping the value ends the limit.
#[derive(Debug)]
pub(super) struct Throttle {
    members: Vec<String>,
    task: AbortHandle,
    turns: Arc<AtomicU64>,
}

impl Throttle {
    /// Begins a limit, as a task of the caller's runtime.
    pub(super) fn begin(members: Vec<String>, percent: u8) -> Self {
        let turns = Arc::new(AtomicU64::new(0));
        let (all, counted) = (members.clone(), Arc::clone(&turns));
        let task = tokio::spawn(async move {
            let share = PERIOD * u32::from(percent) / 100;
            loop {
                sleep(share).await;
                all.iter().for_each(|name| machines::pause(name, Reason::Cpu));
                sleep(PERIOD.saturating_sub(share)).await;
                for name in &all {
                    counted.fetch_add(machines::resume(name, Reason::Cpu), Ordering::Relaxed);
                }
            }
        });
        Self { members, task: task.abort_handle(), turns }
    }

    /// Evidence of the limit so far; none if no task needed more turns.
    pub(super) fn evidence(&self) -> Option<String> {
        let turns = self.turns.load(Ordering::Relaxed);
        (turns > 0).then(|| format!("{}: turns outside their share: {turns}", self.members.join(" ")))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.task.abort();
        for name in &self.members {
            machines::resume(name, Reason::Cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use ipam_raft::simulation::pausable;

    use super::super::machines::tests::simulate;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_limited_member_gets_its_share_of_turns() {
        simulate();
        drop(machines::begin("m1"));
        let turns = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&turns);
        tokio::spawn(pausable(async move {
            loop {
                sleep(Duration::from_millis(1)).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }));
        let throttle = Throttle::begin(vec!["m1".to_owned()], 20);
        sleep(Duration::from_secs(1)).await;
        // Each period has 20 turns of its share, and one at its begin.
        let had = turns.load(Ordering::Relaxed);
        assert!((180..=220).contains(&had), "{had}");
        assert!(throttle.evidence().is_some_and(|evidence| evidence.starts_with("m1: turns")));
        drop(throttle);
        sleep(Duration::from_secs(1)).await;
        assert!(turns.load(Ordering::Relaxed) >= had + 990);
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_that_wants_no_turn_is_no_evidence() {
        simulate();
        drop(machines::begin("m1"));
        let throttle = Throttle::begin(vec!["m1".to_owned()], 20);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(throttle.evidence(), None);
    }
}
