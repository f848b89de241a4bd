//! Statuses of the objects of one kind of custom resources.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use futures::StreamExt as _;
use ipam_api::limits::KUBERNETES_READS_AT_ONCE;
use ipam_api::name::ObjectName;
use ipam_api::time::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use crate::connection::Target;
use crate::custom::{CustomKind, Decision, Stored, changes, status};
use crate::servers::Servers;
use crate::shared::Shared;

/// Statuses that are written before the resources are compared again.
const ROUND: usize = 256;

/// Object whose status is written.
#[derive(Debug)]
struct Known {
    decision: Decision,
    /// Newest status that was read or written.
    status: Value,
    /// Status before the last write: the watch may still show it.
    former: Value,
    /// Time of the last write.
    written_at: Option<Instant>,
}

/// Writer of the statuses of one kind.
pub(super) struct Publisher<'a, S, K> {
    shared: &'a Shared<S>,
    client: &'a Client,
    known: BTreeMap<ObjectName, Known>,
    /// Objects whose status may differ, with the earliest time of a write.
    due: BTreeMap<ObjectName, Instant>,
    kind: PhantomData<K>,
}

impl<'a, S: Servers, K: CustomKind> Publisher<'a, S, K> {
    pub(super) fn new(shared: &'a Shared<S>, client: &'a Client) -> Self {
        Self { shared, client, known: BTreeMap::new(), due: BTreeMap::new(), kind: PhantomData }
    }

    /// Notes a decision about an object.
    pub(super) fn decide(&mut self, name: &ObjectName, decision: Decision) {
        let known = self.known.remove(name).filter(|known| known.decision.uid == decision.uid);
        let known = match known {
            Some(known) => Known { decision, ..known },
            None => Known { decision, status: Value::Null, former: Value::Null, written_at: None },
        };
        let at = known.written_at.map_or_else(Instant::now, |at| at + self.shared.settings.status_interval);
        self.due.insert(name.clone(), at);
        self.known.insert(name.clone(), known);
    }

    /// Forgets deleted objects. The counts of all others may have changed.
    pub(super) fn retain(&mut self, objects: &BTreeSet<ObjectName>) {
        self.known.retain(|name, _| objects.contains(name));
        self.due.retain(|name, _| objects.contains(name));
        for (name, known) in &self.known {
            let at =
                known.written_at.map_or_else(Instant::now, |at| at + self.shared.settings.status_interval);
            self.due.insert(name.clone(), at);
        }
    }

    /// Time of the next write.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Writes the statuses that differ, each at most once in an interval.
    pub(super) async fn publish(&mut self, rows: &BTreeMap<ObjectName, Stored<K>>) {
        let now = Instant::now();
        let due = self.due.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name.clone());
        let due: Vec<ObjectName> = due.take(ROUND).collect();
        let mut writes = Vec::new();
        for name in due {
            self.due.remove(&name);
            writes.extend(self.difference(&name, rows.get(&name)));
        }
        let (client, resource) = (self.client, K::resource());
        let writes = writes.into_iter().map(async |(name, uid, change, next)| {
            let target = Target { resource: &resource, namespace: None, name: name.as_str(), uid: &uid };
            (target.patch_status(client, change).await, name, next)
        });
        let mut results = futures::stream::iter(writes).buffer_unordered(KUBERNETES_READS_AT_ONCE);
        while let Some((result, name, next)) = results.next().await {
            let Some(known) = self.known.get_mut(&name) else { continue };
            known.written_at = Some(Instant::now());
            match result {
                Ok(()) => known.former = std::mem::replace(&mut known.status, next),
                Err(error) => {
                    self.shared.failed(&error);
                    self.due.insert(name, Instant::now() + self.shared.settings.status_interval);
                }
            }
        }
    }

    /// Uid, change and next status of an object whose status differs.
    fn difference(
        &mut self,
        name: &ObjectName,
        row: Option<&Stored<K>>,
    ) -> Option<(ObjectName, String, Value, Value)> {
        let known = self.known.get_mut(name)?;
        let (uid, shown, rollout) = {
            let mut views = self.shared.views();
            let facts = K::view(&mut views.custom).listed.get(name)?;
            let (uid, status) = (facts.uid.clone(), facts.status.clone());
            (uid, status, K::rollout(&views.custom, name).cloned())
        };
        if uid != known.decision.uid {
            return None;
        }
        if shown != known.status && shown != known.former || known.written_at.is_none() {
            // Another writer has changed it, or an earlier watcher has written it.
            known.status = shown;
        }
        let resource = row.map(|row| &row.status);
        let former = (&known.status, Timestamp::now());
        let next = status::<K>(&known.decision, resource, rollout.as_ref(), former);
        let change = changes(&known.status, &next);
        (next != known.status).then(|| (name.clone(), uid, change, next))
    }
}
