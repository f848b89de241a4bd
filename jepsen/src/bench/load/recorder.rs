//! Recorder that all clients of a load share.

use std::cell::RefCell;
use std::time::Duration;

use super::client::Answer;
use super::outcome::Load;

/// Pause of a client after a failure, so that a system that is down is not flooded.
const PAUSE: Duration = Duration::from_millis(10);

/// Recorder of one load. It ignores all calls until it starts.
#[derive(Debug, Default)]
pub(super) struct Recorder(RefCell<Option<Load>>);

impl Recorder {
    /// Begins to record.
    pub(super) fn start(&self) {
        *self.0.borrow_mut() = Some(Load::default());
    }

    /// Stops recording, and returns the load.
    pub(super) fn take(&self) -> Load {
        self.0.borrow_mut().take().unwrap_or_default()
    }

    /// Records a call; returns the pause before the next call of its client.
    pub(super) fn record(&self, result: anyhow::Result<Answer>, latency: Duration) -> Option<Duration> {
        let mut guard = self.0.borrow_mut();
        let mut unused = Load::default();
        let load = guard.as_mut().unwrap_or(&mut unused);
        match result {
            Ok(Answer::Done(operations)) => {
                load.latency.add(latency);
                load.operations += operations;
                None
            }
            Ok(Answer::Refused(pause)) => {
                load.refusals += 1;
                Some(pause)
            }
            Err(error) => {
                load.failures += 1;
                load.first_failure.get_or_insert_with(|| format!("{error:#}"));
                Some(PAUSE)
            }
        }
    }
}
