//! Recovery: members that have ended start again, those without their data return as new ones, and all become
//! ready.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::future::join_all;
use ipam_api::client::Call;
use tokio::time::{Instant, sleep};

use super::membership::rejoin_lost;
use super::{Cluster, control, is_held_down, shown};
use crate::nemesis::Fault;

/// Time limit of the recovery after the last active fault is healed.
const RECOVERY: Duration = Duration::from_secs(60);
/// Unexplained ends of a member's process after which the member counts as lost.
const STARTS_MAX: usize = 3;
/// Time between two polls.
const LOOK: Duration = Duration::from_millis(20);
/// Time limit of one answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Injects a fault; returns the evidence that it took hold.
pub(super) async fn inject<C: Cluster>(cluster: &mut C, fault: &Fault) -> Result<Vec<String>> {
    // A fault is active before it is complete, so that a failed injection can be healed.
    cluster.active_mut().push(fault.clone());
    let evidence = cluster.begin(fault).await;
    if evidence.is_err() || fault.kind.ends_by_itself() {
        forget(cluster, fault);
    }
    evidence.with_context(|| format!("{:?} can't be injected", fault.kind))
}

/// Heals a fault. After the last one all members are ready.
pub(super) async fn heal<C: Cluster>(cluster: &mut C, fault: &Fault) -> Result<Vec<String>> {
    forget(cluster, fault);
    let evidence = cluster.end(fault).await;
    let mut evidence = evidence.with_context(|| format!("{:?} can't be healed", fault.kind))?;
    if cluster.active().is_empty() {
        ready(cluster, RECOVERY).await.with_context(|| format!("after {:?}", fault.kind))?;
    } else {
        cluster.reap()?;
        start_stopped(cluster).await?;
    }
    evidence.append(cluster.notes());
    Ok(evidence)
}

fn forget<C: Cluster>(cluster: &mut C, fault: &Fault) {
    let active = cluster.active_mut();
    if let Some(at) = active.iter().position(|active| active == fault) {
        active.remove(at);
    }
}

/// Starts members that have ended, and waits until all are ready. Members that an active fault holds down are
/// exempt. Without active faults, the feature level of upgraded members must rise, too.
///
/// # Errors
/// If some are not ready in time; the error has the ends of their logs.
pub(crate) async fn ready<C: Cluster>(cluster: &mut C, limit: Duration) -> Result<()> {
    let until = Instant::now() + limit;
    let ends = |cluster: &C| -> Vec<(String, usize)> {
        cluster.names().into_iter().map(|name| (name.clone(), cluster.unexplained_ends(&name))).collect()
    };
    let before = ends(cluster);
    loop {
        cluster.reap()?;
        for (name, count) in ends(cluster) {
            let earlier = before.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count);
            if count >= earlier + STARTS_MAX {
                bail!("{name} doesn't start{}", cluster.tails(std::slice::from_ref(&name)));
            }
        }
        start_stopped(cluster).await?;
        if cluster.active().is_empty() {
            rejoin_lost(cluster, until).await?;
        }
        let mut late = unready(cluster).await;
        if late.is_empty() && cluster.active().is_empty() {
            late = below_level(cluster).await;
        }
        if late.is_empty() {
            break;
        }
        if Instant::now() > until {
            let reasons: Vec<String> = late.iter().map(|(name, why)| format!("{name} ({why})")).collect();
            let names: Vec<String> = late.into_iter().map(|(name, _)| name).collect();
            let seconds = limit.as_secs();
            bail!("not ready within {seconds} s: {}{}", reasons.join(", "), cluster.tails(&names));
        }
        sleep(LOOK).await;
    }
    if cluster.active().is_empty() {
        for name in cluster.names() {
            cluster.standing_mut(&name)?.excuses.clear();
        }
    }
    Ok(())
}

/// Starts the stopped members that no active fault holds down and that have their data.
async fn start_stopped<C: Cluster>(cluster: &mut C) -> Result<()> {
    for name in cluster.names() {
        let is_due = !cluster.is_started(&name)
            && cluster.has_power(&name)
            && !cluster.standing(&name)?.must_rejoin
            && !is_held_down(cluster, &name);
        if is_due {
            cluster.start(&name).await?;
        }
    }
    Ok(())
}

/// Members that show the first feature level although all members have the program of the next one.
pub(super) async fn below_level<C: Cluster>(cluster: &C) -> Vec<(String, String)> {
    let names = cluster.names();
    if !names.iter().all(|name| cluster.is_upgraded(name)) {
        return Vec::new();
    }
    let shown = shown(cluster).await;
    let is_raised = |name: &String| shown.iter().any(|(other, shown)| other == name && shown.level > 1);
    let below = names.into_iter().filter(|name| !is_raised(name));
    below.map(|name| (name, "its feature level does not rise".to_owned())).collect()
}

/// Members that are not ready, with the reasons.
async fn unready<C: Cluster>(cluster: &C) -> Vec<(String, String)> {
    let names = cluster.names();
    let ask = names.iter().filter(|name| !is_held_down(cluster, name)).map(async |name| {
        let why = match control(cluster, name) {
            Err(error) => format!("{error:#}"),
            Ok(client) => match client.send(Call::get("/readyz").within(PATIENCE)).await {
                Ok(_) => return None,
                Err(problem) => problem.detail,
            },
        };
        Some((name.clone(), why))
    });
    join_all(ask).await.into_iter().flatten().collect()
}
