//! Index entries of rows, by table: those that a row has by itself.

use crate::broken::broken;
use crate::command::{Kind, Text};
use crate::invariant::{COUNT, ROW_OF_ID};
#[cfg(feature = "testing")]
use crate::state::Header;
use crate::state::id::Id;
use crate::state::index::Index;
use crate::state::key::{ControllerKey, node_of};
use crate::state::row::{
    Allocation, Attachment, Boots, Cooling, Endpoint, Generation, Member, Namespace, Network, Node, Pool,
    PoolState, Prefix, Replay, Reservation, Source, Subnet, Token, Tombstone,
};
use crate::state::shape::all_spare;
use crate::state::table::{Ledger, Row, Table};
use crate::state::{Occupant, State};
use crate::value::row::Segment;
use ipam_api::address::AddressRange;
use std::fmt::Display;
use std::ops::Sub;
use std::panic::Location;
use std::sync::Arc;

/// A row that is found through the index.
pub(crate) trait Indexed: Row {
    /// Its table, the index and the ledger.
    fn parts(state: &mut State) -> (&mut Table<Self>, &mut Index, &mut Ledger);

    /// Adds the entries of a row that has so many bytes.
    fn enter(&self, _id: Self::Id, _bytes: u64, _index: &mut Index) {}

    /// Removes the entries of a row that had so many bytes.
    fn leave(&self, _id: Self::Id, _bytes: u64, _index: &mut Index) {}

    /// True if the row has the entries of `old`, the row that it replaces.
    fn is_found_as(&self, _old: &Self) -> bool {
        false
    }
}

impl State {
    /// Writes a row and its entries of the index.
    pub(crate) fn write<T: Indexed>(&mut self, id: T::Id, row: T) {
        let (table, index, ledger) = T::parts(self);
        let old = table.put(id, row, ledger);
        let Some((row, bytes)) = table.entry(id) else { broken(ROW_OF_ID, format!("{} {id}", T::WORD)) };
        if let Some((old, old_bytes)) = old {
            if row.is_found_as(&old) {
                return;
            }
            old.leave(id, old_bytes, index);
        }
        row.enter(id, bytes, index);
    }

    /// Removes a row and its entries of the index.
    pub(crate) fn erase<T: Indexed>(&mut self, id: T::Id) -> Option<Arc<T>> {
        let (table, index, ledger) = T::parts(self);
        let (row, bytes) = table.remove(id, ledger)?;
        row.leave(id, bytes, index);
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

    /// Derives the entries that each row has by itself.
    pub(crate) fn index_tables(&mut self) {
        self.index = Index::default();
        self.enter_all::<Network>();
        self.enter_all::<Subnet>();
        self.enter_all::<Pool>();
        self.enter_all::<Reservation>();
        self.enter_all::<Endpoint>();
        self.enter_all::<Attachment>();
        self.enter_all::<Allocation>();
        self.enter_all::<Tombstone>();
        self.enter_all::<Cooling>();
        self.enter_all::<Boots>();
        self.enter_all::<Token>();
        self.enter_all::<Replay>();
        self.enter_all::<Node>();
        self.enter_all::<Namespace>();
        self.enter_all::<Prefix>();
    }

    fn enter_all<T: Indexed>(&mut self) {
        let (table, index, _) = T::parts(self);
        for (id, row, bytes) in table.entries() {
            row.enter(id, bytes, index);
        }
    }
}

/// Writes that tests make, as a defect would: rows whose entries of the index nobody keeps.
#[cfg(feature = "testing")]
impl State {
    /// Returns the header, to be changed.
    pub fn spoil_header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Writes a row and leaves the index as it is.
    #[expect(private_bounds, reason = "tests name the type of a row only")]
    pub fn spoil_row<T: Indexed>(&mut self, id: T::Id, row: T) {
        let (table, _, ledger) = T::parts(self);
        table.put(id, row, ledger);
    }

    /// Removes a row and leaves the index as it is.
    #[expect(private_bounds, reason = "tests name the type of a row only")]
    pub fn spoil_without<T: Indexed>(&mut self, id: T::Id) {
        let (table, _, ledger) = T::parts(self);
        table.remove(id, ledger);
    }

    /// Writes a row of any size.
    pub(crate) fn write_of_any_size<T: Indexed>(&mut self, id: T::Id, row: T) {
        let (table, index, ledger) = T::parts(self);
        table.put_of_any_size(id, row, ledger);
        if let Some((row, bytes)) = table.entry(id) {
            row.enter(id, bytes, index);
        }
    }
}

/// Takes `less` from a count.
#[track_caller]
pub(crate) fn less<N: Copy + Display + PartialOrd + Sub<Output = N>>(count: &mut N, less: N) {
    if *count < less {
        broken(COUNT, format!("{count} less {less} at {}", Location::caller()));
    }
    *count = *count - less;
}

/// The part of `impl Indexed` that names the table.
macro_rules! table {
    ($field:ident) => {
        fn parts(state: &mut State) -> (&mut Table<Self>, &mut Index, &mut Ledger) {
            (&mut state.rows.$field, &mut state.index, &mut state.ledger)
        }
    };
}

/// Rows that are found by their name only, which they keep.
macro_rules! found_by_name {
    ($($type:ident in $field:ident: |$row:ident| $name:expr;)*) => {
        $(impl Indexed for $type {
            table!($field);

            fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
                let $row = self;
                index.names.insert((Kind::$type, $name), id.get());
            }

            fn leave(&self, _: Id<Self>, _: u64, index: &mut Index) {
                let $row = self;
                index.names.remove(&(Kind::$type, $name));
            }

            fn is_found_as(&self, _: &Self) -> bool {
                true
            }
        })*
    };
}

found_by_name! {
    Network in networks: |row| (&row.intention.name).into();
    Reservation in reservations: |row| (&row.intention.name).into();
    Node in nodes: |row| row.intention.resource_name();
    Namespace in namespaces: |row| row.intention.resource_name();
}

/// Rows that are found by their id only.
macro_rules! found_by_id {
    ($($type:ident in $field:ident;)*) => {
        $(impl Indexed for $type {
            table!($field);
        })*
    };
}

found_by_id! {
    PoolState in pool_states;
    Segment in segments;
    Member in members;
    Generation in generations;
}

impl Indexed for Subnet {
    table!(subnets);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        let cidr = AddressRange::of_cidr(self.intention.cidr);
        index.names.insert((Kind::Subnet, (&self.intention.name).into()), id.get());
        index.subnet_starts.insert((self.network, cidr.family(), cidr.first()), id);
        // Loading refuses a larger one.
        if self.intention.cidr.prefix_len() > 0 {
            index.spare.insert(id, Arc::new(all_spare(self.intention.cidr)));
        }
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        let cidr = AddressRange::of_cidr(self.intention.cidr);
        index.names.remove(&(Kind::Subnet, (&self.intention.name).into()));
        index.subnet_starts.remove(&(self.network, cidr.family(), cidr.first()));
        index.spare.remove(&id);
    }

    /// Its name, its network and its CIDR are constant.
    fn is_found_as(&self, _: &Self) -> bool {
        true
    }
}

impl Indexed for Pool {
    table!(pools);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.names.insert((Kind::Pool, (&self.intention.name).into()), id.get());
        index.pools_of_subnet.insert((self.subnet, self.automatic.is_some(), id));
        if let Some(automatic) = &self.automatic {
            index.applications.insert((automatic.key(), id));
            index.count_automatic(automatic, true);
        }
        if !self.intention.exclude.is_empty() {
            index.excluding.insert((self.subnet, id));
        }
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.names.remove(&(Kind::Pool, (&self.intention.name).into()));
        index.pools_of_subnet.remove(&(self.subnet, self.automatic.is_some(), id));
        if let Some(automatic) = &self.automatic {
            index.applications.remove(&(automatic.key(), id));
            index.count_automatic(automatic, false);
        }
        index.excluding.remove(&(self.subnet, id));
    }

    /// Its name and its subnet are constant.
    fn is_found_as(&self, old: &Self) -> bool {
        let of = |pool: &Self| pool.automatic.as_ref().map(|automatic| automatic.controller.clone());
        self.intention.exclude.is_empty() == old.intention.exclude.is_empty() && of(self) == of(old)
    }
}

impl Indexed for Endpoint {
    table!(endpoints);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.endpoints.insert((self.key.clone(), id));
        index.controllers.extend(ControllerKey::of(self).map(|key| (key, id)));
        if let Some(waiting) = &self.waiting {
            index.waiting.insert(waiting.order, id);
            let places = waiting.lacks.iter().map(|(of, need)| (of.clone(), *need, waiting.order));
            index.waiting_for.extend(places);
            if let Some(node) = waiting.place() {
                index.count_usage(&node, |usage| usage.waiting += 1);
            }
        }
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.endpoints.remove(&(self.key.clone(), id));
        if let Some(key) = ControllerKey::of(self) {
            index.controllers.remove(&(key, id));
        }
        if let Some(waiting) = &self.waiting {
            index.waiting.remove(&waiting.order);
            for (of, need) in &waiting.lacks {
                index.waiting_for.remove(&(of.clone(), *need, waiting.order));
            }
            if let Some(node) = waiting.place() {
                index.count_usage(&node, |usage| less(&mut usage.waiting, 1));
            }
        }
    }

    /// Its key is constant.
    fn is_found_as(&self, old: &Self) -> bool {
        self.waiting == old.waiting
            && self.controller == old.controller
            && self.sticky.is_some() == old.sticky.is_some()
    }
}

impl Indexed for Attachment {
    table!(attachments);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.attachments.insert(&self.key, id);
        index.count_usage(&node_of(&self.key), |usage| usage.attachments += 1);
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.attachments.remove(&self.key, id);
        index.count_usage(&node_of(&self.key), |usage| less(&mut usage.attachments, 1));
    }

    /// Its key is constant.
    fn is_found_as(&self, _: &Self) -> bool {
        true
    }
}

impl Indexed for Allocation {
    table!(allocations);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.occupants.insert((self.network, self.address), Occupant::Allocation(id));
        index.lease_ends.extend(self.lease.as_ref().map(|lease| (lease.until_ms, id)));
        if let Source::Node(node) = &self.source {
            index.count_usage(node, |usage| usage.allocations += 1);
        }
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.occupants.remove(&(self.network, self.address));
        if let Some(lease) = &self.lease {
            index.lease_ends.remove(&(lease.until_ms, id));
        }
        if let Source::Node(node) = &self.source {
            index.count_usage(node, |usage| less(&mut usage.allocations, 1));
        }
    }

    /// Its address and its source are constant.
    fn is_found_as(&self, old: &Self) -> bool {
        self.lease == old.lease
    }
}

impl Indexed for Tombstone {
    table!(tombstones);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.tombstones.insert(&self.key, id);
        index.tombstones_of_node.insert((self.node, id));
        *index.tombstone_counts.entry(self.node).or_insert(0) += 1;
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.tombstones.remove(&self.key, id);
        index.tombstones_of_node.remove(&(self.node, id));
        if let Some(count) = index.tombstone_counts.get_mut(&self.node) {
            less(count, 1);
            if *count == 0 {
                index.tombstone_counts.remove(&self.node);
            }
        }
    }
}

impl Indexed for Cooling {
    table!(coolings);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.occupants.insert((self.network, self.address), Occupant::Cooling(id));
        index.resting.insert((self.network, self.address));
        index.cooling_until.insert((self.until_ms, id));
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.occupants.remove(&(self.network, self.address));
        index.resting.remove(&(self.network, self.address));
        index.cooling_until.remove(&(self.until_ms, id));
    }
}

impl Indexed for Boots {
    table!(boots);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.boots.insert((self.realm.clone(), self.name.clone()), id);
    }

    fn leave(&self, _: Id<Self>, _: u64, index: &mut Index) {
        index.boots.remove(&(self.realm.clone(), self.name.clone()));
    }

    /// Its node is constant.
    fn is_found_as(&self, _: &Self) -> bool {
        true
    }
}

impl Indexed for Token {
    table!(tokens);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.names.insert((Kind::Token, (&self.name).into()), id.get());
        index.token_secrets.insert(self.secret_hash, id);
        index.token_ends.extend(self.expires_ms.map(|until_ms| (until_ms, id)));
        index.node_tokens.insert(self);
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.names.remove(&(Kind::Token, (&self.name).into()));
        index.token_secrets.remove(&self.secret_hash);
        if let Some(until_ms) = self.expires_ms {
            index.token_ends.remove(&(until_ms, id));
        }
        index.node_tokens.remove(self);
    }
}

impl Indexed for Replay {
    table!(replays);

    fn enter(&self, id: Id<Self>, bytes: u64, index: &mut Index) {
        index.replays.insert((Text::clone(&self.principal), Text::clone(&self.key)), id);
        index.replays_of.insert((Text::clone(&self.principal), id));
        index.use_for_replays(&self.principal, |usage| {
            usage.keys += 1;
            usage.bytes += bytes;
        });
        index.replay_bytes += bytes;
    }

    fn leave(&self, id: Id<Self>, bytes: u64, index: &mut Index) {
        index.replays.remove(&(Text::clone(&self.principal), Text::clone(&self.key)));
        index.replays_of.remove(&(Text::clone(&self.principal), id));
        index.use_for_replays(&self.principal, |usage| {
            less(&mut usage.keys, 1);
            less(&mut usage.bytes, bytes);
        });
        less(&mut index.replay_bytes, bytes);
    }
}

impl Indexed for Prefix {
    table!(prefixes);

    fn enter(&self, id: Id<Self>, _: u64, index: &mut Index) {
        let range = AddressRange::of_cidr(self.cidr);
        index.blocks.insert((self.parent, range.first()), (range.last(), id));
        index.prefix_owners.insert((self.parent, self.owner.clone()), id);
        index.prefix_until.extend(self.until_ms.map(|until_ms| (until_ms, id)));
    }

    fn leave(&self, id: Id<Self>, _: u64, index: &mut Index) {
        index.blocks.remove(&(self.parent, AddressRange::of_cidr(self.cidr).first()));
        index.prefix_owners.remove(&(self.parent, self.owner.clone()));
        if let Some(until_ms) = self.until_ms {
            index.prefix_until.remove(&(until_ms, id));
        }
    }
}
