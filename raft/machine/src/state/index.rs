//! What is derived from the rows to find things fast: never stored, always rebuilt.

use crate::command::{Kind, SecretHash, Text};
use crate::space::Space;
use crate::space::free_set::FreeSet;
use crate::state::Occupant;
use crate::state::attachment_index::ByAttachment;
use crate::state::division::Division;
use crate::state::id::{
    AllocationId, BootsId, CoolingId, EndpointId, NetworkId, ParentId, PoolId, PrefixId, ReplayId, SubnetId,
    TokenId, TombstoneId,
};
use crate::state::key::{Anchor, ControllerKey, GatewayKey, Had, PoolNames, Rank, ReplayUsage, Usage};
use crate::state::node_tokens::NodeTokens;
use crate::state::row::{Account, Attachment, PrefixOwner, Scarce, Tombstone};
use imbl::{OrdMap, OrdSet};
use ipam_api::access::NodeKey;
use ipam_api::name::{Name, ObjectName, ResourceName};
use ipam_api::resource::EndpointKey;
use ipam_api::{Family, RangeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// What is derived from the rows: never stored, always rebuilt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    pub(crate) names: OrdMap<(Kind, ResourceName), u64>,
    /// Pools by family, rank and name.
    pub(crate) pool_names: PoolNames,
    /// First addresses of subnets.
    pub(crate) subnet_starts: OrdMap<(NetworkId, Family, u128), SubnetId>,
    /// Subnet, whether the pool is automatic, and the pool.
    pub(crate) pools_of_subnet: OrdSet<(SubnetId, bool, PoolId)>,
    /// Automatic pools by what makes the endpoints that they are for.
    pub(crate) applications: OrdSet<(ControllerKey, PoolId)>,
    /// Automatic pools that requests of nodes made and that still exist: how many of each node.
    pub(crate) automatic_of_node: OrdMap<NodeKey, usize>,
    /// First addresses of what pools own (ranges without exclusions), with the last one and the pool.
    pub(crate) owners: OrdMap<(NetworkId, Family, u128), (u128, PoolId)>,
    /// What of a subnet no pool owns.
    pub(crate) spare: OrdMap<SubnetId, Arc<FreeSet>>,
    /// Pools that exclude something, by subnet.
    pub(crate) excluding: OrdSet<(SubnetId, PoolId)>,
    /// Gateways of pools: nobody gives them.
    pub(crate) gateways: OrdSet<GatewayKey>,
    /// What all reservations of a network cover.
    pub(crate) reserved: OrdMap<(NetworkId, Family), Arc<RangeSet>>,
    /// Pools that may be taken from unnamed, by what they are found by, the most specific first.
    pub(crate) default_pools: OrdSet<DefaultKey>,
    pub(crate) spaces: OrdMap<PoolId, Arc<Space>>,
    pub(crate) occupants: OrdMap<(NetworkId, IpAddr), Occupant>,
    /// Incarnations, the newest last.
    pub(crate) endpoints: OrdSet<(EndpointKey, EndpointId)>,
    /// Sticky endpoints by what makes them.
    pub(crate) controllers: OrdSet<(ControllerKey, EndpointId)>,
    pub(crate) attachments: ByAttachment<Attachment>,
    pub(crate) tombstones: ByAttachment<Tombstone>,
    pub(crate) tombstones_of_node: OrdSet<(BootsId, TombstoneId)>,
    pub(crate) tombstone_counts: OrdMap<BootsId, usize>,
    pub(crate) boots: OrdMap<(Name, ObjectName), BootsId>,
    /// Use of the cluster by nodes.
    pub(crate) usage: OrdMap<NodeKey, Usage>,
    /// Resting addresses of networks.
    pub(crate) resting: OrdSet<(NetworkId, IpAddr)>,
    /// When resting addresses have rested.
    pub(crate) cooling_until: OrdSet<(u64, CoolingId)>,
    /// Which endpoint has which place in line.
    pub(crate) waiting: OrdMap<u64, EndpointId>,
    /// What is waited for, how many addresses it would have to have, and place in line.
    pub(crate) waiting_for: OrdSet<(Scarce, u32, u64)>,
    /// The first place in line that something could help now.
    pub(crate) head_of: OrdMap<Scarce, u64>,
    /// The same by place.
    pub(crate) heads: OrdSet<(u64, Scarce)>,
    /// How many addresses namespaces and applications have.
    pub(crate) had: OrdMap<Account, Had>,
    /// When leases end.
    pub(crate) lease_ends: OrdSet<(u64, AllocationId)>,
    pub(crate) token_secrets: OrdMap<SecretHash, TokenId>,
    /// Tokens that expire, by the log time at which they do.
    pub(crate) token_ends: OrdSet<(u64, TokenId)>,
    pub(crate) node_tokens: NodeTokens,
    pub(crate) replays: OrdMap<(Text, Text), ReplayId>,
    /// Kept answers of each principal, the oldest first.
    pub(crate) replays_of: OrdSet<(Text, ReplayId)>,
    /// How much is kept for each principal.
    pub(crate) replay_usage: OrdMap<Text, ReplayUsage>,
    /// The same by bytes.
    pub(crate) replay_bytes_of: OrdSet<(u64, Text)>,
    /// Bytes of all kept answers.
    pub(crate) replay_bytes: u64,
    /// What is cut from a pool or a prefix, by its id and by first address; with the last one and the prefix.
    pub(crate) blocks: OrdMap<(ParentId, u128), (u128, PrefixId)>,
    /// Prefixes by what they are cut from and whose they are.
    pub(crate) prefix_owners: OrdMap<(ParentId, PrefixOwner), PrefixId>,
    /// When prefixes end.
    pub(crate) prefix_until: OrdSet<(u64, PrefixId)>,
    /// What is left of prefixes from which something is cut.
    pub(crate) divided: OrdMap<PrefixId, Arc<Division>>,
}

impl Index {
    /// Takes in what was derived from other tables.
    pub(crate) fn take_in(&mut self, other: Self) {
        let Self {
            names,
            pool_names,
            subnet_starts,
            pools_of_subnet,
            applications,
            automatic_of_node,
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
            usage,
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
            node_tokens,
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
        join_maps(&mut self.automatic_of_node, automatic_of_node);
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
        self.usage = std::mem::take(&mut self.usage).union_with(usage, Usage::plus);
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
        self.node_tokens.take_in(node_tokens);
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
pub(crate) type DefaultKey = (NetworkId, Family, Anchor, Rank, Name, PoolId);

/// Costs as much as the smaller one is large.
fn join_maps<K: Ord + Clone, V: Clone>(map: &mut OrdMap<K, V>, other: OrdMap<K, V>) {
    *map = std::mem::take(map).union(other);
}

/// Costs as much as the smaller one is large.
pub(crate) fn join_sets<T: Ord + Clone>(set: &mut OrdSet<T>, other: OrdSet<T>) {
    *set = std::mem::take(set).union(other);
}

impl Index {
    /// Changes the counts of a node's use.
    pub(crate) fn count_usage(&mut self, node: &NodeKey, change: impl FnOnce(&mut Usage)) {
        let mut usage = self.usage.get(node).copied().unwrap_or_default();
        change(&mut usage);
        if usage == Usage::default() {
            self.usage.remove(node);
        } else {
            self.usage.insert(node.clone(), usage);
        }
    }
}
