//! Durable end of the log, shared by its writer and its followers.

use std::sync::{Condvar, Mutex, PoisonError};

use super::marker::LogMark;
use crate::sync::held;
use crate::types::LogId;

/// Notification of durable entries. openraft applies an entry once a majority has it, which may be before
/// this disk has. Rows must not get ahead of the log that proves them, so their thread waits here.
#[derive(Debug, Default)]
pub(in crate::store) struct Durable {
    point: Mutex<Point>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Point {
    log: LogMark,
    snapshot: Option<LogId>,
    ended: bool,
}

impl Durable {
    pub(in crate::store) fn log(&self) -> LogMark {
        held(&self.point).log.clone()
    }

    pub(in crate::store) fn set_log(&self, log: LogMark) {
        held(&self.point).log = log;
        self.changed.notify_all();
    }

    pub(in crate::store) fn set_snapshot(&self, last: Option<LogId>) {
        held(&self.point).snapshot = last;
        self.changed.notify_all();
    }

    /// The log writes nothing more: waiters fail.
    pub(in crate::store) fn end(&self) {
        held(&self.point).ended = true;
        self.changed.notify_all();
    }

    /// Waits until log or snapshot hold everything up to `applied`; false if they never will.
    pub(in crate::store) fn wait_for(&self, applied: Option<LogId>) -> bool {
        let mut point = held(&self.point);
        loop {
            if point.log.last.max(point.snapshot) >= applied {
                return true;
            }
            if point.ended {
                return false;
            }
            point = self.changed.wait(point).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
