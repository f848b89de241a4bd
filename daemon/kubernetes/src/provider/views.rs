//! Objects of the management cluster, and the answers of the servers about them.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::name::{Name, ObjectName};
use ipam_api::{Code, Family, Problem};
use kube::runtime::watcher::Event;

use super::index::Index;
use super::queue::Queue;
use crate::cluster_api::{
    AddressFacts, AddressSpec, ClaimFacts, ClusterFacts, ClusterState, Key, PoolFacts, PoolKey, PoolKind,
    Shown,
};
use crate::listed::{Change, Listed};

/// Objects, and what is to be done for them.
#[derive(Debug, Default)]
pub(super) struct Views {
    pub(super) claims: Listed<Key, ClaimFacts>,
    pub(super) addresses: Listed<Key, AddressFacts>,
    pub(super) clusters: Listed<Key, ClusterFacts>,
    /// True while the API server serves no Clusters.
    pub(super) has_no_clusters: bool,
    pools: BTreeMap<PoolKind, Listed<PoolKey, PoolFacts>>,
    /// Claims, and objects of claims, whose next step may differ.
    pub(super) due_claims: Queue<Key>,
    claims_by_pool: Index<PoolKey, Key>,
    /// Claims by namespace and Cluster.
    claims_by_cluster: Index<Key, Key>,
    addresses_by_pool: Index<PoolKey, Key>,
    pub(super) due_pools: Queue<PoolKey>,
    /// Pools whose counts differ from those that were read last.
    pub(super) changed_pools: BTreeSet<PoolKey>,
    pub(super) answers: BTreeMap<Key, ClaimAnswer>,
    pub(super) states: BTreeMap<PoolKey, PoolState>,
    /// Claims that wait, by their pools in ipamd.
    pub(super) waiting: BTreeMap<Name, Waiting>,
}

/// Newest answer of the servers about a claim.
#[derive(Debug, Clone, Default)]
pub(super) struct ClaimAnswer {
    /// Allocated address.
    pub(super) granted: Option<AddressSpec>,
    /// Refusal, until the claim is tried again.
    pub(super) refusal: Option<Shown>,
    /// Number of refused releases.
    pub(super) releases: u32,
}

/// State of a pool in ipamd.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PoolState {
    /// The pool serves claims.
    Ready(ReadyPool),
    /// The spec can't be applied.
    Refused(Problem),
    /// The spec was not applied yet: the servers don't answer.
    Unreached(Problem),
}

/// Pool that serves claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadyPool {
    /// Name in ipamd.
    pub(super) name: Name,
    pub(super) family: Family,
    /// Length of a delegated prefix.
    pub(super) length: Option<u8>,
    /// Prefix length and router of an address, if the object determines them.
    pub(super) prefix: Option<u8>,
    pub(super) gateway: Option<String>,
}

/// Claims that wait for one pool.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Position up to which events were read: a revision, or an event of a revision.
    pub(super) after: String,
    pub(super) claims: BTreeSet<Key>,
}

impl Waiting {
    /// Adds a claim that waits since a revision. Events after this revision are read again if necessary.
    pub(super) fn add(&mut self, key: Key, revision: u64) {
        if self.claims.is_empty() || revision < self.revision() {
            self.after = revision.to_string();
        }
        self.claims.insert(key);
    }

    /// Records the position up to which events were read.
    pub(super) fn go_on(&mut self, place: String) {
        self.after = place;
    }

    fn revision(&self) -> u64 {
        self.after.split('.').next().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

impl Views {
    pub(super) fn is_synced(&self) -> bool {
        let are_pools = PoolKind::ALL.iter().all(|kind| self.pools.get(kind).is_some_and(Listed::is_synced));
        let are_clusters = self.clusters.is_synced() || self.has_no_clusters;
        self.claims.is_synced() && self.addresses.is_synced() && are_clusters && are_pools
    }

    pub(super) fn pool(&self, key: &PoolKey) -> Option<&PoolFacts> {
        self.pools.get(&key.kind)?.get(key)
    }

    /// Number of pools.
    pub(super) fn pool_count(&self) -> usize {
        self.pools.values().map(Listed::len).sum()
    }

    /// Pools that serve claims.
    pub(super) fn ready_pools(&self) -> impl Iterator<Item = &PoolKey> {
        let ready = self.states.iter().filter(|(_, state)| matches!(state, PoolState::Ready(_)));
        ready.map(|(key, _)| key)
    }

    pub(super) fn pools_of(&mut self, kind: PoolKind) -> &mut Listed<PoolKey, PoolFacts> {
        self.pools.entry(kind).or_default()
    }

    pub(super) fn cluster_state(&self, namespace: &ObjectName, claim: &ClaimFacts) -> ClusterState {
        let Some(cluster) = &claim.cluster else { return ClusterState::None };
        match self.clusters.get(&(namespace.clone(), cluster.clone())) {
            None => ClusterState::Missing,
            Some(facts) if facts.is_paused => ClusterState::Paused,
            Some(_) => ClusterState::Running,
        }
    }

    /// Claims that name a pool.
    pub(super) fn claims_of(&self, pool: &PoolKey) -> Vec<Key> {
        self.claims_by_pool.of(pool).cloned().collect()
    }

    /// True while a claim on a pool has an address.
    pub(super) fn has_addresses(&self, pool: &PoolKey) -> bool {
        let is_granted = |key: &Key| self.answers.get(key).is_some_and(|answer| answer.granted.is_some());
        self.addresses_by_pool.of(pool).next().is_some() || self.claims_by_pool.of(pool).any(is_granted)
    }

    /// Tries a claim again.
    pub(super) fn retry(&mut self, key: Key) {
        if let Some(answer) = self.answers.get_mut(&key) {
            answer.refusal = None;
        }
        self.due_claims.insert(key);
    }

    /// Forgets a deleted claim.
    pub(super) fn forget(&mut self, key: &Key) {
        self.answers.remove(key);
        self.stop_waiting(key);
    }

    pub(super) fn stop_waiting(&mut self, key: &Key) {
        self.waiting.retain(|_, waiting| {
            waiting.claims.remove(key);
            !waiting.claims.is_empty()
        });
    }

    pub(super) fn claim_event(&mut self, event: Event<Option<(Key, ClaimFacts)>>) {
        for change in self.claims.event(event) {
            let key = match change {
                Change::Put(key, former) => {
                    let is_another =
                        self.claims.get(&key).zip(former.as_ref()).is_none_or(|(claim, former)| {
                            claim.metadata.uid != former.metadata.uid || claim.requested != former.requested
                        });
                    if is_another {
                        self.forget(&key);
                    }
                    former.iter().for_each(|former| self.unlink(&key, former));
                    self.link(&key);
                    key
                }
                Change::Deleted(key, former) | Change::Missing(key, former) => {
                    self.unlink(&key, &former);
                    self.forget(&key);
                    self.due_pools.insert(former.pool);
                    key
                }
            };
            self.due_claims.insert(key);
        }
    }

    /// Adds a claim to its pool and its Cluster.
    fn link(&mut self, key: &Key) {
        let Some(claim) = self.claims.get(key) else { return };
        self.claims_by_pool.insert(claim.pool.clone(), key.clone());
        if let Some(cluster) = &claim.cluster {
            self.claims_by_cluster.insert((key.0.clone(), cluster.clone()), key.clone());
        }
    }

    fn unlink(&mut self, key: &Key, former: &ClaimFacts) {
        self.claims_by_pool.remove(&former.pool, key);
        if let Some(cluster) = &former.cluster {
            self.claims_by_cluster.remove(&(key.0.clone(), cluster.clone()), key);
        }
    }

    pub(super) fn address_event(&mut self, event: Event<Option<(Key, AddressFacts)>>) {
        for change in self.addresses.event(event) {
            let (key, former) = match change {
                Change::Put(key, former) => (key, former),
                Change::Deleted(key, former) | Change::Missing(key, former) => (key, Some(former)),
            };
            if let Some(former) = &former {
                self.addresses_by_pool.remove(&former.pool, &key);
            }
            if let Some(address) = self.addresses.get(&key) {
                self.addresses_by_pool.insert(address.pool.clone(), key.clone());
            }
            self.due_claims.insert(key);
        }
    }

    pub(super) fn cluster_event(&mut self, event: Event<Option<(Key, ClusterFacts)>>) {
        for change in self.clusters.event(event) {
            let (Change::Put(key, _) | Change::Deleted(key, _) | Change::Missing(key, _)) = change;
            let claims: Vec<Key> = self.claims_by_cluster.of(&key).cloned().collect();
            self.due_claims.extend(claims);
        }
    }

    pub(super) fn pool_event(&mut self, kind: PoolKind, event: Event<Option<(PoolKey, PoolFacts)>>) {
        for change in self.pools_of(kind).event(event) {
            let (key, concerns_claims) = match change {
                Change::Put(key, former) => {
                    let differs = former
                        .is_none_or(|former| self.pool(&key).is_none_or(|facts| facts.differs_from(&former)));
                    (key, differs)
                }
                Change::Deleted(key, _) | Change::Missing(key, _) => {
                    self.states.remove(&key);
                    self.retry_overlapping();
                    (key, true)
                }
            };
            if concerns_claims {
                self.retry_claims_of(&key);
            }
            self.due_pools.insert(key);
        }
    }

    /// Retries pools that overlap with others, because a pool was deleted.
    fn retry_overlapping(&mut self) {
        let is_overlapping = |state: &PoolState| match state {
            PoolState::Refused(problem) => problem.code == Code::Overlap,
            PoolState::Ready(_) | PoolState::Unreached(_) => false,
        };
        let all = self.states.iter().filter(|(_, state)| is_overlapping(state));
        let all: Vec<PoolKey> = all.map(|(key, _)| key.clone()).collect();
        self.due_pools.extend(all);
    }

    /// Tries the claims of a pool again.
    pub(super) fn retry_claims_of(&mut self, pool: &PoolKey) {
        for key in self.claims_of(pool) {
            self.retry(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_that_waits_since_before_the_known_events_gets_them_again() {
        let key = |name: &str| (ObjectName::new("shop").unwrap(), ObjectName::new(name).unwrap());
        let mut waiting = Waiting::default();
        waiting.add(key("a"), 10);
        assert_eq!(waiting.after, "10");
        waiting.add(key("b"), 12);
        assert_eq!(waiting.after, "10");
        // A page may end inside of a revision.
        waiting.go_on("14.63".to_owned());
        waiting.add(key("c"), 11);
        assert_eq!(waiting.after, "11");
    }

    #[test]
    fn claims_are_found_by_their_pool_and_their_cluster_until_they_are_gone() {
        let claim = |pool: &str| {
            let reference = json!({"apiGroup": "ipam.ipamd.internal", "kind": "IPPool", "name": pool});
            let object = json!({
                "metadata": {"name": "m-0", "namespace": "shop", "uid": pool},
                "spec": {"poolRef": reference, "clusterName": "prod"},
            });
            ClaimFacts::of(serde_json::from_value(object).unwrap(), None).unwrap()
        };
        let (key, first) = claim("first");
        let second = claim("second").1;
        let mut views = Views::default();
        let cluster = (key.0.clone(), ObjectName::new("prod").unwrap());
        let found = |views: &Views| {
            let of_pools = [&first, &second].map(|claim| views.claims_of(&claim.pool).len());
            (of_pools, views.claims_by_cluster.of(&cluster).count())
        };
        views.claim_event(Event::Apply(Some((key.clone(), first.clone()))));
        assert_eq!(found(&views), ([1, 0], 1));
        views.claim_event(Event::Apply(Some((key.clone(), second.clone()))));
        assert_eq!(found(&views), ([0, 1], 1));
        // A list lacks the object.
        views.claim_event(Event::Init);
        views.claim_event(Event::InitDone);
        assert_eq!(found(&views), ([0, 0], 0));
    }

    #[test]
    fn pools_that_overlap_are_tried_again_once_another_is_gone() {
        let pool = |name: &str| {
            let object = json!({"metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": {}});
            PoolFacts::of(PoolKind::Ip, serde_json::from_value(object).unwrap(), None).unwrap()
        };
        let mut views = Views::default();
        let refused = |code| PoolState::Refused(Problem::new(code, "x"));
        for (name, code) in [("second", Code::Overlap), ("third", Code::InvalidField)] {
            views.states.insert(pool(name).0, refused(code));
        }
        views.pool_event(PoolKind::Ip, Event::Delete(Some(pool("first"))));
        let due: Vec<PoolKey> = std::iter::from_fn(|| views.due_pools.take(&BTreeSet::new())).collect();
        let due: Vec<&str> = due.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(due, ["second", "first"]);
    }
}
