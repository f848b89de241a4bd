//! State of the agent that its tasks and requests share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use crate::cluster::Cluster;
use crate::config::Config;
use crate::journal::{Journal, Key};
use crate::pods::PodView;
use crate::possible_orphans::PossibleOrphans;
use crate::turns::Turns;

/// This node.
#[derive(Debug)]
pub struct Node {
    /// Settings of the agent.
    pub config: Config,
    /// Current boot of the machine.
    pub boot_id: String,
    /// Servers of the cluster.
    pub cluster: Cluster,
    /// Attachments of the node.
    pub journal: Journal,
    /// Pods of the node, where the agent watches them.
    pub pods: Option<Arc<PodView>>,
    /// ADDs that wait for their answer, by attachment.
    pub adding: InFlight,
    /// Turns of ADDs at the members.
    pub turns: Turns,
    /// Attachments that seem to have lost their container.
    pub possible_orphans: Mutex<PossibleOrphans>,
    /// Wakes the delivery of DELs.
    pub undelivered: Notify,
    /// True while the cluster has probes for this node, according to the newest heartbeat.
    pub has_probes: watch::Sender<bool>,
}

impl Node {
    /// A node without requests under way.
    #[must_use]
    pub fn new(
        config: Config,
        boot_id: String,
        cluster: Cluster,
        journal: Journal,
        pods: Option<Arc<PodView>>,
    ) -> Self {
        Self {
            config,
            boot_id,
            cluster,
            journal,
            pods,
            adding: InFlight::default(),
            turns: Turns::default(),
            possible_orphans: Mutex::default(),
            undelivered: Notify::new(),
            has_probes: watch::Sender::new(false),
        }
    }
}

/// Requests under way, counted by attachment.
#[derive(Debug, Default)]
pub struct InFlight(Mutex<BTreeMap<Key, usize>>);

/// One request under way.
#[derive(Debug)]
pub struct Flight<'a> {
    all: &'a InFlight,
    key: Key,
}

impl InFlight {
    /// Counts a request until the result is dropped.
    pub fn enter(&self, key: &Key) -> Flight<'_> {
        *self.lock().entry(key.clone()).or_default() += 1;
        Flight { all: self, key: key.clone() }
    }

    /// Number of requests of an attachment.
    #[must_use]
    pub fn count(&self, key: &Key) -> usize {
        self.lock().get(key).copied().unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(count) = all.get_mut(&self.key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                all.remove(&self.key);
            }
        }
    }
}
