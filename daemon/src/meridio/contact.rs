//! Contact with a leader, as `/readyz` determines it.

use std::time::Duration;

use ipam_raft::node::Node;
use tokio::sync::watch::{Receiver, Sender};

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_secs(1);

/// True while this member has contact with a leader; false at first.
#[derive(Debug, Default)]
pub(super) struct Contact(Sender<bool>);

/// Ends the contact when it is dropped.
struct Stopping<'a>(&'a Contact);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.0.send_replace(false);
    }
}

impl Contact {
    pub(super) fn subscribe(&self) -> Receiver<bool> {
        self.0.subscribe()
    }

    /// Checks the contact until the future is dropped. A stopping member has no contact.
    pub(super) async fn follow(&self, node: &Node) {
        let _stopping = Stopping(self);
        self.judge(INTERVAL, || node.ready().is_ok()).await;
    }

    async fn judge(&self, interval: Duration, is_ready: impl Fn() -> bool) {
        loop {
            let now = is_ready();
            self.0.send_if_modified(|known| std::mem::replace(known, now) != now);
            tokio::time::sleep(interval).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn each_change_is_told_once() {
        let (contact, ready, judged) = (Contact::default(), Cell::new(false), Cell::new(0));
        let mut news = contact.subscribe();
        let is_ready = || {
            judged.set(judged.get() + 1);
            ready.get()
        };
        let changes = async {
            for now in [true, false] {
                let before = judged.get();
                while judged.get() < before + 3 {
                    tokio::task::yield_now().await;
                }
                assert!(!news.has_changed().unwrap(), "nothing has changed");
                ready.set(now);
                tokio::time::timeout(Duration::from_secs(10), news.changed()).await.unwrap().unwrap();
                assert_eq!(*news.borrow_and_update(), now);
            }
        };
        tokio::select! {
            () = contact.judge(Duration::from_millis(1), is_ready) => {}
            () = changes => {}
        }
    }
}
