//! Pools of the management cluster: each is applied to the servers, shown, and ended.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use ipam_api::limits::CLUSTER_API_COUNTS_MS;
use tokio::time::Instant;

use super::pauses::Pauses;
use super::pool_step::{Course, take};
use super::shared::Shared;
use crate::cluster_api::PoolKey;
use crate::servers::Servers;

/// Number of pools whose steps run concurrently. A slow answer about one pool delays no other pool.
const AT_ONCE: usize = 8;

/// Applies all pools, for as long as the provider runs.
///
/// The counts of a pool are read again soon after a change of its claims, and the counts of all at intervals.
pub(super) async fn serve_pools(shared: &Shared<impl Servers>) {
    let mut steps = FuturesUnordered::new();
    let mut busy: BTreeSet<PoolKey> = BTreeSet::new();
    let mut pauses: Pauses<PoolKey> = Pauses::default();
    let mut all_at = Instant::now() + shared.settings.status_interval;
    let mut changed_at: Option<Instant> = None;
    loop {
        while let Some(key) = pauses.end(Instant::now()) {
            shared.views().due_pools.insert(key);
        }
        if changed_at.is_some_and(|at| at <= Instant::now()) {
            changed_at = None;
            let mut views = shared.views();
            let changed = std::mem::take(&mut views.changed_pools);
            views.due_pools.extend(changed);
        }
        if all_at <= Instant::now() {
            all_at = Instant::now() + shared.settings.status_interval;
            let mut views = shared.views();
            let ready: Vec<PoolKey> = views.ready_pools().cloned().collect();
            views.due_pools.extend(ready);
            drop(views);
            shared.publish();
        }
        while steps.len() < AT_ONCE {
            // Only one step of a pool runs at a time.
            let Some(key) = shared.views().due_pools.take(&busy) else { break };
            busy.insert(key.clone());
            steps.push(async move {
                let course = take(shared, &key).await;
                (key, course)
            });
        }
        let next = [pauses.next(), changed_at].into_iter().flatten().fold(all_at, Instant::min);
        tokio::select! {
            Some((key, course)) = steps.next() => {
                busy.remove(&key);
                match course {
                    Ok(Course::Done) => pauses.succeed(&key),
                    Ok(Course::Ends) => pauses.wait(key, Instant::now(), soon()),
                    Err(why) => {
                        why.note(shared);
                        pauses.fail(key, Instant::now());
                    }
                }
            }
            () = shared.pools.notified() => {}
            () = shared.counts.notified() => {
                changed_at.get_or_insert(Instant::now() + soon());
            }
            () = tokio::time::sleep_until(next) => {}
        }
    }
}

fn soon() -> Duration {
    Duration::from_millis(CLUSTER_API_COUNTS_MS)
}
