//! Status of each task, as this member ran it.

use std::sync::{Mutex, PoisonError};

use ipam_api::reclaim::Task as Status;
use ipam_api::time::Timestamp;
use tokio::time::Instant;

use super::task::Task;

/// Result of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// True if everything that was due is done.
    pub(super) is_complete: bool,
    /// Number of addresses and records that it freed.
    pub(super) reclaimed: u64,
}

impl Run {
    /// Run that has freed nothing.
    pub(super) fn of(is_complete: bool) -> Self {
        Self { is_complete, reclaimed: 0 }
    }
}

/// Status of all tasks.
#[derive(Debug)]
pub struct Statuses(Mutex<Vec<Status>>);

impl Default for Statuses {
    /// Tasks that have not run yet.
    fn default() -> Self {
        Self(Mutex::new(Task::ALL.map(blank).into()))
    }
}

impl Statuses {
    /// Status of each task, for readers.
    #[must_use]
    pub fn shown(&self) -> Vec<Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the status of a task that is not in `Task::ALL`, or adds it.
    #[cfg(any(feature = "kubernetes", feature = "meridio"))]
    pub fn put(&self, new: Status) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter_mut().find(|status| status.name == new.name) {
            Some(status) => *status = new,
            None => all.push(new),
        }
    }

    /// Notes one run of a task.
    pub(super) fn note(&self, task: Task, begun: Instant, run: Run) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(status) = all.iter_mut().find(|status| status.name == task.name()) else { return };
        let (took, now) = (begun.elapsed(), Timestamp::now());
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        status.runs += 1;
        status.reclaimed += run.reclaimed;
        status.started_at = Some(Timestamp(now.0.saturating_sub(took_ms)));
        status.duration_us = u64::try_from(took.as_micros()).ok();
        match run.is_complete {
            true => status.succeeded_at = Some(now),
            false => status.failures += 1,
        }
    }
}

fn blank(task: Task) -> Status {
    Status {
        name: task.name().to_owned(),
        purpose: task.purpose().to_owned(),
        interval_ms: u64::try_from(task.interval().as_millis()).unwrap_or(u64::MAX),
        runs: 0,
        failures: 0,
        reclaimed: 0,
        started_at: None,
        succeeded_at: None,
        duration_us: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_and_failures_keep_the_last_success() {
        let statuses = Statuses::default();
        statuses.note(Task::Expire, Instant::now(), Run { is_complete: true, reclaimed: 3 });
        let first = statuses.shown().remove(0);
        statuses.note(Task::Expire, Instant::now(), Run::of(false));
        let second = statuses.shown().remove(0);
        assert_eq!((second.runs, second.failures, second.reclaimed), (2, 1, 3));
        assert!(first.succeeded_at.is_some() && second.succeeded_at == first.succeeded_at);
        assert!(statuses.shown().iter().skip(1).all(|other| other.runs == 0));
    }
}
