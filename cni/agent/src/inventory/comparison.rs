//! Comparison of the journal with the attachments that the cluster has on this node.
//!
//! The cluster's answer is linearizable, so it is the newer side. One exception: an attachment that the
//! cluster lacks stays in the journal while its container may live. The cluster was then restored from a
//! backup.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::agent::{InventoryChange, InventoryDifference, InventoryReport};
use ipam_api::client::Call;
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::node_report::NodeAttachment;
use ipam_api::problem::Problem;
use serde::Deserialize;

use crate::journal::{Entry, Key, Phase, Record};
use crate::node::Node;
use crate::release::path;

use super::containers::evidence;

/// Difference of one attachment, with both sides as they were observed.
struct Difference {
    key: Key,
    journal: Option<Entry>,
    cluster: Option<NodeAttachment>,
    change: InventoryChange,
}

/// Resolves the differences between the journal and the cluster.
///
/// # Errors
/// The servers' problem, or that of the journal.
pub async fn reconcile(node: &Node) -> Result<(), Problem> {
    take_newer(node).await.map(|_| ())
}

/// Shows the differences, and changes nothing.
///
/// # Errors
/// The servers' problem.
pub async fn compare(node: &Node) -> Result<InventoryReport, Problem> {
    let differences = differences(node).await?;
    Ok(report(node, differences.into_iter().map(Difference::shown).collect()))
}

/// Resolves each difference in favour of the newer side; returns the resolved differences.
///
/// # Errors
/// The servers' problem, or that of the journal.
pub async fn take_newer(node: &Node) -> Result<InventoryReport, Problem> {
    let mut taken = Vec::new();
    for difference in differences(node).await? {
        // An ADD or a DEL since then is newer than both sides.
        if node.adding.count(&difference.key) > 0
            || node.journal.attachments().get(&difference.key) != difference.journal.as_ref()
        {
            continue;
        }
        let Some(record) = difference.record() else { continue };
        tracing::warn!(attachment = %difference.key, change = %difference.change, "the cluster is newer");
        node.journal.write(record).await?;
        taken.push(difference.shown());
    }
    Ok(report(node, taken))
}

fn report(node: &Node, differences: Vec<InventoryDifference>) -> InventoryReport {
    InventoryReport { attachments: node.journal.attachments().len() as u64, differences }
}

/// Differences that no ADD or DEL under way explains.
async fn differences(node: &Node) -> Result<Vec<Difference>, Problem> {
    // The journal is read first: the answer has its attachments, unless the cluster has lost them.
    let mut journal: BTreeMap<Key, Entry> =
        node.journal.attachments().iter().map(|entry| (entry.key.clone(), entry.clone())).collect();
    let mut differences = Vec::new();
    for one in list(node).await? {
        let key = Key {
            config: one.attachment.config.clone(),
            container_id: one.attachment.container_id.clone(),
            interface: one.attachment.interface.clone(),
        };
        let entry = journal.remove(&key);
        let is_settled = entry.as_ref().is_some_and(|entry| match &entry.phase {
            Phase::Deleting { .. } => true,
            Phase::Attached => is_same(&entry.allocations, &one.allocations),
            Phase::Adding | Phase::Missing => false,
        });
        if !is_settled && node.adding.count(&key) == 0 {
            let change = InventoryChange::TakeCluster;
            differences.push(Difference { key, journal: entry, cluster: Some(one), change });
        }
    }
    for (key, entry) in journal {
        if node.adding.count(&key) > 0 {
            continue;
        }
        let may_live = entry.netns.is_some() && evidence(node, &entry).await.is_none();
        let change = match entry.phase {
            Phase::Deleting { .. } => continue,
            // The outcome of the ADD is unknown: its request may still be under way in the cluster.
            Phase::Adding if may_live => continue,
            Phase::Missing => InventoryChange::KeepMissing,
            Phase::Attached if entry.netns.is_some() => InventoryChange::KeepMissing,
            Phase::Attached | Phase::Adding => InventoryChange::Forget,
        };
        differences.push(Difference { key, journal: Some(entry), cluster: None, change });
    }
    Ok(differences)
}

impl Difference {
    /// Record that resolves the difference; `None` if the journal needs no change.
    fn record(&self) -> Option<Record> {
        let key = self.key.clone();
        match (self.change, &self.journal, &self.cluster) {
            (InventoryChange::TakeCluster, Some(_), Some(cluster)) => {
                Some(Record::Attached { key, allocations: cluster.allocations.clone() })
            }
            (InventoryChange::TakeCluster, None, Some(cluster)) => Some(Record::Put(Entry {
                key,
                phase: Phase::Attached,
                boot_id: cluster.started_boot_id.clone(),
                runtime: String::new(),
                netns: None,
                endpoint: Some(cluster.endpoint.clone()),
                uid: cluster.uid.clone(),
                allocations: cluster.allocations.clone(),
            })),
            (InventoryChange::KeepMissing, Some(entry), _) if entry.phase == Phase::Attached => {
                Some(Record::Missing(key))
            }
            (InventoryChange::Forget, Some(entry), _) => Some(gone(entry)),
            _ => None,
        }
    }

    fn shown(self) -> InventoryDifference {
        let Self { key, journal, cluster, change } = self;
        let of_journal = journal.as_ref().and_then(|entry| entry.endpoint.clone());
        InventoryDifference {
            config: key.config,
            container_id: key.container_id,
            interface: key.interface,
            endpoint: cluster.as_ref().map(|one| one.endpoint.clone()).or(of_journal),
            journal: journal.map(|entry| entry.allocations),
            cluster: cluster.map(|one| one.allocations),
            change,
        }
    }
}

/// Record that removes an attachment from the journal.
fn gone(entry: &Entry) -> Record {
    Record::Gone { key: entry.key.clone(), allocations: entry.allocations.clone() }
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

/// Removes an attachment that the cluster lacks from the journal.
pub(super) async fn forget(node: &Node, entry: &Entry) {
    if let Err(error) = node.journal.write(gone(entry)).await {
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
        // The differences are shown first, and nothing is changed.
        let shown: Vec<_> =
            compare(&node).await.unwrap().differences.into_iter().map(|one| one.change).collect();
        assert_eq!(shown, [InventoryChange::Forget; 3]);
        assert_eq!(node.journal.attachments().len(), 4);
        reconcile(&node).await.unwrap();
        let present: Vec<Entry> = node.journal.attachments().iter().cloned().collect();
        assert_eq!(present, [kept]);
        std::fs::remove_file(&live).unwrap();
        reconcile(&node).await.unwrap();
        assert!(node.journal.attachments().is_empty());
    }
}
