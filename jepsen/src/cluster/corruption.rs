//! Damaged and lost files of stopped members.

use std::time::Duration;

use anyhow::Result;
use ipam_api::client::Call;
use tokio::time::{Instant, sleep};

use super::{Cause, Cluster, control};
use crate::nemesis::{Corruption, Link};

/// Time limit until a damaged member is refused or ready.
const VERDICT: Duration = Duration::from_secs(20);
/// Time limit of one answer.
const PATIENCE: Duration = Duration::from_millis(200);
/// Time between two polls.
const LOOK: Duration = Duration::from_millis(10);

/// Kills members, damages their files, and starts them.
pub(crate) async fn corrupt<C: Cluster>(
    cluster: &mut C,
    members: &[String],
    corruption: Corruption,
) -> Result<Vec<String>> {
    // A log that lacks its end without a trace is a rollback of the disk, which no member detects (see
    // `deploy/docs/operating.md`). A member with such a log must not reach the other members.
    let is_alone = matches!(corruption, Corruption::LogFlip | Corruption::LogTruncate);
    let links = if is_alone { links_of(cluster, members) } else { Vec::new() };
    let mut evidence = Vec::new();
    cluster.kill(members).await?;
    for name in members {
        if let Some(damage) = cluster.damage(name, corruption)? {
            evidence.push(format!("{name}: {damage}"));
        }
        cluster.standing_mut(name)?.excuses.insert(Cause::Damage);
    }
    cluster.cut(&links);
    let judged = judge(cluster, members, is_alone).await;
    cluster.mend(&links);
    let judged = judged?;
    // Without a damaged file the fault didn't take hold.
    if !evidence.is_empty() {
        evidence.extend(judged);
    }
    Ok(evidence)
}

/// Kills members and loses their data directories.
pub(crate) async fn wipe<C: Cluster>(cluster: &mut C, members: &[String]) -> Result<Vec<String>> {
    cluster.kill(members).await?;
    let mut evidence = Vec::new();
    for name in members {
        cluster.standing_mut(name)?.must_rejoin = true;
        evidence.push(format!("{name}: data directory is lost"));
    }
    Ok(evidence)
}

/// Starts damaged members and waits for their verdicts. A member that accepts a damaged log is replaced by a
/// new member.
async fn judge<C: Cluster>(cluster: &mut C, members: &[String], is_alone: bool) -> Result<Vec<String>> {
    for name in members {
        cluster.start(name).await?;
    }
    let until = Instant::now() + VERDICT;
    let mut verdicts = Vec::new();
    for name in members {
        let verdict = verdict(cluster, name, is_alone, until).await?;
        verdicts.push(format!("{name}: {verdict}"));
        if is_alone {
            cluster.kill(std::slice::from_ref(name)).await?;
            cluster.standing_mut(name)?.must_rejoin = true;
        }
    }
    Ok(verdicts)
}

/// Waits until a damaged member has ended, or accepts its data.
async fn verdict<C: Cluster>(
    cluster: &mut C,
    name: &str,
    is_alone: bool,
    until: Instant,
) -> Result<&'static str> {
    // An isolated member can open its store, but can't become ready.
    let (path, accepted) = if is_alone { ("/v1/cluster", "accepts its log") } else { ("/readyz", "ready") };
    loop {
        cluster.reap()?;
        if !cluster.is_started(name) {
            return Ok("refuses to start");
        }
        if control(cluster, name)?.send(Call::get(path).within(PATIENCE)).await.is_ok() {
            return Ok(accepted);
        }
        if Instant::now() > until {
            return Ok("not ready");
        }
        sleep(LOOK).await;
    }
}

/// Links between these members and the others, in both directions.
fn links_of<C: Cluster>(cluster: &C, members: &[String]) -> Vec<Link> {
    let mut links = Vec::new();
    for one in members {
        for other in cluster.names().iter().filter(|other| !members.contains(other) || *other > one) {
            links.extend(Link::both(one, other));
        }
    }
    links
}
