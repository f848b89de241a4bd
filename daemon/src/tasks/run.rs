//! The driver that runs the tasks of a leader.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipam_raft::node::Node;
use tokio::time::Instant;

use super::gc::GcSettings;
use super::journal::JournalLimits;
use super::leader::Leader;
use super::status::Statuses;
use super::task::{ROUND, Task};
use super::{expire, journal, level, scan, silent_nodes};
use crate::metrics::Metrics;

/// Runs the tasks on this member while it leads, until it is aborted or the state breaks an invariant.
pub async fn run(
    node: Node,
    (journal, gc): (JournalLimits, GcSettings),
    statuses: Arc<Statuses>,
    metrics: Arc<Metrics>,
) {
    let _broken = node.guard_work(rounds(&node, (journal, gc), &statuses, &metrics)).await;
}

async fn rounds(
    node: &Node,
    (journal, gc): (JournalLimits, GcSettings),
    statuses: &Statuses,
    metrics: &Metrics,
) {
    let mut leadership = node.leadership();
    let mut next_runs: BTreeMap<Task, Instant> = BTreeMap::new();
    loop {
        if leadership.wait_for(Option::is_some).await.is_err() {
            return;
        }
        tokio::time::sleep(ROUND).await;
        let Some(number) = *leadership.borrow() else { continue };
        let leader = Leader { node, leadership: number };
        for task in Task::ALL {
            let begun = Instant::now();
            if next_runs.get(&task).is_some_and(|at| begun < *at) {
                continue;
            }
            // Tasks with an interval of one round run in every round.
            if task.interval() > ROUND {
                next_runs.insert(task, begun + task.interval());
            }
            let run = match task {
                Task::Expire => expire::run(&leader).await,
                Task::SilentNodes => silent_nodes::run(&leader, gc).await,
                Task::Journal => journal::run(&leader, journal).await,
                Task::Level => level::run(&leader).await,
                Task::Scan => scan::run(&leader).await,
            };
            statuses.note(task, begun, run);
            if run.is_complete {
                metrics.succeeded(task.name());
            }
            if run.reclaimed > 0 {
                metrics.reclaimed(task.name(), run.reclaimed);
            }
        }
    }
}
