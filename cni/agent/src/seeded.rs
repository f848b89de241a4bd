//! Seeded bugs of the agent: defects that `ipam-jepsen mutants` turns on, to prove that it detects them.
//!
//! A seeded bug is a start option of the test build (`--test-option bug-NAME`) and off unless given. Without
//! the feature `testing`, [`SeededBug::is_on`] is constantly false, and the compiler removes the defect.

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicU8, Ordering};

/// The bugs that are on in this process, one bit each.
#[cfg(feature = "testing")]
static ON: AtomicU8 = AtomicU8::new(0);

/// A defect that a test can turn on in the whole process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "testing", derive(clap::ValueEnum))]
pub enum SeededBug {
    /// The agent forgets a DEL that the servers have not answered.
    #[cfg_attr(feature = "testing", value(name = "bug-lost-del"))]
    LostDel,
    /// The agent stamps a request with the time of its arrival, not with the start of the plugin.
    #[cfg_attr(feature = "testing", value(name = "bug-restamped-request"))]
    RestampedRequest,
}

impl SeededBug {
    /// Returns true in a test build that was started with this bug.
    #[must_use]
    #[inline]
    pub fn is_on(self) -> bool {
        #[cfg(feature = "testing")]
        return ON.load(Ordering::Relaxed) & (1 << self as u8) != 0;
        #[cfg(not(feature = "testing"))]
        false
    }

    /// Turns the bug on until the process ends.
    #[cfg(feature = "testing")]
    pub fn turn_on(self) {
        ON.fetch_or(1 << self as u8, Ordering::Relaxed);
    }
}
