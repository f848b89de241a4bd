//! The loop that runs the tasks of a leader.

use std::sync::Arc;
use std::time::Duration;

use ipam_raft::node::Node;

use super::journal::JournalLimits;
use super::leader::Leader;
use super::{expire, journal, level};
use crate::metrics::Metrics;

/// Interval in which the leader runs the tasks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs the tasks on this member while it leads, until it is aborted or the state breaks an invariant.
pub async fn run(node: Node, journal: JournalLimits, metrics: Arc<Metrics>) {
    let _broken = node.guard_work(rounds(&node, journal, metrics)).await;
}

async fn rounds(node: &Node, journal: JournalLimits, metrics: Arc<Metrics>) {
    let mut leadership = node.leadership();
    loop {
        if leadership.wait_for(Option::is_some).await.is_err() {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
        let number = *leadership.borrow();
        if let Some(number) = number {
            let leader = Leader { node, leadership: number };
            for (task, done) in [
                ("expire", expire::run(&leader).await),
                ("journal", journal::run(&leader, journal).await),
                ("level", level::run(&leader).await),
            ] {
                if done {
                    metrics.succeeded(task);
                }
            }
        }
    }
}
