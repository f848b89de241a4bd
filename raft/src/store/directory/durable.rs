//! Durable end of the log, shared by its writer and its followers.

use std::sync::Mutex;

use tokio::sync::Notify;

use super::marker::LogMark;
use crate::sync::held;
use crate::types::LogId;

/// Notification of durable entries. openraft applies an entry once a majority has it, which may be before
/// this disk has. Rows must not get ahead of the log that proves them, so their thread waits here.
#[derive(Debug, Default)]
pub(in crate::store) struct Durable {
    point: Mutex<Point>,
    changed: Notify,
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
        self.change(|point| point.log = log);
    }

    pub(in crate::store) fn set_snapshot(&self, last: Option<LogId>) {
        self.change(|point| point.snapshot = last);
    }

    /// Marks the log as ended: it writes nothing more, and waiters fail.
    pub(in crate::store) fn end(&self) {
        self.change(|point| point.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut Point)) {
        change(&mut held(&self.point));
        // Without a waiter this is no system call.
        self.changed.notify_waiters();
    }

    /// Waits until log or snapshot hold everything up to `applied`; false if they never will.
    pub(in crate::store) async fn wait_for(&self, applied: Option<LogId>) -> bool {
        loop {
            // Registered before the check, so that no change is missed.
            let changed = self.changed.notified();
            {
                let point = held(&self.point);
                if point.log.last.max(point.snapshot) >= applied {
                    return true;
                }
                if point.ended {
                    return false;
                }
            }
            changed.await;
        }
    }
}
