//! Clock of the server: the machine's, unless a test has stopped it.

use jiff::Timestamp;

#[derive(Debug, Default)]
pub(crate) struct Clock {
    stopped: Option<Timestamp>,
}

impl Clock {
    pub(crate) fn stop_at(&mut self, time: Timestamp) {
        self.stopped = Some(time);
    }

    /// Present second. Objects have no fractions of it.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.stopped.unwrap_or_else(Timestamp::now);
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    /// Present second as objects contain it, RFC 3339.
    pub(crate) fn stamp(&self) -> String {
        self.now().to_string()
    }
}
