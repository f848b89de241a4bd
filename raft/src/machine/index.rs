//! What is derived from the rows to find things fast: never stored, always rebuilt.

use std::net::IpAddr;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use ipam_api::address::{AddressRange, number};
use ipam_api::name::{Name, ObjectName, ResourceName};
use ipam_api::resource::EndpointKey;
use ipam_api::{Family, RangeSet};

use super::Damaged;
use super::automatic::all_spare;
use super::command::{Kind, PoolIntention, SecretHash, Text};
use super::free_set::FreeSet;
use super::gateway::GatewayKey;
use super::hashed::ByAttachment;
use super::model::{Account, Pool, PrefixOwner, Scarce, Subnet, Waiting};
use super::patterns::PoolNames;
use super::prefix::Division;
use super::quota::Had;
use super::replay::ReplayUsage;
use super::space::{Shape, Space};
use super::state::{Occupant, State};
use super::sticky::ControllerKey;
use super::takers::{Anchor, Rank};

/// What is derived from the rows: never stored, always rebuilt.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) names: OrdMap<(Kind, ResourceName), u64>,
    /// Pools by family, rank and name.
    pub(super) pool_names: PoolNames,
    /// First addresses of subnets.
    pub(super) subnet_starts: OrdMap<(u64, Family, u128), u64>,
    /// Subnet, whether the pool is automatic, and the pool.
    pub(super) pools_of_subnet: OrdSet<(u64, bool, u64)>,
    /// Automatic pools by what makes the endpoints that they are for.
    pub(super) applications: OrdSet<(ControllerKey, u64)>,
    /// First addresses of what pools own (ranges without exclusions), with the last one and the pool.
    pub(super) owners: OrdMap<(u64, Family, u128), (u128, u64)>,
    /// What of a subnet no pool owns.
    pub(super) spare: OrdMap<u64, Arc<FreeSet>>,
    /// Pools that exclude something, by subnet.
    pub(super) excluding: OrdSet<(u64, u64)>,
    /// Gateways of pools: nobody gives them.
    pub(super) gateways: OrdSet<GatewayKey>,
    /// What all reservations of a network cover.
    pub(super) reserved: OrdMap<(u64, Family), Arc<RangeSet>>,
    /// Pools that may be taken from unnamed, by what they are found by, the most specific first.
    pub(super) default_pools: OrdSet<DefaultKey>,
    pub(super) spaces: OrdMap<u64, Arc<Space>>,
    pub(super) occupants: OrdMap<(u64, IpAddr), Occupant>,
    /// Incarnations, the newest last.
    pub(super) endpoints: OrdSet<(EndpointKey, u64)>,
    /// Sticky endpoints by what makes them.
    pub(super) controllers: OrdSet<(ControllerKey, u64)>,
    pub(super) attachments: ByAttachment,
    pub(super) tombstones: ByAttachment,
    pub(super) tombstones_of_node: OrdSet<(u64, u64)>,
    pub(super) tombstone_counts: OrdMap<u64, usize>,
    pub(super) boots: OrdMap<(Name, ObjectName), u64>,
    /// Resting addresses of networks.
    pub(super) resting: OrdSet<(u64, IpAddr)>,
    /// When resting addresses have rested.
    pub(super) cooling_until: OrdSet<(u64, u64)>,
    /// Which endpoint has which place in line.
    pub(super) waiting: OrdMap<u64, u64>,
    /// What is waited for, how many addresses it would have to have, and place in line.
    pub(super) waiting_for: OrdSet<(Scarce, u32, u64)>,
    /// The first place in line that something could help now.
    pub(super) head_of: OrdMap<Scarce, u64>,
    /// The same by place.
    pub(super) heads: OrdSet<(u64, Scarce)>,
    /// How many addresses namespaces and applications have.
    pub(super) had: OrdMap<Account, Had>,
    /// When leases end.
    pub(super) lease_ends: OrdSet<(u64, u64)>,
    pub(super) token_secrets: OrdMap<SecretHash, u64>,
    /// Tokens that expire, by the log time at which they do.
    pub(super) token_ends: OrdSet<(u64, u64)>,
    pub(super) replays: OrdMap<(Text, Text), u64>,
    /// Kept answers of each principal, the oldest first.
    pub(super) replays_of: OrdSet<(Text, u64)>,
    /// How much is kept for each principal.
    pub(super) replay_usage: OrdMap<Text, ReplayUsage>,
    /// The same by bytes.
    pub(super) replay_bytes_of: OrdSet<(u64, Text)>,
    /// Bytes of all kept answers.
    pub(super) replay_bytes: u64,
    /// What is cut from a pool or a prefix, by its id and by first address; with the last one and the prefix.
    pub(super) blocks: OrdMap<(u64, u128), (u128, u64)>,
    /// Prefixes by what they are cut from and whose they are.
    pub(super) prefix_owners: OrdMap<(u64, PrefixOwner), u64>,
    /// When prefixes end.
    pub(super) prefix_until: OrdSet<(u64, u64)>,
    /// What is left of prefixes from which something is cut.
    pub(super) divided: OrdMap<u64, Arc<Division>>,
}

impl Index {
    /// Takes in what was derived from other tables.
    pub(super) fn take_in(&mut self, other: Self) {
        let Self {
            names,
            pool_names,
            subnet_starts,
            pools_of_subnet,
            applications,
            owners,
            spare,
            excluding,
            gateways,
            reserved,
            default_pools,
            spaces,
            occupants,
            endpoints,
            controllers,
            attachments,
            tombstones,
            tombstones_of_node,
            tombstone_counts,
            boots,
            resting,
            cooling_until,
            waiting,
            waiting_for,
            head_of,
            heads,
            had,
            lease_ends,
            token_secrets,
            token_ends,
            replays,
            replays_of,
            replay_usage,
            replay_bytes_of,
            replay_bytes,
            blocks,
            prefix_owners,
            prefix_until,
            divided,
        } = other;
        join_maps(&mut self.names, names);
        join_maps(&mut self.pool_names, pool_names);
        join_maps(&mut self.subnet_starts, subnet_starts);
        join_sets(&mut self.pools_of_subnet, pools_of_subnet);
        join_sets(&mut self.applications, applications);
        join_maps(&mut self.owners, owners);
        join_maps(&mut self.spare, spare);
        join_sets(&mut self.excluding, excluding);
        join_sets(&mut self.gateways, gateways);
        join_maps(&mut self.reserved, reserved);
        join_sets(&mut self.default_pools, default_pools);
        join_maps(&mut self.spaces, spaces);
        join_maps(&mut self.occupants, occupants);
        join_sets(&mut self.endpoints, endpoints);
        join_sets(&mut self.controllers, controllers);
        self.attachments.take_in(attachments);
        self.tombstones.take_in(tombstones);
        join_sets(&mut self.tombstones_of_node, tombstones_of_node);
        join_maps(&mut self.tombstone_counts, tombstone_counts);
        join_maps(&mut self.boots, boots);
        join_sets(&mut self.resting, resting);
        join_sets(&mut self.cooling_until, cooling_until);
        join_maps(&mut self.waiting, waiting);
        join_sets(&mut self.waiting_for, waiting_for);
        join_maps(&mut self.head_of, head_of);
        join_sets(&mut self.heads, heads);
        join_maps(&mut self.had, had);
        join_sets(&mut self.lease_ends, lease_ends);
        join_maps(&mut self.token_secrets, token_secrets);
        join_sets(&mut self.token_ends, token_ends);
        join_maps(&mut self.replays, replays);
        join_sets(&mut self.replays_of, replays_of);
        join_maps(&mut self.replay_usage, replay_usage);
        join_sets(&mut self.replay_bytes_of, replay_bytes_of);
        self.replay_bytes += replay_bytes;
        join_maps(&mut self.blocks, blocks);
        join_maps(&mut self.prefix_owners, prefix_owners);
        join_sets(&mut self.prefix_until, prefix_until);
        join_maps(&mut self.divided, divided);
    }
}

/// Network, family, what the pool is found by, how specific it is, its name and its id.
pub(super) type DefaultKey = (u64, Family, Anchor, Rank, Name, u64);

/// Under which a pool may be taken from unnamed; none if it may not.
pub(super) fn default_keys(
    id: u64,
    pool: &PoolIntention,
    subnet: &Subnet,
) -> impl Iterator<Item = DefaultKey> + use<> {
    let (network, family) = (subnet.network, Family::of(subnet.intention.cidr.addr()));
    let anchors = if pool.default { pool.takers.anchors() } else { Vec::new() };
    let (rank, name) = (pool.takers.rank(), pool.name.clone());
    anchors.into_iter().map(move |anchor| (network, family, anchor, rank, name.clone(), id))
}

impl Index {
    /// Gives a claim its place in line.
    pub(super) fn note_waiting(&mut self, endpoint: u64, waiting: &Waiting) {
        self.waiting.insert(waiting.order, endpoint);
        let places = waiting.lacks.iter().map(|(of, need)| (of.clone(), *need, waiting.order));
        self.waiting_for.extend(places);
    }
}

/// Costs as much as the smaller one is large.
fn join_maps<K: Ord + Clone, V: Clone>(map: &mut OrdMap<K, V>, other: OrdMap<K, V>) {
    *map = std::mem::take(map).union(other);
}

/// Costs as much as the smaller one is large.
pub(super) fn join_sets<T: Ord + Clone>(set: &mut OrdSet<T>, other: OrdSet<T>) {
    *set = std::mem::take(set).union(other);
}

impl State {
    /// Derives what follows from each table by itself.
    pub(super) fn index_tables(&mut self) {
        let mut index = Index::default();
        for (id, row) in self.networks.iter() {
            index.names.insert((Kind::Network, (&row.intention.name).into()), id);
        }
        for (id, row) in self.subnets.iter() {
            index.names.insert((Kind::Subnet, (&row.intention.name).into()), id);
        }
        for (id, row) in self.reservations.iter() {
            index.names.insert((Kind::Reservation, (&row.intention.name).into()), id);
        }
        for (id, row) in self.nodes.iter() {
            index.names.insert((Kind::Node, row.intention.resource_name()), id);
        }
        for (id, row) in self.namespaces.iter() {
            index.names.insert((Kind::Namespace, row.intention.resource_name()), id);
        }
        for (id, row) in self.endpoints.iter() {
            index.endpoints.insert((row.key.clone(), id));
            index.controllers.extend(ControllerKey::of(row).map(|key| (key, id)));
            if let Some(waiting) = &row.waiting {
                index.note_waiting(id, waiting);
            }
        }
        for (id, row) in self.attachments.iter() {
            index.attachments.insert(&row.key, id);
        }
        for (id, row) in self.tombstones.iter() {
            index.tombstones.insert(&row.key, id);
            index.tombstones_of_node.insert((row.node, id));
            *index.tombstone_counts.entry(row.node).or_insert(0) += 1;
        }
        for (id, row) in self.boots.iter() {
            index.boots.insert((row.realm.clone(), row.name.clone()), id);
        }
        for (id, row) in self.tokens.iter() {
            index.names.insert((Kind::Token, (&row.name).into()), id);
            index.token_secrets.insert(row.secret_hash, id);
            index.token_ends.extend(row.expires_ms.map(|until_ms| (until_ms, id)));
        }
        for (id, row) in self.replays.iter() {
            index.keep(row, id, self.replays.bytes_of(id));
        }
        for (id, row) in self.allocations.iter() {
            index.occupants.insert((row.network, row.address), Occupant::Allocation(id));
            index.lease_ends.extend(row.lease.as_ref().map(|lease| (lease.until_ms, id)));
        }
        for (id, row) in self.coolings.iter() {
            index.occupants.insert((row.network, row.address), Occupant::Cooling(id));
            index.resting.insert((row.network, row.address));
            index.cooling_until.insert((row.until_ms, id));
        }
        for (id, row) in self.prefixes.iter() {
            index.insert_prefix(id, row);
        }
        self.index = index;
    }

    /// Derives what follows from several tables, once all of them are there.
    pub(super) fn index_across(&mut self) -> Result<(), Damaged> {
        let lost = |what: &str, id: u64| Damaged(format!("{what} {id} is named by a row and not there"));
        if self.index.occupants.len() != self.allocations.len() + self.coolings.len() {
            return Err(Damaged("one address is occupied by two rows".to_owned()));
        }
        for (id, row) in self.subnets.iter() {
            if row.intention.cidr.prefix_len() == 0 {
                return Err(Damaged(format!("subnet {id} is larger than any subnet can be")));
            }
            let cidr = AddressRange::of_cidr(row.intention.cidr);
            self.index.subnet_starts.insert((row.network, cidr.family(), cidr.first()), id);
            self.index.spare.insert(id, Arc::new(all_spare(row.intention.cidr)));
        }
        let networks: Vec<u64> = self.networks.iter().map(|(id, _)| id).collect();
        for network in networks {
            self.index_reservations(network);
        }
        let pools: Vec<(u64, Pool)> = self.pools.iter().map(|(id, row)| (id, row.clone())).collect();
        for (id, pool) in &pools {
            let subnet = self.subnets.get(pool.subnet).ok_or_else(|| lost("subnet", pool.subnet))?.clone();
            self.index_pool(*id, pool, &subnet);
        }
        let allocated: Vec<(u64, IpAddr, u64)> =
            self.allocations.iter().map(|(_, row)| (row.pool, row.address, row.endpoint)).collect();
        let stray = |address: IpAddr| Damaged(format!("{address} is occupied and not its pool's to give"));
        for (pool, address, endpoint) in allocated {
            let space = self.space_mut(pool).ok_or_else(|| lost("pool", pool))?;
            if !space.giveable.contains(number(address)) {
                return Err(stray(address));
            }
            space.allocated += 1;
            space.occupy(number(address));
            let holder = self.endpoints.get(endpoint).ok_or_else(|| lost("endpoint", endpoint))?;
            let accounts = self.accounts(holder, pool);
            self.count_address(accounts, address, true);
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
        self.index_blocks()?;
        self.refresh_all_heads();
        Ok(())
    }

    // === The index of pools and reservations ===

    pub(super) fn space_mut(&mut self, pool: u64) -> Option<&mut Space> {
        self.index.spaces.get_mut(&pool).map(Arc::make_mut)
    }

    /// Registers a new pool, with all of its addresses vacant.
    pub(super) fn index_pool(&mut self, id: u64, pool: &Pool, subnet: &Subnet) {
        self.index.names.insert((Kind::Pool, (&pool.intention.name).into()), id);
        self.index.name_pool(id, &pool.intention, subnet);
        self.index.pools_of_subnet.insert((pool.subnet, pool.automatic.is_some(), id));
        self.index.applications.extend(pool.automatic.as_deref().map(|automatic| (automatic.key(), id)));
        self.index.default_pools.extend(default_keys(id, &pool.intention, subnet));
        self.index.own(id, pool, subnet);
        self.count_pool(pool, subnet, true);
        let mut space = Space::empty(subnet.intention.cidr);
        space.reshape(self.shape_of(&pool.intention, subnet), |_, _| std::iter::empty());
        self.index.spaces.insert(id, Arc::new(space));
    }

    /// Forgets a pool. `subnet` is the one that it is cut from.
    pub(super) fn unindex_pool(&mut self, id: u64, pool: &Pool, subnet: &Subnet) {
        self.index.names.remove(&(Kind::Pool, (&pool.intention.name).into()));
        self.index.unname_pool(&pool.intention, subnet);
        self.index.pools_of_subnet.remove(&(pool.subnet, pool.automatic.is_some(), id));
        if let Some(automatic) = &pool.automatic {
            self.index.applications.remove(&(automatic.key(), id));
        }
        for key in default_keys(id, &pool.intention, subnet) {
            self.index.default_pools.remove(&key);
        }
        self.index.disown(id, pool, subnet);
        self.count_pool(pool, subnet, false);
        self.index.spaces.remove(&id);
    }

    /// Gives a pool's space the shape that its rows now say.
    pub(super) fn reshape_pool(&mut self, id: u64, shape: Shape, network: u64) {
        let Index { spaces, occupants, blocks, .. } = &mut self.index;
        let Some(space) = spaces.get_mut(&id).map(Arc::make_mut) else { return };
        let family = space.family;
        space.reshape(shape, |first, last| {
            let range = (network, family.address(first))..=(network, family.address(last));
            let addresses = occupants.range(range).map(|((_, address), _)| number(*address));
            let addresses = addresses.map(|address| (address, address));
            let cut = super::prefix::blocks_within(blocks, id, first, last);
            addresses.chain(cut.map(move |(start, (end, _))| (start.max(first), end.min(last))))
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
