//! Statuses of the pools of host addresses (`NodeIPPool`).

use std::collections::BTreeMap;

use futures::StreamExt as _;
use ipam_api::Problem;
use ipam_api::client::{Call, with_query};
use ipam_api::limits::{KUBERNETES_READS_AT_ONCE, NODE_POOL_OFFSETS_MAX, PAGE_ITEMS_MAX};
use ipam_api::name::ObjectName;
use ipam_api::resource::{Allocation, Page};
use ipam_api::time::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use crate::connection::Target;
use crate::custom::changes;
use crate::node_pools::{Held, Known, Own, PoolFacts, Shown, kind, status};
use crate::servers::{Servers, path};
use crate::shared::Shared;

/// Findings of a round.
pub(super) struct Findings<'a> {
    pub(super) pools: &'a BTreeMap<ObjectName, Own>,
    pub(super) refusals: &'a BTreeMap<ObjectName, Problem>,
    pub(super) known: &'a Known<'a>,
}

/// Status that was written.
struct Written {
    uid: String,
    status: Value,
    /// Status before: the watch may still show it.
    former: Value,
    at: Instant,
}

/// Writer of the statuses.
pub(super) struct NodePoolPublisher<'a, S> {
    shared: &'a Shared<S>,
    client: &'a Client,
    written: BTreeMap<ObjectName, Written>,
}

impl<'a, S: Servers> NodePoolPublisher<'a, S> {
    pub(super) fn new(shared: &'a Shared<S>, client: &'a Client) -> Self {
        Self { shared, client, written: BTreeMap::new() }
    }

    /// All objects, each with the newest status that is known.
    fn objects(&mut self) -> Vec<(ObjectName, PoolFacts)> {
        let mut objects: Vec<(ObjectName, PoolFacts)> = {
            let views = self.shared.views();
            views.node_pools.listed.iter().map(|(name, facts)| (name.clone(), facts.clone())).collect()
        };
        let mut written = std::mem::take(&mut self.written);
        for (name, facts) in &mut objects {
            let Some(known) = written.remove(name).filter(|known| known.uid == facts.uid) else { continue };
            if facts.status == known.former || facts.status == known.status {
                facts.status = known.status.clone();
                self.written.insert(name.clone(), known);
            }
        }
        objects
    }

    /// Shows which objects are about to be compared after a change or a reset.
    pub(super) async fn announce(&mut self) {
        let pending = self.objects().into_iter().filter(|(_, facts)| facts.is_pending());
        let writes = pending.map(|(name, facts)| {
            let next = status(&facts, &Shown::Pending, None, &facts.status, Timestamp::now());
            (name, facts, next)
        });
        self.write(writes.collect()).await;
    }

    /// Shows that the servers give no answer.
    pub(super) async fn unreachable(&mut self, problem: &Problem) {
        let writes = self.objects().into_iter().map(|(name, facts)| {
            let next = status(&facts, &Shown::Unreachable(problem), None, &facts.status, Timestamp::now());
            (name, facts, next)
        });
        self.write(writes.collect()).await;
    }

    /// Writes the statuses that differ. Counts alone are written once in an interval.
    ///
    /// # Errors
    /// Failure of a read of allocations.
    pub(super) async fn publish(&mut self, findings: &Findings<'_>) -> Result<(), Problem> {
        let objects = self.objects();
        let servers = &self.shared.servers;
        let reads = objects.into_iter().map(async |(name, facts)| {
            let pool = findings.pools.get(&name);
            let held = match pool {
                Some(own) => held(servers, own).await?,
                None => Held::default(),
            };
            Ok::<_, Problem>((name, facts, held))
        });
        let reads: Vec<_> =
            futures::stream::iter(reads).buffer_unordered(KUBERNETES_READS_AT_ONCE).collect().await;
        let (mut writes, mut failure) = (Vec::new(), None);
        for read in reads {
            match read {
                Ok((name, facts, held)) => {
                    let shown = match findings.refusals.get(&name) {
                        Some(problem) => {
                            let others = findings.known.overlapping(&name).cloned().collect();
                            Shown::Refused(problem, others)
                        }
                        None => Shown::Applied,
                    };
                    let pool = findings.pools.get(&name).map(|own| (own, &held));
                    let next = status(&facts, &shown, pool, &facts.status, Timestamp::now());
                    if self.may_write(&name, &facts, &next) {
                        writes.push((name, facts, next));
                    }
                }
                Err(problem) => failure = Some(problem),
            }
        }
        self.write(writes).await;
        failure.map_or(Ok(()), Err)
    }

    /// True if the status has another reason, generation or reset, or if the interval is over.
    fn may_write(&self, name: &ObjectName, facts: &PoolFacts, next: &Value) -> bool {
        let main = |status: &Value| {
            let fields = ["/observedGeneration", "/observedReset", "/conditions/0/reason"];
            fields.map(|field| status.pointer(field).cloned().unwrap_or_default())
        };
        let written = self.written.get(name);
        written.is_none_or(|written| written.at.elapsed() >= self.shared.settings.status_interval)
            || main(&facts.status) != main(next)
    }

    async fn write(&mut self, writes: Vec<(ObjectName, PoolFacts, Value)>) {
        let resource = kind();
        let writes = writes.into_iter().filter(|(_, facts, next)| facts.status != *next);
        let client = self.client;
        let writes = writes.map(async |(name, facts, next)| {
            let resource = &resource;
            let target = Target { resource, namespace: None, name: name.as_str(), uid: &facts.uid };
            let change = changes(&facts.status, &next);
            (target.patch_status(client, change).await, name.clone(), facts, next)
        });
        let mut results = futures::stream::iter(writes).buffer_unordered(KUBERNETES_READS_AT_ONCE);
        while let Some((result, name, facts, next)) = results.next().await {
            match result {
                Ok(()) => {
                    let at = Instant::now();
                    let written = Written { uid: facts.uid, status: next, former: facts.status, at };
                    self.written.insert(name, written);
                }
                Err(error) => self.shared.failed(&error),
            }
        }
    }
}

/// Held addresses of a pool, as far as its object shows them.
async fn held(servers: &impl Servers, own: &Own) -> Result<Held, Problem> {
    if own.status.counts.allocated == 0 {
        return Ok(Held::default());
    }
    let mut held = Held::default();
    let list = with_query(&path(&["allocations"]), "pool", own.row.spec.name.as_str());
    let list = with_query(&list, "limit", &PAGE_ITEMS_MAX.to_string());
    let mut next: Option<String> = None;
    loop {
        let mut call = Call::get(list.as_str());
        if let Some(cursor) = &next {
            call = call.query("cursor", cursor);
        }
        let page: Page<Allocation> = servers.send(call).await?.read()?;
        held.allocations.extend(page.items);
        next = page.next;
        if next.is_none() || held.allocations.len() > NODE_POOL_OFFSETS_MAX {
            held.has_more = held.allocations.len() > NODE_POOL_OFFSETS_MAX;
            return Ok(held);
        }
    }
}
