//! Observation of the containers, and the release of attachments without a container.
//!
//! A container counts as removed if its network namespace is missing in two observations, with a grace period
//! between them: a runtime may replace the file of a namespace that lives. Each release names the allocation
//! ids that the journal had, so it never affects a newer holder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use ipam_api::agent::{Collected, GcRequest, ValidAttachment};
use ipam_api::node_report::OrphanEvidence;
use ipam_api::problem::Problem;

use crate::journal::{Entry, Key, Phase, Record};
use crate::netns::is_gone;
use crate::node::Node;
use crate::possible_orphans::PossibleOrphans;
use crate::release::release_orphans;

use super::comparison::{forget, reconcile};

/// Observes the containers for as long as the agent runs.
pub async fn observe(node: Arc<Node>) {
    loop {
        tokio::time::sleep(node.config.inventory_interval).await;
        if let Err(problem) = round(&node).await {
            tracing::warn!(%problem, "orphans are still to be released");
        }
    }
}

/// Observes all containers once, and releases the attachments of those missing for the grace period.
async fn round(node: &Node) -> Result<(), Problem> {
    let entries: Vec<Entry> =
        node.journal.attachments().iter().filter(|entry| may_be_orphan(node, entry)).cloned().collect();
    let mut gone = BTreeMap::new();
    for entry in entries {
        if let Some(evidence) = evidence(node, &entry).await {
            gone.insert(entry.key.clone(), (entry, evidence));
        }
    }
    let orphans = possible_orphans(node).observe(gone, node.config.orphan_grace, &node.journal.attachments());
    // Only the cluster knows the allocations of an ADD without an outcome.
    if orphans.iter().any(|(entry, _)| entry.phase == Phase::Adding) {
        reconcile(node).await?;
    }
    let (lost, known): (Vec<_>, Vec<_>) =
        orphans.into_iter().partition(|(entry, _)| entry.phase == Phase::Missing);
    for (entry, _) in lost {
        forget(node, &entry).await;
    }
    release_orphans(node, &with_allocations(known)).await.map(|_| ())
}

fn possible_orphans(node: &Node) -> MutexGuard<'_, PossibleOrphans> {
    node.possible_orphans.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Evidence that the container of an attachment is removed; `None` if it may live.
pub(super) async fn evidence(node: &Node, entry: &Entry) -> Option<OrphanEvidence> {
    if !entry.boot_id.is_empty() && entry.boot_id != node.boot_id {
        return Some(OrphanEvidence::EarlierBoot);
    }
    let netns = entry.netns.as_ref()?;
    is_gone(netns).await.then_some(OrphanEvidence::NetnsGone)
}

/// CNI GC: releases the attachments of a runtime that are missing from its list.
///
/// # Errors
/// Never. If the cluster doesn't answer, the agent releases the orphans later.
pub async fn collect(node: Arc<Node>, request: GcRequest) -> Result<Collected, Problem> {
    // Attachments that were read from the cluster have no runtime either, and would match.
    if request.runtime.is_empty() {
        tracing::warn!(network = %request.config, "GC releases nothing: its runtime is unknown");
        return Ok(Collected { orphans: 0, pending: 0 });
    }
    learn(&node, &request).await;
    let valid: BTreeSet<&ValidAttachment> = request.valid.iter().collect();
    let is_orphan = |entry: &&Entry| {
        let Key { config, container_id, interface } = entry.key.clone();
        may_be_orphan(&node, entry)
            && config == request.config
            && entry.runtime == request.runtime
            && !valid.contains(&ValidAttachment { container_id, interface })
    };
    let orphans: Vec<(Entry, OrphanEvidence)> = node
        .journal
        .attachments()
        .iter()
        .filter(is_orphan)
        .map(|entry| (entry.clone(), OrphanEvidence::NotInGcList))
        .collect();
    let count = orphans.len() as u64;
    possible_orphans(&node).condemn(&orphans);
    let known = with_allocations(orphans);
    let released = match release_orphans(&node, &known).await {
        Ok(_) => known.len() as u64,
        Err(problem) => {
            tracing::warn!(%problem, "the orphans of a GC are still to be released");
            0
        }
    };
    Ok(Collected { orphans: count, pending: count.saturating_sub(released) })
}

/// Records the runtime of listed attachments that were read from the cluster. Absence from a later list then
/// proves their end. Absence from the first list proves nothing: the list may be another runtime's.
async fn learn(node: &Node, request: &GcRequest) {
    for ValidAttachment { container_id, interface } in request.valid.iter().cloned() {
        let key = Key { config: request.config.clone(), container_id, interface };
        let is_unknown = node.journal.attachments().get(&key).is_some_and(|entry| entry.runtime.is_empty());
        if !is_unknown {
            continue;
        }
        let record = Record::Runtime { key, runtime: request.runtime.clone() };
        if let Err(error) = node.journal.write(record).await {
            tracing::warn!(%error, "the runtime of an attachment is not in the journal");
        }
    }
}

/// Returns true for an attachment that may be without a container: it has no DEL, and no ADD under way.
fn may_be_orphan(node: &Node, entry: &Entry) -> bool {
    !entry.is_deleting() && node.adding.count(&entry.key) == 0
}

/// Entries with allocation ids, which the cluster compares with its own.
fn with_allocations(mut orphans: Vec<(Entry, OrphanEvidence)>) -> Vec<(Entry, OrphanEvidence)> {
    orphans.retain(|(entry, _)| !entry.allocations.is_empty());
    orphans
}
