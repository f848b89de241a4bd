//! Inventory of the node: attachments without a container, and differences between journal and cluster.
//!
//! A container is gone if its network namespace is, in two observations with a grace between: a runtime may
//! replace the file of a namespace that lives. Each release names the allocation ids that the journal had, so
//! it never reaches a newer holder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use ipam_api::agent::{Collected, GcRequest, ValidAttachment};
use ipam_api::client::Call;
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::node_report::{NodeAttachment, OrphanEvidence};
use ipam_api::problem::Problem;
use serde::Deserialize;

use crate::journal::{Entry, Key, Phase, Record};
use crate::netns::is_gone;
use crate::node::Node;
use crate::possible_orphans::PossibleOrphans;
use crate::release::{path, release_orphans};

/// Observes the containers for as long as the agent runs.
pub async fn observe(node: Arc<Node>) {
    loop {
        tokio::time::sleep(node.config.inventory_interval).await;
        if let Err(problem) = round(&node).await {
            tracing::warn!(%problem, "orphans are still to be released");
        }
    }
}

/// One observation of all containers, and the release of those that have been gone for the grace.
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
    // The cluster has to say first what these hold.
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

/// Evidence that the container of an attachment is gone; nothing if it may live.
async fn evidence(node: &Node, entry: &Entry) -> Option<OrphanEvidence> {
    if !entry.boot_id.is_empty() && entry.boot_id != node.boot_id {
        return Some(OrphanEvidence::EarlierBoot);
    }
    let netns = entry.netns.as_ref()?;
    is_gone(netns).await.then_some(OrphanEvidence::NetnsGone)
}

/// CNI GC: releases the attachments of a runtime that its list lacks.
///
/// # Errors
/// Never for a cluster that doesn't answer: the agent then goes on by itself.
pub async fn collect(node: Arc<Node>, request: GcRequest) -> Result<Collected, Problem> {
    // The runtime of an attachment that was read from the cluster isn't known either.
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

/// Notes the runtime of listed attachments that were read from the cluster. A later list that lacks one of
/// them then proves its end; a list that never had it proves nothing, since it may be another runtime's.
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

/// Compares the journal with the attachments that the cluster has on this node, and follows the cluster.
///
/// # Errors
/// The servers' problem.
pub async fn reconcile(node: &Node) -> Result<(), Problem> {
    // What the journal had before the read must be in it, unless the cluster has lost it.
    let before: BTreeMap<Key, Entry> =
        node.journal.attachments().iter().map(|entry| (entry.key.clone(), entry.clone())).collect();
    let listed = list(node).await?;
    let is_flying = |key: &Key| node.adding.count(key) > 0;
    let mut records = Vec::new();
    let mut seen = BTreeSet::new();
    for one in listed {
        let key = Key {
            config: one.attachment.config,
            container_id: one.attachment.container_id,
            interface: one.attachment.interface,
        };
        seen.insert(key.clone());
        let present = node.journal.attachments().get(&key).cloned();
        match present {
            Some(entry) if matches!(entry.phase, Phase::Deleting { .. }) || is_flying(&key) => {}
            Some(entry)
                if entry.phase == Phase::Attached && is_same(&entry.allocations, &one.allocations) => {}
            Some(_) => records.push(Record::Attached { key, allocations: one.allocations }),
            // A DEL may have been delivered since the read.
            None if before.contains_key(&key) => {}
            None => {
                tracing::info!(attachment = %key, "the journal takes an attachment over from the cluster");
                records.push(Record::Put(Entry {
                    key,
                    phase: Phase::Attached,
                    boot_id: one.started_boot_id,
                    runtime: String::new(),
                    netns: None,
                    endpoint: Some(one.endpoint),
                    uid: one.uid,
                    allocations: one.allocations,
                }));
            }
        }
    }
    for (key, entry) in before {
        if seen.contains(&key) {
            continue;
        }
        let has_live_netns = entry.netns.is_some() && evidence(node, &entry).await.is_none();
        if is_flying(&key) || node.journal.attachments().get(&key) != Some(&entry) {
            continue;
        }
        match entry.phase {
            Phase::Attached if entry.netns.is_some() => {
                tracing::warn!(attachment = %key, "the cluster doesn't know an attachment of this node");
                records.push(Record::Missing(key));
            }
            // Its outcome is unknown: the request may still be under way in the cluster.
            Phase::Adding if has_live_netns => {}
            Phase::Attached | Phase::Adding => forget(node, &entry).await,
            Phase::Missing | Phase::Deleting { .. } => {}
        }
    }
    for record in records {
        node.journal.write(record).await?;
    }
    Ok(())
}

/// Page of the cluster's list.
#[derive(Deserialize)]
struct Page {
    items: Vec<NodeAttachment>,
    #[serde(default)]
    next: Option<String>,
}

async fn list(node: &Node) -> Result<Vec<NodeAttachment>, Problem> {
    let mut all = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let call = Call::get(path(node, "attachments")).query("limit", &PAGE_ITEMS_MAX.to_string());
        let call = match &cursor {
            Some(cursor) => call.query("cursor", cursor),
            None => call,
        };
        let Page { items, next } = node.cluster.send(call).await?.read()?;
        all.extend(items);
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(all),
        }
    }
}

fn is_same(own: &[u64], theirs: &[u64]) -> bool {
    own.iter().collect::<BTreeSet<_>>() == theirs.iter().collect()
}

/// Returns true for an attachment that may be without a container: it has no DEL, and no ADD under way.
fn may_be_orphan(node: &Node, entry: &Entry) -> bool {
    !matches!(entry.phase, Phase::Deleting { .. }) && node.adding.count(&entry.key) == 0
}

/// Entries with allocation ids, which the cluster compares with its own.
fn with_allocations(mut orphans: Vec<(Entry, OrphanEvidence)>) -> Vec<(Entry, OrphanEvidence)> {
    orphans.retain(|(entry, _)| !entry.allocations.is_empty());
    orphans
}

async fn forget(node: &Node, entry: &Entry) {
    let gone = Record::Gone { key: entry.key.clone(), allocations: entry.allocations.clone() };
    if let Err(error) = node.journal.write(gone).await {
        tracing::warn!(attachment = %entry.key, %error, "the journal still has an unknown attachment");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use axum::{Json, Router};
    use ipam_api::agent::Netns;
    use ipam_api::name::{InterfaceName, ObjectName};

    use super::*;
    use crate::cluster::Cluster;
    use crate::config::Config;
    use crate::journal::{Journal, JournalFile};

    /// URL of a cluster that has no attachment on any node.
    async fn empty_cluster() -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(|| async { Json(serde_json::json!({"items": []})) });
        tokio::spawn(axum::serve(listener, router).into_future());
        url
    }

    fn node(dir: &Path, server: &str) -> Node {
        let file = dir.join("agent.toml");
        let text = format!("servers = [{server:?}]\nnode = \"node-1\"\nstate_dir = {:?}", dir.join("state"));
        std::fs::write(&file, text).unwrap();
        let config = Config::read(&file).unwrap();
        let (file, attachments) = JournalFile::open(&config.state_dir).unwrap();
        let cluster = Cluster::new(&config.servers, None, None).unwrap();
        Node::new(config, "b1".to_owned(), cluster, Journal::start(file, attachments).unwrap(), None)
    }

    fn adding(container: &str, netns: Option<&Path>) -> Entry {
        let name = |text| ObjectName::new(text).unwrap();
        let netns = netns.map(|path| {
            std::fs::write(path, "").unwrap();
            let file = std::fs::metadata(path).unwrap();
            let (device, inode) = (file.dev(), file.ino());
            Netns { device, inode, path: path.to_str().unwrap().to_owned() }
        });
        let interface = InterfaceName::new("eth0").unwrap();
        Entry {
            key: Key { config: name("lan"), container_id: name(container), interface },
            phase: Phase::Adding,
            boot_id: "b1".to_owned(),
            runtime: "containerd".to_owned(),
            netns,
            endpoint: None,
            uid: None,
            allocations: Vec::new(),
        }
    }

    #[tokio::test]
    async fn an_add_with_unknown_outcome_is_kept_while_its_container_may_live() {
        let dir = tempfile::tempdir().unwrap();
        let node = node(dir.path(), &empty_cluster().await);
        let (live, gone) = (dir.path().join("live"), dir.path().join("gone"));
        let kept = adding("c1", Some(&live));
        let earlier = Entry { boot_id: "b0".to_owned(), ..adding("c4", Some(&live)) };
        for entry in [kept.clone(), adding("c2", Some(&gone)), adding("c3", None), earlier] {
            node.journal.write(Record::Put(entry)).await.unwrap();
        }
        std::fs::remove_file(&gone).unwrap();
        reconcile(&node).await.unwrap();
        let present: Vec<Entry> = node.journal.attachments().iter().cloned().collect();
        assert_eq!(present, [kept]);
        std::fs::remove_file(&live).unwrap();
        reconcile(&node).await.unwrap();
        assert!(node.journal.attachments().is_empty());
    }
}
