//! Ends of leases: by their own time, or by the newest heartbeat of their node.
//!
//! A heartbeat renews all leases of its node. It writes one row, and no row of a lease: a lease of a node
//! with a report ends at the later of its own end and its TTL after the heartbeat. So the index groups
//! leases by node, and a heartbeat moves only the leases that were written since the one before it.

use crate::state::State;
use crate::state::id::{AllocationId, Id};
use crate::state::index::Part;
use crate::state::indexed::Change;
use crate::state::row::{Allocation, Lease, Neighbor, NodeReport};
use crate::tree::{Tree, TreeSet};
use ipam_api::access::NodeKey;
use ipam_api::name::Name;

/// Leases by the end that they have with the heartbeats of their nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LeaseIndex {
    /// Leases by their node, if they have one; no group is empty.
    groups: Tree<Option<NodeKey>, Group>,
    /// First lease of each group.
    firsts: TreeSet<(u64, AllocationId, Option<NodeKey>)>,
}

/// Leases of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Group {
    /// Log time of the newest heartbeat, if the node has a report.
    heard_ms: Option<u64>,
    /// Leases that the heartbeat renewed: TTL and id.
    renewed: TreeSet<(u64, AllocationId)>,
    /// Leases that are newer than the heartbeat: own end, id and TTL.
    fresh: TreeSet<(u64, AllocationId, u64)>,
}

impl Part for LeaseIndex {
    /// Merges nothing: the entries follow from several tables, after all lanes are merged.
    fn take_in(&mut self, _: Self) {}
}

impl Lease {
    /// Returns the end of the lease if its node was heard at a log time.
    fn end_ms(&self, heard_ms: Option<u64>) -> u64 {
        heard_ms.map_or(self.until_ms, |heard_ms| self.until_ms.max(heard_ms.saturating_add(self.ttl_ms)))
    }
}

impl Group {
    fn is_renewed(&self, until_ms: u64, ttl_ms: u64) -> bool {
        self.heard_ms.is_some_and(|heard_ms| until_ms <= heard_ms.saturating_add(ttl_ms))
    }

    fn change(&mut self, id: AllocationId, lease: &Lease, change: Change) {
        let Lease { ttl_ms, until_ms, until_wall_ms: _ } = *lease;
        if self.is_renewed(until_ms, ttl_ms) {
            change.in_set(&mut self.renewed, (ttl_ms, id));
        } else {
            change.in_set(&mut self.fresh, (until_ms, id, ttl_ms));
        }
    }

    /// Renews the leases by a heartbeat, which is later than the one before.
    fn hear(&mut self, heard_ms: u64) {
        self.heard_ms = Some(heard_ms);
        for (until_ms, id, ttl_ms) in std::mem::take(&mut self.fresh).iter().copied() {
            if self.is_renewed(until_ms, ttl_ms) {
                self.renewed.insert((ttl_ms, id));
            } else {
                self.fresh.insert((until_ms, id, ttl_ms));
            }
        }
    }

    /// End and id of the lease that ends first.
    fn first(&self) -> Option<(u64, AllocationId)> {
        let heard_ms = self.heard_ms.unwrap_or_default();
        let renewed = self.renewed.first().map(|(ttl_ms, id)| (heard_ms.saturating_add(*ttl_ms), *id));
        let fresh = self.fresh.first().map(|(until_ms, id, _)| (*until_ms, *id));
        renewed.into_iter().chain(fresh).min()
    }
}

impl LeaseIndex {
    /// End and id of the lease that ends first.
    pub(crate) fn first(&self) -> Option<(u64, AllocationId)> {
        self.firsts.first().map(|(end_ms, id, _)| (*end_ms, *id))
    }

    fn has(&self, node: &NodeKey) -> bool {
        self.groups.get(&Some(node.clone())).is_some()
    }

    /// Changes a group, and then its place among the others.
    fn change(&mut self, node: Option<NodeKey>, change: impl FnOnce(&mut Group)) {
        let (before, after) = self.groups.change(node.clone(), |group| {
            let before = group.first();
            change(group);
            (before, group.first())
        });
        if before == after {
            return;
        }
        if let Some((end_ms, id)) = before {
            self.firsts.remove(&(end_ms, id, node.clone()));
        }
        match after {
            Some((end_ms, id)) => drop(self.firsts.insert((end_ms, id, node))),
            None => drop(self.groups.remove(&node)),
        }
    }
}

impl State {
    /// Newest report of a node's agent.
    #[must_use]
    pub fn report_of(&self, node: &NodeKey) -> Option<(Id<NodeReport>, &NodeReport)> {
        let id = *self.index.reports.get(node)?;
        Some((id, self.reports.named(id)))
    }

    /// Lease of an allocation with its present end: heartbeats of its node count.
    #[must_use]
    pub fn lease_of(&self, row: &Allocation) -> Option<Lease> {
        let lease = row.lease.as_ref()?;
        let node = self.endpoints.get(row.endpoint).and_then(|holder| node_of_lease(row, &holder.key.realm));
        let report = node.and_then(|node| self.report_of(&node)).map(|(_, report)| report);
        let heard_wall_ms = report.map_or(0, |report| report.heard_wall_ms.saturating_add(lease.ttl_ms));
        Some(Lease {
            ttl_ms: lease.ttl_ms,
            until_ms: lease.end_ms(report.map(|report| report.heard_ms)),
            until_wall_ms: lease.until_wall_ms.max(heard_wall_ms),
        })
    }

    /// Returns true if the node's heartbeats renew a lease.
    pub(crate) fn has_leases(&self, node: &NodeKey) -> bool {
        self.index.leases.has(node)
    }

    /// Writes an allocation of an endpoint of a realm, with the entries of its lease.
    pub(crate) fn write_allocation(&mut self, id: AllocationId, row: Allocation, realm: &Name) {
        if let Some(old) = self.allocations.get(id).filter(|old| old.lease.is_some()).cloned() {
            self.change_lease(id, &old, realm, Change::Leave);
        }
        if row.lease.is_some() {
            self.change_lease(id, &row, realm, Change::Enter);
        }
        self.write(id, row);
    }

    /// Writes an allocation again, with the entries of its lease.
    pub(crate) fn rewrite_allocation(&mut self, id: AllocationId, row: Allocation) {
        let is_leased = |row: &Allocation| row.lease.is_some();
        if !is_leased(&row) && !self.allocations.get(id).is_some_and(is_leased) {
            return self.write(id, row);
        }
        let realm = self.endpoints.named(row.endpoint).key.realm.clone();
        self.write_allocation(id, row, &realm);
    }

    /// Removes an allocation, with the entries of its lease. Its endpoint is still there.
    pub(crate) fn erase_allocation(&mut self, id: AllocationId) {
        self.erase::<Neighbor>(id);
        let Some(row) = self.erase::<Allocation>(id).filter(|row| row.lease.is_some()) else { return };
        let realm = self.endpoints.named(row.endpoint).key.realm.clone();
        self.change_lease(id, &row, &realm, Change::Leave);
    }

    /// Renews the leases of a node by a heartbeat.
    pub(crate) fn renew_leases_of(&mut self, node: &NodeKey, heard_ms: u64) {
        if self.has_leases(node) {
            self.index.leases.change(Some(node.clone()), |group| group.hear(heard_ms));
        }
    }

    /// Derives the entries of all leases, once all rows are there.
    pub(super) fn index_leases(&mut self) {
        let leased = self.allocations.iter().filter(|(_, row)| row.lease.is_some());
        let leased: Vec<(AllocationId, Allocation)> = leased.map(|(id, row)| (id, row.clone())).collect();
        for (id, row) in leased {
            let realm = self.endpoints.named(row.endpoint).key.realm.clone();
            self.change_lease(id, &row, &realm, Change::Enter);
        }
    }

    fn change_lease(&mut self, id: AllocationId, row: &Allocation, realm: &Name, change: Change) {
        let Some(lease) = &row.lease else { return };
        let node = node_of_lease(row, realm);
        let report = node.as_ref().and_then(|node| self.report_of(node));
        let heard_ms = report.map(|(_, report)| report.heard_ms);
        self.index.leases.change(node, |group| {
            group.heard_ms = heard_ms;
            group.change(id, lease, change);
        });
    }
}

/// Node whose heartbeats renew a lease.
fn node_of_lease(row: &Allocation, realm: &Name) -> Option<NodeKey> {
    let name = row.node.clone()?;
    Some(NodeKey { realm: realm.clone(), name })
}
