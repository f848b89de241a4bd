//! One round: the leader of a system is killed or paused under load, and returns.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::clients::Clients;
use super::gap::longest;
use super::system::System;

/// Time after which an outage counts as one that does not end.
pub(super) const GAP_MAX: Duration = Duration::from_secs(60);
/// Writes that are accepted before a fault and after it.
const WRITES: usize = 50;
/// Time that is observed after the first accepted write, and after the return of a paused leader.
const OBSERVED: Duration = Duration::from_secs(1);

/// Loss of a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT once another member has accepted writes.
    Pause,
}

impl Fault {
    /// All faults.
    pub(crate) const ALL: [Self; 2] = [Self::Kill, Self::Pause];

    /// Name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "leader kill -9",
            Self::Pause => "leader SIGSTOP",
        }
    }
}

/// Loses the leader once, and returns the gap.
pub(crate) async fn round(system: &mut dyn System, fault: Fault, clients: usize) -> Result<Duration> {
    let clients = Clients::start(clients, &system.urls(), system.body())?;
    let begun = Instant::now();
    if !clients.wait(WRITES, begun, begun + GAP_MAX).await {
        bail!("{} accepts no writes before the fault", system.name());
    }
    let leader = system.leader().await?;
    let lost = Instant::now();
    match fault {
        Fault::Kill => system.kill(leader)?,
        Fault::Pause => system.pause(leader, true)?,
    }
    // The answers to writes before the fault may be under way.
    let is_back = clients.wait(WRITES, lost, lost + GAP_MAX).await;
    tokio::time::sleep(OBSERVED).await;
    if fault == Fault::Pause {
        system.pause(leader, false)?;
        tokio::time::sleep(OBSERVED).await;
    }
    let gap = longest(&clients.accepted(), lost, Instant::now());
    drop(clients);
    if fault == Fault::Kill {
        system.restart(leader).await?;
    }
    Ok(if is_back { gap } else { GAP_MAX })
}
