//! Rolling restarts and upgrades: one member after the other.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep};

use super::recovery::below_level;
use super::{Cluster, ready, shown};

/// Time limit of a member's return.
const RETURN: Duration = Duration::from_secs(40);
/// Time limit until the feature level of an upgraded cluster rises.
const RISE: Duration = Duration::from_secs(10);
/// Time between two polls.
const LOOK: Duration = Duration::from_millis(50);

/// Restarts members gracefully, one after the other. With `upgrades`, each gets the program of the next
/// feature level, from which there is no way back: later upgrades are restarts.
pub(crate) async fn restart<C: Cluster>(
    cluster: &mut C,
    members: &[String],
    upgrades: bool,
) -> Result<Vec<String>> {
    let mut evidence = Vec::new();
    for name in members {
        cluster.reap()?;
        if !cluster.answers(name) {
            continue;
        }
        let Some(end) = cluster.stop(name).await? else { continue };
        if upgrades {
            cluster.upgrade(name)?;
        }
        cluster.start(name).await?;
        evidence.push(format!("{name}: {end}"));
        ready(cluster, RETURN).await?;
    }
    if upgrades {
        evidence.push(format!("feature levels: {}", levels(cluster).await));
    }
    Ok(evidence)
}

/// Feature level of each member, after the rise that [`below_level`] expects or after its time limit.
async fn levels<C: Cluster>(cluster: &C) -> String {
    let until = Instant::now() + RISE;
    while Instant::now() <= until && !below_level(cluster).await.is_empty() {
        sleep(LOOK).await;
    }
    let shown = shown(cluster).await;
    let levels = shown.iter().map(|(name, shown)| format!("{name} {}", shown.level));
    levels.collect::<Vec<_>>().join(", ")
}
