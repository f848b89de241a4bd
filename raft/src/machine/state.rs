//! Everything the machine remembers, and what is derived from it to find things fast.

use std::net::IpAddr;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use ipam_api::address::{AddressRange, number};
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::EndpointKey;
use ipam_api::{Family, RangeSet};
use serde::{Deserialize, Serialize};

use super::Damaged;
use super::command::{Kind, SecretHash, Text};
use super::hashed::ByAttachment;
use super::journal::{JournalHead, Segment};
use super::model::{
    Allocation, Attachment, Cooling, Endpoint, Network, Node, Pool, PoolState, Replay, Reservation, Subnet,
    Token, Tombstone,
};
use super::row::RowKey;
use super::space::{Shape, Space};
use super::table::{Ledger, Row, Table, decode, encode, hash};

/// The level that this build behaves by at most.
pub const LEVEL: u32 = 1;
/// A generation's share of the revision's bits.
const GENERATION_SHIFT: u32 = 40;
/// Whatever reads JSON has integers up to that.
const REVISION_BITS: u32 = 53;
/// The header's row.
const HEADER: RowKey = RowKey { table: 0, id: 0 };

/// What the state says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Rises with every restore and forced recovery.
    pub generation: u64,
    /// Rises with every change.
    pub counter: u64,
    /// By which rules `apply` behaves; raised by an entry once all members know them.
    pub level: u32,
    /// The log time of the newest command.
    pub log_time_ms: u64,
    /// How far the journal is.
    pub journal: JournalHead,
}

impl Header {
    /// Whether revisions can be made of it: more than there are was never counted.
    fn makes_sense(&self) -> bool {
        self.generation >> (REVISION_BITS - GENERATION_SHIFT) == 0 && self.counter >> GENERATION_SHIFT == 0
    }
}

/// What occupies an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupant {
    /// The allocation with this id.
    Allocation(u64),
    /// The resting address with this id.
    Cooling(u64),
}

/// The replicated state. A clone costs microseconds and is not touched by later changes.
#[derive(Debug, Clone)]
pub struct State {
    /// What it says of itself.
    pub header: Header,
    /// Address spaces.
    pub networks: Table<Network>,
    /// CIDRs of networks.
    pub subnets: Table<Subnet>,
    /// Named sets of addresses.
    pub pools: Table<Pool>,
    /// Addresses that are never given.
    pub reservations: Table<Reservation>,
    /// What of pools changes with their use, by the pool's id.
    pub pool_states: Table<PoolState>,
    /// Incarnations of endpoints.
    pub endpoints: Table<Endpoint>,
    /// Attachments that live.
    pub attachments: Table<Attachment>,
    /// Addresses held.
    pub allocations: Table<Allocation>,
    /// Releases remembered.
    pub tombstones: Table<Tombstone>,
    /// Addresses that rest.
    pub coolings: Table<Cooling>,
    /// Nodes that have asked.
    pub nodes: Table<Node>,
    /// What callers ask with.
    pub tokens: Table<Token>,
    /// Answers kept for a repetition.
    pub replays: Table<Replay>,
    /// Sealed pieces of the journal, by their number.
    pub segments: Table<Segment>,
    pub(super) ledger: Ledger,
    pub(super) index: Index,
}

/// What is derived from the rows: never stored, always rebuilt.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) names: OrdMap<(Kind, Name), u64>,
    /// First addresses of subnets.
    pub(super) subnet_starts: OrdMap<(u64, Family, u128), u64>,
    pub(super) pools_of_subnet: OrdSet<(u64, u64)>,
    /// First addresses of what pools own (ranges without exclusions), with the last one and the pool.
    pub(super) owners: OrdMap<(u64, Family, u128), (u128, u64)>,
    /// What all reservations of a network cover.
    pub(super) reserved: OrdMap<(u64, Family), Arc<RangeSet>>,
    /// Pools that may be taken from unnamed.
    pub(super) default_pools: OrdSet<(u64, Family, Name, u64)>,
    pub(super) spaces: OrdMap<u64, Arc<Space>>,
    pub(super) occupants: OrdMap<(u64, IpAddr), Occupant>,
    /// Incarnations, the newest last.
    pub(super) endpoints: OrdSet<(EndpointKey, u64)>,
    pub(super) attachments: ByAttachment,
    pub(super) tombstones: ByAttachment,
    pub(super) tombstones_of_node: OrdSet<(u64, u64)>,
    pub(super) tombstone_counts: OrdMap<u64, usize>,
    pub(super) nodes: OrdMap<(Name, ObjectName), u64>,
    /// When resting addresses have rested.
    pub(super) cooling_until: OrdSet<(u64, u64)>,
    pub(super) token_secrets: OrdMap<SecretHash, u64>,
    pub(super) replays: OrdMap<(Text, Text), u64>,
    /// Kept answers of each principal, the oldest first.
    pub(super) replays_of: OrdSet<(Text, u64)>,
    pub(super) replay_counts: OrdMap<Text, usize>,
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

    fn without_rows() -> Self {
        Self {
            header: Header {
                generation: 1,
                counter: 0,
                level: LEVEL,
                log_time_ms: 0,
                journal: JournalHead::default(),
            },
            networks: Table::default(),
            subnets: Table::default(),
            pools: Table::default(),
            reservations: Table::default(),
            pool_states: Table::default(),
            endpoints: Table::default(),
            attachments: Table::default(),
            allocations: Table::default(),
            tombstones: Table::default(),
            coolings: Table::default(),
            nodes: Table::default(),
            tokens: Table::default(),
            replays: Table::default(),
            segments: Table::default(),
            ledger: Ledger::default(),
            index: Index::default(),
        }
    }

    /// The newest revision: generation and counter in one integer below 2^53.
    #[must_use]
    pub fn revision(&self) -> u64 {
        (self.header.generation << GENERATION_SHIFT) + self.header.counter
    }

    /// The log time of the newest command, in milliseconds.
    #[must_use]
    pub fn log_time_ms(&self) -> u64 {
        self.header.log_time_ms
    }

    /// The next revision, which is also the id of what it creates.
    pub(super) fn tick(&mut self) -> u64 {
        self.header.counter += 1;
        self.revision()
    }

    /// The digest of the whole state: equal on every member that has applied the same entries.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.ledger.digest.wrapping_add(hash(HEADER, &encode(&self.header)))
    }

    /// When the next row can be cleared away, in log time.
    #[must_use]
    pub fn next_expiry_ms(&self) -> Option<u64> {
        let cooled = self.index.cooling_until.get_min().map(|(until, _)| *until);
        let forgotten = self.tombstones.first().map(|(_, tombstone)| tombstone.until_ms);
        let replayed = self.replays.first().map(|(_, replay)| replay.until_ms);
        [cooled, forgotten, replayed].into_iter().flatten().min()
    }

    // === Finding things ===

    /// The id of a resource.
    #[must_use]
    pub fn id_of(&self, kind: Kind, name: &Name) -> Option<u64> {
        self.index.names.get(&(kind, name.clone())).copied()
    }

    /// The names of a kind after `after`, in order.
    pub fn names(&self, kind: Kind, after: Option<&Name>) -> impl Iterator<Item = (&Name, u64)> {
        use std::ops::Bound;
        let from = match after {
            Some(name) => Bound::Excluded((kind, name.clone())),
            None => Bound::Included((kind, Name::lowest())),
        };
        self.index
            .names
            .range((from, Bound::Unbounded))
            .take_while(move |((of, _), _)| *of == kind)
            .map(|((_, name), id)| (name, *id))
    }

    /// A pool's addresses.
    #[must_use]
    pub fn space(&self, pool: u64) -> Option<&Space> {
        self.index.spaces.get(&pool).map(|space| &**space)
    }

    /// The pools of a subnet.
    pub fn pools_of(&self, subnet: u64) -> impl Iterator<Item = u64> {
        self.index.pools_of_subnet.range((subnet, 0)..=(subnet, u64::MAX)).map(|(_, pool)| *pool)
    }

    /// The subnets of a network, by address.
    pub fn subnets_of(&self, network: u64) -> impl Iterator<Item = u64> {
        let (from, to) = ((network, Family::V4, 0), (network, Family::V6, u128::MAX));
        self.index.subnet_starts.range(from..=to).map(|(_, id)| *id)
    }

    /// The subnet of a network that an address is in.
    #[must_use]
    pub fn subnet_at(&self, network: u64, address: IpAddr) -> Option<(u64, &Subnet)> {
        let family = Family::of(address);
        let until = (network, family, number(address));
        let (_, id) = self.index.subnet_starts.range((network, family, 0)..=until).next_back()?;
        let subnet = self.subnets.get(*id)?;
        subnet.intention.cidr.contains(&address).then_some((*id, subnet))
    }

    /// The pool that owns an address: it lies in its ranges and is not excluded from them.
    #[must_use]
    pub fn pool_at(&self, network: u64, address: IpAddr) -> Option<u64> {
        let family = Family::of(address);
        let until = (network, family, number(address));
        let (_, (last, pool)) = self.index.owners.range((network, family, 0)..=until).next_back()?;
        (number(address) <= *last).then_some(*pool)
    }

    /// What occupies an address.
    #[must_use]
    pub fn occupant(&self, network: u64, address: IpAddr) -> Option<Occupant> {
        self.index.occupants.get(&(network, address)).copied()
    }

    /// The occupied addresses of a network between two numbers.
    pub fn occupied(
        &self,
        network: u64,
        range: AddressRange,
    ) -> impl Iterator<Item = (IpAddr, Occupant)> + '_ {
        let (from, to) = ((network, range.first_address()), (network, range.last_address()));
        self.index.occupants.range(from..=to).map(|((_, address), occupant)| (*address, *occupant))
    }

    /// The incarnations of an endpoint, oldest first.
    pub fn incarnations(&self, key: &EndpointKey) -> impl DoubleEndedIterator<Item = u64> {
        self.index.endpoints.range((key.clone(), 0)..=(key.clone(), u64::MAX)).map(|(_, id)| *id)
    }

    /// Incarnations of all endpoints after one of them, in order.
    pub fn endpoints_after(
        &self,
        after: Option<(&EndpointKey, u64)>,
    ) -> impl Iterator<Item = (&EndpointKey, u64)> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, |(key, id)| Bound::Excluded((key.clone(), id)));
        self.index.endpoints.range((from, Bound::Unbounded)).map(|(key, id)| (key, *id))
    }

    /// An attachment that lives.
    #[must_use]
    pub fn attachment(&self, key: &AttachmentKey) -> Option<(u64, &Attachment)> {
        let id = self.index.attachments.find(key, |id| self.attachments.get(id).map(|row| &row.key))?;
        self.attachments.get(id).map(|row| (id, row))
    }

    // === Rows ===

    /// Every row, encoded; the header first.
    pub fn rows(&self) -> impl Iterator<Item = (RowKey, Vec<u8>)> + '_ {
        std::iter::once((HEADER, encode(&self.header)))
            .chain(self.networks.all_encoded())
            .chain(self.subnets.all_encoded())
            .chain(self.pools.all_encoded())
            .chain(self.reservations.all_encoded())
            .chain(self.pool_states.all_encoded())
            .chain(self.endpoints.all_encoded())
            .chain(self.attachments.all_encoded())
            .chain(self.allocations.all_encoded())
            .chain(self.tombstones.all_encoded())
            .chain(self.coolings.all_encoded())
            .chain(self.nodes.all_encoded())
            .chain(self.tokens.all_encoded())
            .chain(self.replays.all_encoded())
            .chain(self.segments.all_encoded())
    }

    /// One row, encoded; nothing if it doesn't exist.
    #[must_use]
    pub fn row(&self, key: RowKey) -> Option<Vec<u8>> {
        let id = key.id;
        match key.table {
            0 => (key == HEADER).then(|| encode(&self.header)),
            Network::TABLE => self.networks.encoded(id),
            Subnet::TABLE => self.subnets.encoded(id),
            Pool::TABLE => self.pools.encoded(id),
            Reservation::TABLE => self.reservations.encoded(id),
            PoolState::TABLE => self.pool_states.encoded(id),
            Endpoint::TABLE => self.endpoints.encoded(id),
            Attachment::TABLE => self.attachments.encoded(id),
            Allocation::TABLE => self.allocations.encoded(id),
            Tombstone::TABLE => self.tombstones.encoded(id),
            Cooling::TABLE => self.coolings.encoded(id),
            Node::TABLE => self.nodes.encoded(id),
            Token::TABLE => self.tokens.encoded(id),
            Replay::TABLE => self.replays.encoded(id),
            Segment::TABLE => self.segments.encoded(id),
            _ => None,
        }
    }

    /// Keys of the rows written or removed since the last call; the header always among them.
    pub fn take_touched(&mut self) -> Vec<RowKey> {
        let mut touched = std::mem::take(&mut self.ledger.touched);
        touched.push(HEADER);
        touched
    }

    /// The state that these rows, in any order, are.
    ///
    /// # Errors
    /// If a row can't be read, contradicts another, or there is no header.
    pub fn from_rows(rows: impl IntoIterator<Item = (RowKey, Vec<u8>)>) -> Result<State, Damaged> {
        let mut state = Self::without_rows();
        let mut header = None;
        for (key, bytes) in rows {
            let ledger = &mut state.ledger;
            match key.table {
                0 => {
                    let read: Header =
                        decode(&bytes).ok_or_else(|| Damaged("the header can't be read".into()))?;
                    if key != HEADER || !read.makes_sense() || header.replace(read).is_some() {
                        return Err(Damaged("the header is there twice, or makes no sense".into()));
                    }
                }
                Network::TABLE => state.networks.load(key, &bytes, ledger)?,
                Subnet::TABLE => state.subnets.load(key, &bytes, ledger)?,
                Pool::TABLE => state.pools.load(key, &bytes, ledger)?,
                Reservation::TABLE => state.reservations.load(key, &bytes, ledger)?,
                PoolState::TABLE => state.pool_states.load(key, &bytes, ledger)?,
                Endpoint::TABLE => state.endpoints.load(key, &bytes, ledger)?,
                Attachment::TABLE => state.attachments.load(key, &bytes, ledger)?,
                Allocation::TABLE => state.allocations.load(key, &bytes, ledger)?,
                Tombstone::TABLE => state.tombstones.load(key, &bytes, ledger)?,
                Cooling::TABLE => state.coolings.load(key, &bytes, ledger)?,
                Node::TABLE => state.nodes.load(key, &bytes, ledger)?,
                Token::TABLE => state.tokens.load(key, &bytes, ledger)?,
                Replay::TABLE => state.replays.load(key, &bytes, ledger)?,
                Segment::TABLE => state.segments.load(key, &bytes, ledger)?,
                other => return Err(Damaged(format!("table {other} is not known to this version"))),
            }
        }
        state.header = header.ok_or_else(|| Damaged("there is no header".into()))?;
        state.rebuild_index()?;
        Ok(state)
    }

    fn rebuild_index(&mut self) -> Result<(), Damaged> {
        let lost = |what: &str, id: u64| Damaged(format!("{what} {id} is named by a row and not there"));
        let mut index = Index::default();
        for (id, row) in self.networks.iter() {
            index.names.insert((Kind::Network, row.intention.name.clone()), id);
        }
        for (id, row) in self.subnets.iter() {
            index.names.insert((Kind::Subnet, row.intention.name.clone()), id);
            if row.intention.cidr.prefix_len() == 0 {
                return Err(Damaged(format!("subnet {id} is larger than any subnet can be")));
            }
            let cidr = AddressRange::of_cidr(row.intention.cidr);
            index.subnet_starts.insert((row.network, cidr.family(), cidr.first()), id);
        }
        for (id, row) in self.reservations.iter() {
            index.names.insert((Kind::Reservation, row.intention.name.clone()), id);
        }
        for (id, row) in self.endpoints.iter() {
            index.endpoints.insert((row.key.clone(), id));
        }
        for (id, row) in self.attachments.iter() {
            index.attachments.insert(&row.key, id);
        }
        for (id, row) in self.tombstones.iter() {
            index.tombstones.insert(&row.key, id);
            index.tombstones_of_node.insert((row.node, id));
            *index.tombstone_counts.entry(row.node).or_insert(0) += 1;
        }
        for (id, row) in self.nodes.iter() {
            index.nodes.insert((row.realm.clone(), row.name.clone()), id);
        }
        for (id, row) in self.tokens.iter() {
            index.names.insert((Kind::Token, row.name.clone()), id);
            index.token_secrets.insert(row.secret_hash, id);
        }
        for (id, row) in self.replays.iter() {
            index.keep(row, id);
        }
        for (id, row) in self.allocations.iter() {
            index.occupants.insert((row.network, row.address), Occupant::Allocation(id));
        }
        for (id, row) in self.coolings.iter() {
            index.occupants.insert((row.network, row.address), Occupant::Cooling(id));
            index.cooling_until.insert((row.until_ms, id));
        }
        if index.occupants.len() != self.allocations.len() + self.coolings.len() {
            return Err(Damaged("one address is occupied by two rows".to_owned()));
        }
        self.index = index;
        let networks: Vec<u64> = self.networks.iter().map(|(id, _)| id).collect();
        for network in networks {
            self.index_reservations(network);
        }
        let pools: Vec<(u64, Pool)> = self.pools.iter().map(|(id, row)| (id, row.clone())).collect();
        for (id, pool) in &pools {
            let subnet = self.subnets.get(pool.subnet).ok_or_else(|| lost("subnet", pool.subnet))?.clone();
            self.index_pool(*id, pool, &subnet);
        }
        let allocated: Vec<(u64, IpAddr)> =
            self.allocations.iter().map(|(_, row)| (row.pool, row.address)).collect();
        let stray = |address: IpAddr| Damaged(format!("{address} is occupied and not its pool's to give"));
        for (pool, address) in allocated {
            let space = self.space_mut(pool).ok_or_else(|| lost("pool", pool))?;
            if !space.giveable.contains(number(address)) {
                return Err(stray(address));
            }
            space.allocated += 1;
            space.occupy(number(address));
        }
        let coolings: Vec<(u64, u64, IpAddr)> =
            self.coolings.iter().map(|(id, row)| (id, row.pool, row.address)).collect();
        for (id, pool, address) in coolings {
            let space = self.space_mut(pool).ok_or_else(|| lost("pool", pool))?;
            if !space.giveable.contains(number(address)) {
                return Err(stray(address));
            }
            space.cooling.insert(id);
            space.occupy(number(address));
        }
        Ok(())
    }

    // === The index of pools and reservations ===

    pub(super) fn space_mut(&mut self, pool: u64) -> Option<&mut Space> {
        self.index.spaces.get_mut(&pool).map(Arc::make_mut)
    }

    /// Registers a new pool, with all of its addresses vacant.
    pub(super) fn index_pool(&mut self, id: u64, pool: &Pool, subnet: &Subnet) {
        let family = Family::of(subnet.intention.cidr.addr());
        self.index.names.insert((Kind::Pool, pool.intention.name.clone()), id);
        self.index.pools_of_subnet.insert((pool.subnet, id));
        if pool.intention.default {
            let name = pool.intention.name.clone();
            self.index.default_pools.insert((subnet.network, family, name, id));
        }
        for range in super::shape::owned(&pool.intention, subnet.intention.cidr).ranges() {
            self.index.owners.insert((subnet.network, family, range.first()), (range.last(), id));
        }
        let mut space = Space::empty(subnet.intention.cidr);
        space.reshape(self.shape_of(&pool.intention, subnet), |_, _| std::iter::empty());
        self.index.spaces.insert(id, Arc::new(space));
    }

    /// Forgets a pool. `subnet` is the one that it is cut from.
    pub(super) fn unindex_pool(&mut self, id: u64, pool: &Pool, subnet: &Subnet) {
        let family = Family::of(subnet.intention.cidr.addr());
        self.index.names.remove(&(Kind::Pool, pool.intention.name.clone()));
        self.index.pools_of_subnet.remove(&(pool.subnet, id));
        self.index.default_pools.remove(&(subnet.network, family, pool.intention.name.clone(), id));
        for range in super::shape::owned(&pool.intention, subnet.intention.cidr).ranges() {
            self.index.owners.remove(&(subnet.network, family, range.first()));
        }
        self.index.spaces.remove(&id);
    }

    /// Gives a pool's space the shape that its rows now say.
    pub(super) fn reshape_pool(&mut self, id: u64, shape: Shape, network: u64) {
        let Index { spaces, occupants, .. } = &mut self.index;
        let Some(space) = spaces.get_mut(&id).map(Arc::make_mut) else { return };
        let family = space.family;
        space.reshape(shape, |first, last| {
            let range = (network, family.address(first))..=(network, family.address(last));
            occupants.range(range).map(|((_, address), _)| number(*address))
        });
    }

    /// Rebuilds what the reservations of a network cover.
    pub(super) fn index_reservations(&mut self, network: u64) {
        let all: Vec<AddressRange> = self
            .reservations
            .iter()
            .filter(|(_, row)| row.network == network)
            .flat_map(|(_, row)| row.intention.addresses.iter().copied())
            .collect();
        for family in Family::BOTH {
            let covered = RangeSet::new(family, &all);
            if covered.is_empty() {
                self.index.reserved.remove(&(network, family));
            } else {
                self.index.reserved.insert((network, family), Arc::new(covered));
            }
        }
    }
}
