//! Notifications to the service manager that started this process, as `sd_notify(3)` defines them.
//!
//! The manager learns of readiness (a majority confirms the leader), of the reason of a delay, of reloads and
//! the stop, and that the raft thread still answers. Without a manager nothing is sent.
//!
//! **Invariant:** no `READY=1` before the member was ready once: `systemctl start` waits for a quorum.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ipam_api::screen::clean;
use ipam_raft::node::Node;
use sd_notify::NotifyState;

/// Interval of checks until the member is ready.
const UNTIL_READY: Duration = Duration::from_millis(250);
/// Interval of checks afterwards, unless the service manager's watchdog requires a shorter one.
const ONCE_READY: Duration = Duration::from_secs(10);
/// Longest status, in characters. Managers limit the size of a notification.
const STATUS_CHARS_MAX: usize = 200;

/// Connection with the service manager. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Supervision {
    was_ready: Arc<AtomicBool>,
}

impl Supervision {
    /// Reports readiness and liveness of a member until the future is dropped.
    pub async fn follow(self, node: Node) {
        let watchdog = sd_notify::watchdog_enabled();
        let pace = pace(watchdog);
        let mut shown = String::new();
        loop {
            let ready = node.ready();
            let status =
                ready.as_ref().map_or_else(|why| format!("not ready: {why}"), |()| "ready".to_owned());
            if status != shown {
                notify(&[NotifyState::Status(&status_line(&status))]).await;
                shown = status;
            }
            if ready.is_ok() && !self.was_ready.swap(true, Ordering::Relaxed) {
                notify(&[NotifyState::Ready]).await;
            }
            if watchdog.is_some() && node.responds().await {
                notify(&[NotifyState::Watchdog]).await;
            }
            tokio::time::sleep(if self.was_ready() { pace } else { UNTIL_READY }).await;
        }
    }

    /// Reports that settings are read again. The manager waits for [`Self::reloaded`].
    pub async fn reloading(&self) {
        if self.was_ready()
            && let Ok(now) = NotifyState::monotonic_usec_now()
        {
            notify(&[NotifyState::Reloading, now]).await;
        }
    }

    /// Reports the end of a reload.
    pub async fn reloaded(&self) {
        if self.was_ready() {
            notify(&[NotifyState::Ready]).await;
        }
    }

    /// Reports that the process ends by itself. `why` is the reason, if the member never was ready.
    pub async fn stopping(&self, why: Option<&str>) {
        match why {
            Some(why) if !self.was_ready() => {
                tracing::warn!("stopping before the member was ready: {}", clean(why));
                let status = format!("stopped before it was ready: {why}");
                notify(&[NotifyState::Stopping, NotifyState::Status(&status_line(&status))]).await;
            }
            _ => notify(&[NotifyState::Stopping]).await,
        }
    }

    fn was_ready(&self) -> bool {
        self.was_ready.load(Ordering::Relaxed)
    }
}

/// Interval of checks once the member was ready: a third of the watchdog limit, within bounds.
fn pace(watchdog: Option<Duration>) -> Duration {
    watchdog.map_or(ONCE_READY, |limit| (limit / 3).clamp(UNTIL_READY, ONCE_READY))
}

/// Status as one line of bounded length.
fn status_line(text: &str) -> String {
    // A line break would begin another field of the notification.
    clean(text).replace('\n', " ").chars().take(STATUS_CHARS_MAX).collect()
}

/// Sends a notification. A failure is logged: the manager kills a process that sends no notifications.
async fn notify(states: &[NotifyState<'_>]) {
    let lines: Vec<String> = states.iter().map(ToString::to_string).collect();
    let lines = lines.join("\n");
    // A manager that does not read would block the sender.
    let sent = tokio::task::spawn_blocking(move || sd_notify::notify(&[NotifyState::Custom(&lines)])).await;
    if let Ok(Err(error)) = sent {
        tracing::warn!(%error, "the service manager can't be notified (NOTIFY_SOCKET)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_hears_three_times_within_its_limit() {
        let seconds = Duration::from_secs;
        assert_eq!(pace(None), ONCE_READY);
        assert_eq!(pace(Some(seconds(9))), seconds(3));
        assert_eq!(pace(Some(seconds(600))), ONCE_READY);
        assert_eq!(pace(Some(Duration::ZERO)), UNTIL_READY);
    }

    #[test]
    fn a_status_is_one_short_line() {
        assert_eq!(status_line("no member leads"), "no member leads");
        assert!(!status_line("a\nREADY=1").contains('\n'));
        assert_eq!(status_line(&"x".repeat(1000)).chars().count(), STATUS_CHARS_MAX);
    }
}
