//! The replicated state: the rows, and the index that is derived from them for fast lookups.

use crate::space::Space;
use crate::state::damaged::Damaged;
use crate::state::id::{
    AllocationId, AttachmentId, CoolingId, EndpointId, Id, NetworkId, PoolId, QuarantineId, SubnetId,
};
use crate::state::index::Index;
use crate::state::loading::Loading;
use crate::state::row::{Attachment, Rows, Subnet};
use crate::state::row_key::RowKey;
use crate::state::shared_names::SharedNames;
use crate::state::table::{Ledger, encode, hash};
use crate::value::level::FIRST_LEVEL;
use crate::value::row::{JournalHead, RELEASED_MS};
use ipam_api::Family;
use ipam_api::access::NodeKey;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::PODS_FORGOTTEN_MS;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::EndpointKey;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::ops::{Bound, Deref};

/// Bits of a revision below those of its epoch.
const EPOCH_SHIFT: u32 = 40;
/// Bits of the largest integer that JSON represents exactly.
const REVISION_BITS: u32 = 53;
pub(crate) const HEADER: RowKey = RowKey { table: 0, id: 0 };

/// Header of the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Rises with every restore and forced recovery.
    pub epoch: u64,
    /// Rises with every change.
    pub counter: u64,
    /// Feature level: the rules that `apply` follows. An entry raises it once all members support them.
    pub level: u32,
    /// The log time of the newest command.
    pub log_time_ms: u64,
    /// Number of the leadership of the newest entries: the log index of the entry that began it.
    pub leadership: u64,
    /// Log time before which no lease and no prefix ends, renewed or not.
    pub no_lease_ends_before_ms: u64,
    /// Position of the journal.
    pub journal: JournalHead,
}

impl Header {
    /// Returns true if epoch and counter fit into a revision; larger numbers never occur.
    pub(crate) fn makes_sense(&self) -> bool {
        self.epoch >> (REVISION_BITS - EPOCH_SHIFT) == 0 && self.counter >> EPOCH_SHIFT == 0
    }
}

/// Occupant of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupant {
    /// The allocation with this id.
    Allocation(AllocationId),
    /// Cooling address with this id.
    Cooling(CoolingId),
    /// Quarantined address with this id.
    Quarantine(QuarantineId),
}

/// The replicated state. A clone costs microseconds and is not touched by later changes.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) header: Header,
    pub(super) rows: Rows,
    pub(crate) ledger: Ledger,
    pub(crate) index: Index,
    pub(super) names: SharedNames,
}

/// Reads access the tables directly; without `DerefMut`, writes must go through the index.
impl Deref for State {
    type Target = Rows;

    fn deref(&self) -> &Rows {
        &self.rows
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// The state before the first entry: nothing but the network `default`.
    #[must_use]
    pub fn new() -> Self {
        let mut state = Self::without_rows();
        state.tick();
        state.put_default_network();
        state
    }

    pub(crate) fn without_rows() -> Self {
        Self {
            header: Header {
                epoch: 1,
                counter: 0,
                level: FIRST_LEVEL,
                log_time_ms: 0,
                leadership: 0,
                no_lease_ends_before_ms: 0,
                journal: JournalHead::default(),
            },
            rows: Rows::default(),
            ledger: Ledger::default(),
            index: Index::default(),
            names: SharedNames::default(),
        }
    }

    /// Returns the header of the state.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The newest revision: epoch and counter in one integer below 2^53.
    #[must_use]
    pub fn revision(&self) -> u64 {
        (self.header.epoch << EPOCH_SHIFT) + self.header.counter
    }

    /// The log time of the newest command, in milliseconds.
    #[must_use]
    pub fn log_time_ms(&self) -> u64 {
        self.header.log_time_ms
    }

    /// Next revision, which is also the id of the object that it creates.
    pub(crate) fn tick(&mut self) -> u64 {
        self.header.counter += 1;
        self.revision()
    }

    /// Next revision as the id of a new object.
    pub(crate) fn new_id<T>(&mut self) -> Id<T> {
        Id::new(self.tick())
    }

    /// The digest of the whole state: equal on every member that has applied the same entries.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.ledger.digest.wrapping_add(hash(HEADER, &encode(&self.header)))
    }

    /// Log time at which the next row expires.
    #[must_use]
    pub fn next_expiry_ms(&self) -> Option<u64> {
        let cooled = self.index.cooling_until.first().map(|(until, _)| *until);
        let block_cooled = self.index.prefix_cooling_until.first().map(|(until, _)| *until);
        let ended = self.index.leases.first().map(|(end_ms, _)| self.end_of_lease_ms(end_ms));
        let unchecked = self.index.checks_until.first().map(|(until, _)| *until);
        let forgotten = self.tombstones.first().map(|(_, tombstone)| tombstone.until_ms);
        let replayed = self.replays.first().map(|(_, replay)| replay.until_ms);
        let prefix_ended = self.index.prefix_until.first().map(|(until, _)| match *until {
            RELEASED_MS => RELEASED_MS,
            until => self.end_of_lease_ms(until),
        });
        // A claim that can be served is served with the next command.
        let owed = self.index.ready_waiters.first().map(|_| self.log_time_ms());
        let unreported = self.index.verified_until.first();
        let unreported = unreported.map(|(until_ms, _)| until_ms.saturating_add(PODS_FORGOTTEN_MS));
        let all =
            [cooled, block_cooled, ended, unchecked, forgotten, replayed, prefix_ended, owed, unreported];
        all.into_iter().flatten().min()
    }

    /// Returns the log time at which the next token expires, if one does.
    #[must_use]
    pub fn next_token_expiry_ms(&self) -> Option<u64> {
        let later = (self.log_time_ms().saturating_add(1), Id::MIN)..;
        self.index.token_ends.range(later).next().map(|(until, _)| *until)
    }

    // === Lookups ===

    /// A pool's addresses.
    #[must_use]
    pub fn space(&self, pool: PoolId) -> Option<&Space> {
        self.index.spaces.get(&pool).map(|space| &**space)
    }

    pub fn pools_of(&self, subnet: SubnetId) -> impl Iterator<Item = PoolId> {
        let all = (subnet, false, Id::MIN)..=(subnet, true, Id::MAX);
        self.index.pools_of_subnet.range(all).map(|(_, _, pool)| *pool)
    }

    /// The pools of a subnet that weren't created for one application.
    pub(crate) fn pools_for_all(&self, subnet: SubnetId) -> impl Iterator<Item = PoolId> {
        let all = (subnet, false, Id::MIN)..=(subnet, false, Id::MAX);
        self.index.pools_of_subnet.range(all).map(|(_, _, pool)| *pool)
    }

    /// The subnets of a network, by address.
    pub fn subnets_of(&self, network: NetworkId) -> impl Iterator<Item = SubnetId> {
        self.subnets_from(network, None)
    }

    /// Subnets of a network from an address on, by address, IPv4 first.
    pub fn subnets_from(&self, network: NetworkId, from: Option<IpAddr>) -> impl Iterator<Item = SubnetId> {
        let from = from.map_or((network, Family::V4, 0), |from| (network, Family::of(from), number(from)));
        self.index.subnet_starts.range(from..=(network, Family::V6, u128::MAX)).map(|(_, id)| *id)
    }

    /// The subnet of a network that an address is in.
    #[must_use]
    pub fn subnet_at(&self, network: NetworkId, address: IpAddr) -> Option<(SubnetId, &Subnet)> {
        let family = Family::of(address);
        let until = (network, family, number(address));
        let (_, id) = self.index.subnet_starts.last_in((network, family, 0)..=until)?;
        let subnet = self.subnets.named(*id);
        subnet.spec.cidr.contains(&address).then_some((*id, subnet))
    }

    /// The pool that owns an address: the address lies in the pool's ranges and isn't excluded.
    #[must_use]
    pub fn pool_at(&self, network: NetworkId, address: IpAddr) -> Option<PoolId> {
        let family = Family::of(address);
        let until = (network, family, number(address));
        let (_, (last, pool)) = self.index.owners.last_in((network, family, 0)..=until)?;
        (number(address) <= *last).then_some(*pool)
    }

    #[must_use]
    pub fn occupant(&self, network: NetworkId, address: IpAddr) -> Option<Occupant> {
        self.index.occupants.get(network, address)
    }

    /// The occupied addresses of a network between two numbers.
    pub fn occupied(
        &self,
        network: NetworkId,
        range: AddressRange,
    ) -> impl Iterator<Item = (IpAddr, Occupant)> + '_ {
        self.index.occupants.range(network, range.first_address(), range.last_address())
    }

    /// The incarnations of an endpoint, oldest first. A command that examines all of them counts its work.
    pub fn incarnations(&self, key: &EndpointKey) -> impl Iterator<Item = EndpointId> {
        let all = (key.clone(), Id::MIN)..=(key.clone(), Id::MAX);
        self.index.endpoints.range(all).map(|(_, id)| *id)
    }

    /// Newest incarnation of an endpoint.
    #[must_use]
    pub fn newest_incarnation(&self, key: &EndpointKey) -> Option<EndpointId> {
        let all = (key.clone(), Id::MIN)..=(key.clone(), Id::MAX);
        self.index.endpoints.last_in(all).map(|(_, id)| *id)
    }

    /// Incarnations of the hosts with a name, in all namespaces of a realm.
    pub fn hosts_named(&self, node: &NodeKey) -> impl Iterator<Item = EndpointId> {
        let at = |id| (node.realm.clone(), node.name.clone(), id);
        self.index.hosts.range(at(Id::MIN)..=at(Id::MAX)).map(|(.., id)| *id)
    }

    /// Incarnations of all endpoints after one of them, in order.
    pub fn endpoints_after(
        &self,
        after: Option<(&EndpointKey, EndpointId)>,
    ) -> impl Iterator<Item = (&EndpointKey, EndpointId)> {
        let from = after.map(|(key, id)| (key.clone(), id));
        let from = from.map_or(Bound::Unbounded, Bound::Excluded);
        self.index.endpoints.range((from, Bound::Unbounded)).map(|(key, id)| (key, *id))
    }

    /// Returns the live attachment with a key.
    #[must_use]
    pub fn attachment(&self, key: &AttachmentKey) -> Option<(AttachmentId, &Attachment)> {
        let id = self.index.attachments.find(key, |id| self.attachments.get(id).map(|row| &row.key))?;
        Some((id, self.attachments.named(id)))
    }

    // === Rows ===

    /// Every row, encoded; the header first.
    pub fn rows(&self) -> impl Iterator<Item = (RowKey, Vec<u8>)> + '_ {
        std::iter::once((HEADER, encode(&self.header))).chain(self.rows.all_encoded())
    }

    /// One row, encoded; nothing if it doesn't exist.
    #[must_use]
    pub fn row(&self, key: RowKey) -> Option<Vec<u8>> {
        match key.table {
            0 => (key == HEADER).then(|| encode(&self.header)),
            _ => self.rows.encoded(key),
        }
    }

    /// Keys of the rows written or removed since the last call; the header always among them.
    pub fn take_touched(&mut self) -> Vec<RowKey> {
        let mut touched = std::mem::take(&mut self.ledger.touched);
        touched.push(HEADER);
        touched
    }

    /// Returns the state of these rows, in any order.
    ///
    /// # Errors
    /// If a row can't be decoded or contradicts another, or the header is missing.
    pub fn from_rows(rows: impl IntoIterator<Item = (RowKey, Vec<u8>)>) -> Result<State, Damaged> {
        let mut loading = Loading::default();
        for (key, bytes) in rows {
            loading.put(key, &bytes)?;
        }
        loading.finish()
    }
}

#[cfg(feature = "testing")]
impl State {
    /// Tables and parts of the index with their names, to measure them by dropping one after another.
    #[must_use]
    pub fn into_parts(self) -> Vec<(&'static str, Box<dyn std::any::Any>)> {
        let Self { header: _, rows, ledger, index, names } = self;
        drop(ledger);
        let mut parts = rows.into_parts();
        parts.extend(index.into_parts());
        parts.push(("names", Box::new(names)));
        parts
    }
}
