//! Kill points: steps of the agent at which a test kills this process.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use clap::ValueEnum;
use rustix::process::{Signal, getpid, kill_process};

/// Point at which this process is killed; 0 for none.
static ARMED: AtomicU8 = AtomicU8::new(0);

/// Points before and after changes of the host's configuration until this process is killed; 0 for none.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// Kills this process at a point before or after a change of the host's configuration, counted from 1.
pub fn kill_at_change(point: u32) {
    CHANGES.store(point, Ordering::Relaxed);
}

/// Notes that the process is before or after a change of the host's configuration.
pub(crate) fn at_change() {
    let counted = CHANGES.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if counted == Ok(1) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// Step of the agent at which it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[repr(u8)]
pub enum KillPoint {
    /// An ADD was read, and isn't recorded.
    AddRead = 1,
    /// An ADD is recorded, and wasn't sent.
    AddRecorded,
    /// The outcome of an ADD is recorded, and the plugin has no answer.
    Attached,
    /// A DEL was read, and isn't recorded.
    DelRead,
    /// A DEL is on disk, and wasn't sent.
    DelSynced,
    /// The cluster has executed a DEL, and the journal has no record of it.
    DelExecuted,
    /// The new journal is on disk, beside the old one.
    JournalWritten,
    /// The new journal has replaced the old one.
    JournalReplaced,
    /// The secret of a join is on disk, and wasn't sent.
    SecretWritten,
    /// The cluster has accepted the secret, and it isn't in its place.
    Joined,
}

impl KillPoint {
    /// Kills this process once it reaches the point.
    pub fn arm(self) {
        ARMED.store(self as u8, Ordering::Relaxed);
    }

    /// Notes that the process is at the point.
    pub(crate) fn reach(self) {
        if ARMED.load(Ordering::Relaxed) == self as u8 {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
