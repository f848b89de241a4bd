//! The progress of a start: for clients that wait, and for the log.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::sync::held;

/// Interval of log lines about a long start.
const SAY: Duration = Duration::from_secs(2);

/// The progress of a start. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    step: Mutex<Step>,
    rows: AtomicU64,
}

#[derive(Debug)]
struct Step {
    what: &'static str,
    begun: Instant,
    said: Instant,
}

impl Default for Step {
    fn default() -> Self {
        Self { what: "its configuration is read", begun: Instant::now(), said: Instant::now() }
    }
}

impl Progress {
    /// Begins another step; `what` is a phrase after "it is starting: ".
    pub(crate) fn begin(&self, what: &'static str) {
        let mut step = held(&self.0.step);
        tracing::debug!(done = step.what, took_ms = step.begun.elapsed().as_millis(), "a step of the start");
        *step = Step { what, begun: Instant::now(), said: Instant::now() };
        self.0.rows.store(0, Relaxed);
    }

    /// Counts rows that were read, and logs a long step at intervals.
    pub(crate) fn more(&self, rows: u64) {
        self.0.rows.fetch_add(rows, Relaxed);
        let mut step = held(&self.0.step);
        if step.said.elapsed() >= SAY {
            step.said = Instant::now();
            drop(step);
            tracing::info!("starting: {}", self.tell());
        }
    }

    /// Number of rows read in this step.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.0.rows.load(Relaxed)
    }

    /// Progress as a phrase after "it is starting: ".
    #[must_use]
    pub fn tell(&self) -> String {
        let step = held(&self.0.step);
        let (what, seconds) = (step.what, step.begun.elapsed().as_secs());
        drop(step);
        match self.rows() {
            0 => format!("{what}, for {seconds} s"),
            rows => format!("{what}, {rows} rows so far, for {seconds} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_done_and_how_much_of_it() {
        let progress = Progress::default();
        progress.begin("the log is opened");
        assert_eq!(progress.tell(), "the log is opened, for 0 s");
        progress.begin("rows are read");
        progress.more(5);
        assert_eq!(progress.tell(), "rows are read, 5 rows so far, for 0 s");
        progress.begin("the index is made");
        assert_eq!(progress.tell(), "the index is made, for 0 s");
    }
}
