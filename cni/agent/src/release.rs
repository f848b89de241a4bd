//! Delivery to the cluster: DELs that were answered from the journal, and orphans.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::client::{Answer, Call, push_encoded};
use ipam_api::limits::{DELIVERIES_AT_ONCE_MAX, ORPHANS_MAX};
use ipam_api::node_report::{Orphan, OrphanEvidence, OrphansReleased, OrphansRequest};
use ipam_api::problem::{Problem, Retry};
use ipam_api::request::Started;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use crate::journal::{Entry, Key, Phase, Record, Unwritable};
use crate::node::Node;
use crate::seeded::SeededBug;

/// Pause after a round in which no DEL left the journal.
const PAUSE: Duration = Duration::from_secs(1);
/// Time limit of one delivery.
const DELIVERY: Duration = Duration::from_secs(10);

/// DEL on its way to the cluster.
#[derive(Debug, Clone)]
pub struct Deletion {
    /// Identity of the attachment.
    pub key: Key,
    /// Body of the request.
    pub release: Map<String, Value>,
    /// Start of the process that requested it.
    pub started: Started,
}

impl Deletion {
    /// DEL of an entry that waits for its delivery.
    #[must_use]
    pub fn of(entry: &Entry) -> Option<Self> {
        match &entry.phase {
            Phase::Deleting { release, started } => {
                Some(Self { key: entry.key.clone(), release: release.clone(), started: started.clone() })
            }
            Phase::Adding | Phase::Attached | Phase::Missing => None,
        }
    }

    /// Record by which the journal keeps the DEL until its delivery.
    #[must_use]
    pub fn record(&self) -> Record {
        let Self { key, release, started } = self.clone();
        Record::Delete { key, release, started }
    }
}

/// Delivers DELs for as long as the agent runs, in any order: the cluster compares the starts of requests.
pub async fn deliver_all(node: Arc<Node>) {
    loop {
        let waiting: Vec<Deletion> =
            node.journal.attachments().iter().filter_map(Deletion::of).take(DELIVERIES_AT_ONCE_MAX).collect();
        if waiting.is_empty() {
            node.undelivered.notified().await;
            continue;
        }
        let mut deliveries = JoinSet::new();
        for deletion in waiting {
            let node = node.clone();
            deliveries.spawn(async move {
                let _ = deliver(&node, &deletion, DELIVERY).await;
                // A delivery that the journal can't record will be repeated.
                !is_waiting(&node, &deletion)
            });
        }
        if !deliveries.join_all().await.into_iter().any(|is_done| is_done) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Releases an attachment: now if the cluster answers within a time, else later.
///
/// # Errors
/// The servers' problem, only if neither the journal nor the cluster has the DEL.
pub async fn release(node: &Node, deletion: &Deletion, within: Duration) -> Result<Option<Answer>, Problem> {
    let answer = match record(node, deletion).await {
        Ok(()) if !node.cluster.is_reachable() => Ok(None),
        Ok(()) => Ok(deliver(node, deletion, within).await.ok()),
        // Without the journal, only the cluster can record the DEL.
        Err(error) => deliver(node, deletion, within).await.map(Some).map_err(|_| error.into()),
    };
    node.undelivered.notify_one();
    answer
}

/// Records a DEL durably.
async fn record(node: &Node, deletion: &Deletion) -> Result<(), Unwritable> {
    node.journal.write(deletion.record()).await?.synced().await?;
    #[cfg(feature = "testing")]
    crate::testing::KillPoint::DelSynced.reach();
    Ok(())
}

/// Returns true until the journal has the delivery of a DEL.
#[must_use]
pub fn is_waiting(node: &Node, deletion: &Deletion) -> bool {
    let present = node.journal.attachments().get(&deletion.key).and_then(Deletion::of);
    present.is_some_and(|present| present.started == deletion.started)
}

/// Delivers a DEL and removes it from the journal.
///
/// # Errors
/// The servers' problem. A DEL that the servers can never accept is removed, too.
pub async fn deliver(node: &Node, deletion: &Deletion, within: Duration) -> Result<Answer, Problem> {
    let Deletion { key, release, started } = deletion;
    let call = Call::post("/v1/attachments/release").json(release)?.repeatable().within(within);
    let result = node.cluster.send(call).await;
    if let Err(problem) = &result {
        // Another token or role may permit the DEL later, but its body never changes.
        let is_hopeless = problem.retry == Retry::Changed && matches!(problem.status, 400 | 413 | 415 | 422);
        if !is_hopeless && !SeededBug::LostDel.is_on() {
            return result;
        }
        tracing::error!(attachment = %key, %problem, "the cluster refuses a DEL for good");
    }
    #[cfg(feature = "testing")]
    crate::testing::KillPoint::DelExecuted.reach();
    let delivered = Record::Delivered { key: key.clone(), started: started.clone() };
    if let Err(error) = node.journal.write(delivered).await {
        // The DEL will be delivered again, without effect.
        tracing::warn!(attachment = %key, %error, "a delivery is not in the journal");
    }
    result
}

/// Reports attachments whose container is removed, and removes them from the journal. Returns the number that
/// the cluster did not release.
///
/// # Errors
/// The servers' problem.
pub async fn release_orphans(node: &Node, orphans: &[(Entry, OrphanEvidence)]) -> Result<u64, Problem> {
    let mut stale = 0;
    for some in orphans.chunks(ORPHANS_MAX) {
        let orphan = |(entry, evidence): &(Entry, OrphanEvidence)| Orphan {
            config: entry.key.config.clone(),
            container_id: entry.key.container_id.clone(),
            interface: entry.key.interface.clone(),
            allocations: entry.allocations.clone(),
            evidence: *evidence,
        };
        let request = OrphansRequest { orphans: some.iter().map(orphan).collect() };
        let call = Call::post(path(node, "orphans")).json(&request)?.repeatable();
        let released: OrphansReleased = node.cluster.send(call).await?.read()?;
        stale += released.stale;
        for (entry, evidence) in some {
            tracing::info!(attachment = %entry.key, evidence = evidence.as_str(), "an orphan was released");
            let (key, allocations) = (entry.key.clone(), entry.allocations.clone());
            if let Err(error) = node.journal.write(Record::Gone { key, allocations }).await {
                tracing::warn!(attachment = %entry.key, %error, "a released orphan is still in the journal");
            }
        }
    }
    Ok(stale)
}

/// Path of this node's reports.
#[must_use]
pub fn path(node: &Node, report: &str) -> String {
    let own = &node.config.node;
    let mut path = "/v1/nodes/".to_owned();
    push_encoded(&mut path, own.realm.as_str());
    path.push('/');
    push_encoded(&mut path, own.name.as_str());
    path.push('/');
    path.push_str(report);
    path
}
