//! Index entries that follow from a single row, by table.

use crate::broken::broken;
use crate::command::{Link, Purpose};
use crate::invariant::{COUNT, ROW_OF_ID};
#[cfg(feature = "testing")]
use crate::state::Header;
use crate::state::id::{AllocationId, Id};
use crate::state::index::Index;
use crate::state::key::{ControllerKey, Waiter, node_of};
use crate::state::row::*;
use crate::state::shape::all_unassigned;
use crate::state::shared_names::SharedNames;
use crate::state::table::bytes_of;
use crate::state::{Occupant, State};
use crate::tree::{Tree, TreeSet};
use crate::value::Text;
use ipam_api::access::NodeKey;
use ipam_api::address::{AddressRange, number};
use ipam_api::resource::{EndpointKey, EndpointKind};
use std::fmt::Display;
use std::ops::{Add, Sub};
use std::panic::Location;
use std::sync::Arc;

/// Direction of a change of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A row is added.
    Enter,
    /// A row is removed.
    Leave,
}

impl Change {
    pub(crate) fn in_map<K: Ord + Clone, V: Clone>(self, map: &mut Tree<K, V>, key: K, value: V) {
        match self {
            Change::Enter => drop(map.insert(key, value)),
            Change::Leave => drop(map.remove(&key)),
        }
    }

    pub(crate) fn in_set<T: Ord + Clone>(self, set: &mut TreeSet<T>, item: T) {
        match self {
            Change::Enter => set.insert(item),
            Change::Leave => set.remove(&item),
        };
    }

    #[track_caller]
    pub(crate) fn in_count<N: Number>(self, count: &mut N, number: N) {
        match self {
            Change::Enter => *count = *count + number,
            Change::Leave => less(count, number),
        }
    }
}

/// A row that is found through the index.
pub(crate) trait Indexed: InRows {
    /// Adds or removes the entries of a row.
    fn change(&self, _id: Self::Id, _index: &mut Index, _change: Change) {}

    /// Returns true if the row has the same index entries as `old`, the row that it replaces.
    fn is_found_as(&self, _old: &Self) -> bool {
        false
    }

    /// Shares the memory of names that many rows contain. For tables that grow with the number of
    /// allocations.
    fn share_names(&mut self, _names: &mut SharedNames) {}
}

impl State {
    /// Writes a row and its entries of the index.
    pub(crate) fn write<T: Indexed>(&mut self, id: T::Id, mut row: T) {
        let Self { rows, index, ledger, names, .. } = self;
        row.share_names(names);
        let table = T::table_mut(rows);
        let old = table.put(id, row, ledger);
        let row = table.named(id);
        if let Some(old) = old {
            if row.is_found_as(&old) {
                return;
            }
            old.change(id, index, Change::Leave);
        }
        row.change(id, index, Change::Enter);
    }

    /// Removes a row and its entries of the index.
    pub(crate) fn erase<T: Indexed>(&mut self, id: T::Id) -> Option<Arc<T>> {
        let row = T::table_mut(&mut self.rows).remove(id, &mut self.ledger)?;
        row.change(id, &mut self.index, Change::Leave);
        Some(row)
    }

    /// Removes a row that another row or the index names.
    #[track_caller]
    pub(crate) fn erase_named<T: Indexed>(&mut self, id: T::Id) -> Arc<T> {
        match self.erase(id) {
            Some(row) => row,
            None => broken(ROW_OF_ID, format!("{} {id} at {}", T::WORD, Location::caller())),
        }
    }

    /// Derives the entries of all rows of a table.
    pub(super) fn enter_all<T: Indexed>(&mut self) {
        for (id, row) in T::table(&self.rows).iter() {
            row.change(id, &mut self.index, Change::Enter);
        }
    }
}

/// Writes that tests make, as a defect would: rows without their entries of the index.
#[cfg(feature = "testing")]
impl State {
    /// Returns the header, to be changed.
    pub fn spoil_header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Test access: writes a row without updating the index.
    #[expect(private_bounds, reason = "tests name the type of a row only")]
    pub fn spoil_row<T: Indexed>(&mut self, id: T::Id, row: T) {
        T::table_mut(&mut self.rows).put(id, row, &mut self.ledger);
    }

    /// Test access: removes a row without updating the index.
    #[expect(private_bounds, reason = "tests name the type of a row only")]
    pub fn spoil_without<T: Indexed>(&mut self, id: T::Id) {
        T::table_mut(&mut self.rows).remove(id, &mut self.ledger);
    }

    /// Writes a row of any size.
    pub(crate) fn write_of_any_size<T: Indexed>(&mut self, id: T::Id, row: T) {
        let table = T::table_mut(&mut self.rows);
        table.put_of_any_size(id, row, &mut self.ledger);
        table.named(id).change(id, &mut self.index, Change::Enter);
    }
}

/// Type of a count.
pub(crate) trait Number:
    Copy + Display + PartialOrd + Add<Output = Self> + Sub<Output = Self>
{
}

impl<N: Copy + Display + PartialOrd + Add<Output = N> + Sub<Output = N>> Number for N {}

/// Takes `less` from a count.
#[track_caller]
pub(crate) fn less<N: Number>(count: &mut N, less: N) {
    if *count < less {
        broken(COUNT, format!("{count} less {less} at {}", Location::caller()));
    }
    *count = *count - less;
}

/// Rows that are found by their name only, which they keep.
macro_rules! found_by_name {
    ($($type:ident)*) => {
        $(impl Indexed for $type {
            fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
                change.in_map(&mut index.names, (Self::KIND, self.name()), id.get());
            }

            fn is_found_as(&self, _: &Self) -> bool {
                true
            }
        })*
    };
}

found_by_name! { Network Node Namespace HostPolicy }

impl Indexed for Reservation {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_map(&mut index.names, (Self::KIND, self.name()), id.get());
        let Some(endpoint) = &self.spec.endpoint else { return };
        change.in_set(&mut index.records_of, (endpoint.clone(), id));
        for range in &self.spec.addresses {
            let key = (self.network, range.family(), range.first(), range.last(), id);
            change.in_set(&mut index.records, key);
        }
    }

    /// Name and network of a reservation are constant.
    fn is_found_as(&self, old: &Self) -> bool {
        let of = |row: &Self| row.spec.endpoint.clone().map(|key| (key, row.spec.addresses.clone()));
        of(self) == of(old)
    }
}

impl Indexed for PoolState {}
impl Indexed for Segment {}
impl Indexed for Member {}
impl Indexed for Epoch {}

impl Indexed for Subnet {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        let cidr = AddressRange::of_cidr(self.spec.cidr);
        change.in_map(&mut index.names, (Self::KIND, self.name()), id.get());
        change.in_map(&mut index.subnet_starts, (self.network, cidr.family(), cidr.first()), id);
        // Loading refuses a larger one.
        if self.spec.cidr.prefix_len() > 0 {
            change.in_map(&mut index.unassigned, id, Arc::new(all_unassigned(self.spec.cidr)));
        }
    }

    /// Name, network and CIDR of a subnet are constant.
    fn is_found_as(&self, _: &Self) -> bool {
        true
    }
}

impl Indexed for Pool {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_map(&mut index.names, (Self::KIND, self.name()), id.get());
        change.in_set(&mut index.pools_of_subnet, (self.subnet, self.automatic.is_some(), id));
        if let Some(automatic) = &self.automatic {
            change.in_set(&mut index.applications, (automatic.key(), id));
            index.count_automatic(automatic, change == Change::Enter);
        }
        if !self.spec.exclude.is_empty() {
            change.in_set(&mut index.excluding, (self.subnet, id));
        }
    }

    /// Name and subnet of a pool are constant.
    fn is_found_as(&self, old: &Self) -> bool {
        let of = |pool: &Self| pool.automatic.as_ref().map(|automatic| automatic.controller.clone());
        self.spec.exclude.is_empty() == old.spec.exclude.is_empty() && of(self) == of(old)
    }
}

impl Indexed for Endpoint {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_set(&mut index.endpoints, (self.key.clone(), id));
        if self.key.kind == EndpointKind::Host {
            change.in_set(&mut index.hosts, (self.key.realm.clone(), self.key.name.clone(), id));
        }
        if let Some(key) = ControllerKey::of(self) {
            change.in_set(&mut index.controllers, (key, id));
        }
        if let Some(waiting) = &self.waiting {
            change.in_map(&mut index.waiting, waiting.order, Waiter::Endpoint(id));
            for (of, need) in &waiting.missing {
                change.in_set(&mut index.waiting_for, (of.clone(), *need, waiting.order));
            }
            if let Some(node) = waiting.place() {
                index.usage.change(&node, |usage| change.in_count(&mut usage.waiting, 1));
            }
        }
    }

    /// The key of an endpoint is constant.
    fn is_found_as(&self, old: &Self) -> bool {
        self.waiting == old.waiting
            && self.controller == old.controller
            && self.sticky.is_some() == old.sticky.is_some()
    }

    fn share_names(&mut self, names: &mut SharedNames) {
        let EndpointKey { realm, kind: _, namespace, name: _ } = &mut self.key;
        names.share(realm);
        names.share(namespace);
        names.share(&mut self.meta.created_by);
        names.share(&mut self.meta.updated_by);
    }
}

impl Indexed for Attachment {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        index.attachments.change(&self.key, id, change);
        let node = node_of(&self.key);
        index.usage.change(&node, |usage| change.in_count(&mut usage.attachments, 1));
        index.inventories.change(node, id, self, change);
    }

    /// The key of an attachment is constant.
    fn is_found_as(&self, old: &Self) -> bool {
        self.allocations == old.allocations
    }

    fn share_names(&mut self, names: &mut SharedNames) {
        names.share_attachment(&mut self.key);
        names.share(&mut self.started.boot_id);
    }
}

impl Indexed for Allocation {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        index.occupants.change(self.network, self.address, Occupant::Allocation(id), change);
        if let Source::Node(node) = &self.source {
            index.usage.change(node, |usage| change.in_count(&mut usage.allocations, 1));
        }
    }

    /// Address and source of an allocation are constant. The index of leases follows from several tables.
    fn is_found_as(&self, _: &Self) -> bool {
        true
    }

    fn share_names(&mut self, names: &mut SharedNames) {
        names.share(&mut self.interface);
        names.share(&mut self.created_by);
        self.node.iter_mut().for_each(|node| names.share(node));
        if let Source::Node(NodeKey { realm, name }) = &mut self.source {
            names.share(realm);
            names.share(name);
        }
    }
}

impl Indexed for Tombstone {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        index.tombstones.change(&self.key, id, change);
        change.in_set(&mut index.tombstones_of_node, (self.node, id));
        let left = index.tombstone_counts.change(self.node, |count| {
            change.in_count(count, 1);
            *count
        });
        if left == 0 {
            index.tombstone_counts.remove(&self.node);
        }
    }

    fn share_names(&mut self, names: &mut SharedNames) {
        names.share_attachment(&mut self.key);
        self.releases.iter_mut().for_each(|release| names.share(&mut release.boot_id));
    }
}

impl Indexed for Cooling {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        index.occupants.change(self.network, self.address, Occupant::Cooling(id), change);
        change.in_set(&mut index.unheld, (self.network, self.address));
        change.in_set(&mut index.cooling_until, (self.until_ms, id));
    }
}

impl Indexed for BootHistory {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_map(&mut index.boots, (self.realm.clone(), self.name.clone()), id);
    }

    /// The node of a boot history is constant.
    fn is_found_as(&self, _: &Self) -> bool {
        true
    }
}

impl Indexed for NodeReport {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_map(&mut index.reports, self.node.clone(), id);
        change.in_set(&mut index.heard, (self.heard_ms, id));
        for Link { network, cidr } in &self.links {
            let key = (network.clone(), *cidr);
            let is_unused = index.links.change(key.clone(), |nodes| {
                change.in_set(nodes, self.node.clone());
                nodes.is_empty()
            });
            if is_unused {
                index.links.remove(&key);
            }
        }
    }

    /// The node of a report is constant.
    fn is_found_as(&self, old: &Self) -> bool {
        self.heard_ms == old.heard_ms && self.links == old.links
    }
}

impl Indexed for ReportedPod {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_map(&mut index.pod_uids, (self.endpoint.realm.clone(), Text::clone(&self.uid)), id);
    }

    /// Realm and uid of a reported pod are constant.
    fn is_found_as(&self, _: &Self) -> bool {
        true
    }
}

impl Indexed for ReportedRealm {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_map(&mut index.pod_realms, self.realm.clone(), id);
        change.in_set(&mut index.verified_until, (self.until_ms, id));
    }
}

impl Indexed for Quarantine {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        index.occupants.change(self.network, self.address, Occupant::Quarantine(id), change);
        change.in_set(&mut index.unheld, (self.network, self.address));
        change.in_set(&mut index.quarantined, (self.network, self.address));
        if self.confirmed_by.is_none() {
            index.usage.change(&self.reported_by, |usage| change.in_count(&mut usage.quarantines, 1));
        }
    }

    /// Address and reporter of a quarantine are constant.
    fn is_found_as(&self, old: &Self) -> bool {
        self.confirmed_by.is_none() == old.confirmed_by.is_none()
    }
}

impl Indexed for Check {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_set(&mut index.checks_until, (self.until_ms, id));
    }
}

impl Indexed for Neighbor {
    fn change(&self, id: AllocationId, index: &mut Index, change: Change) {
        if self.other.is_some() {
            change.in_set(&mut index.collisions, (self.pool, id));
        }
    }
}

impl Indexed for Token {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_map(&mut index.names, (Self::KIND, self.name()), id.get());
        change.in_map(&mut index.token_secrets, self.secret_hash, id);
        if let Some(until_ms) = self.expires_ms {
            change.in_set(&mut index.token_ends, (until_ms, id));
        }
        if let (Some(node), Purpose::Bearer) = (&self.grant.node, self.purpose) {
            change.in_set(&mut index.node_tokens, (node.clone(), id));
        }
    }
}

impl Indexed for Replay {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        let bytes = bytes_of(self);
        change.in_map(&mut index.replays, (self.principal.clone(), self.key.clone()), id);
        change.in_set(&mut index.replays_of, (self.principal.clone(), id));
        index.use_for_replays(&self.principal, |usage| {
            change.in_count(&mut usage.keys, 1);
            change.in_count(&mut usage.bytes, bytes);
        });
        change.in_count(&mut index.replay_bytes, bytes);
    }
}

impl Indexed for Prefix {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        let range = AddressRange::of_cidr(self.cidr);
        change.in_map(&mut index.blocks, (self.parent, range.first()), (range.last(), id));
        change.in_map(&mut index.prefix_owners, (self.parent, self.owner.clone()), id);
        change.in_set(&mut index.prefixes_owned, self.owner.key(id.get()));
        if let Some(until_ms) = self.until_ms {
            change.in_set(&mut index.prefix_until, (until_ms, id));
        }
    }
}

impl Indexed for PrefixClaim {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_map(&mut index.waiting, id.get(), Waiter::Prefix(id));
        change.in_map(&mut index.prefix_claims, self.path(), id);
        change.in_set(&mut index.claims_from, (self.source(), id));
        change.in_set(&mut index.prefixes_owned, self.owner.key(id.get()));
        let Some(MissingBlock { of, need, owner }) = &self.missing else { return };
        change.in_set(&mut index.waiting_for, (of.clone(), *need, id.get()));
        if let WaitTarget::Block(parent) = of {
            change.in_set(&mut index.awaited_prefixes, (*parent, owner.clone(), id));
        }
    }

    /// Source and owners of a claim are constant, also when its request is replaced.
    fn is_found_as(&self, old: &Self) -> bool {
        self.missing == old.missing
    }
}

impl Indexed for PrefixCooling {
    fn change(&self, id: Id<Self>, index: &mut Index, change: Change) {
        change.in_set(&mut index.prefix_coolings_of, (self.parent, id));
        change.in_map(&mut index.prefix_cooling_at, (self.parent, number(self.address)), id);
        change.in_map(&mut index.prefix_cooling_owners, (self.parent, self.owner.clone()), id);
        change.in_set(&mut index.prefix_cooling_until, (self.until_ms, id));
    }
}
