//! Index: data that is derived from the rows to find things fast, never stored and always rebuilt.

use crate::command::{Kind, SecretHash, Text};
use crate::space::Space;
use crate::space::free_set::FreeSet;
use crate::state::attachment_index::ByAttachment;
use crate::state::division::Division;
use crate::state::id::{
    AllocationId, BootHistoryId, CheckId, CoolingId, EndpointId, Id, NetworkId, ParentId, PoolId,
    PrefixClaimId, PrefixCoolingId, PrefixId, ReplayId, ReservationId, SubnetId, TokenId, TombstoneId,
};
use crate::state::inventory::Inventories;
use crate::state::key::{
    ControllerKey, GatewayKey, PoolNames, PrefixPath, QuotaUsage, Rank, ReplayUsage, SelectorKey, Usage,
    Waiter,
};
use crate::state::lease_index::LeaseIndex;
use crate::state::occupants::Occupants;
use crate::state::row::{
    Attachment, NodeReport, PrefixOwner, QuotaScope, ReportedPod, ReportedRealm, Tombstone, WaitTarget,
};
use crate::tree::{Tree, TreeSet};
use ipam_api::access::NodeKey;
use ipam_api::name::{Name, ObjectName, ResourceName};
use ipam_api::resource::EndpointKey;
use ipam_api::{Family, RangeSet};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

/// Part of the index, merged from the parts of several loading lanes.
pub(crate) trait Part {
    /// Merges the entries of other tables. The cost is proportional to the smaller part.
    fn take_in(&mut self, other: Self);
}

impl<K: Ord + Clone, V: Clone> Part for Tree<K, V> {
    fn take_in(&mut self, other: Self) {
        Self::take_in(self, other);
    }
}

impl<T: Ord + Clone> Part for TreeSet<T> {
    fn take_in(&mut self, other: Self) {
        Self::take_in(self, other);
    }
}

impl Part for u64 {
    fn take_in(&mut self, other: Self) {
        *self += other;
    }
}

macro_rules! index {
    ($($(#[doc = $doc:literal])* $part:ident: $type:ty;)*) => {
        /// Data that is derived from the rows: never stored, always rebuilt.
        #[derive(Debug, Clone, Default)]
        pub(crate) struct Index {
            $($(#[doc = $doc])* pub(crate) $part: $type,)*
        }

        impl Index {
            /// Merges the entries of other tables.
            pub(crate) fn take_in(&mut self, other: Self) {
                $(self.$part.take_in(other.$part);)*
            }
        }

        #[cfg(feature = "testing")]
        impl crate::state::State {
            /// Names of the parts of the index that differ from those of another state. Equal rows have none.
            #[must_use]
            pub fn index_differences(&self, other: &Self) -> Vec<&'static str> {
                let parts = [$((stringify!($part), self.index.$part == other.index.$part)),*];
                parts.into_iter().filter_map(|(part, is_same)| (!is_same).then_some(part)).collect()
            }
        }

        #[cfg(feature = "testing")]
        impl Index {
            /// Parts with their names, to be dropped one after another.
            pub(super) fn into_parts(self) -> Vec<(&'static str, Box<dyn std::any::Any>)> {
                vec![$((stringify!($part), Box::new(self.$part))),*]
            }
        }
    };
}

index! {
    names: Tree<(Kind, ResourceName), u64>;
    /// Pools by family, rank and name.
    pool_names: PoolNames;
    /// First addresses of subnets.
    subnet_starts: Tree<(NetworkId, Family, u128), SubnetId>;
    /// Subnet, whether the pool is automatic, and the pool.
    pools_of_subnet: TreeSet<(SubnetId, bool, PoolId)>;
    /// Automatic pools by the controller of their application.
    applications: TreeSet<(ControllerKey, PoolId)>;
    /// Number of existing automatic pools that requests of each node created.
    automatic_of_node: Tree<NodeKey, usize>;
    /// First addresses of what pools own (ranges without exclusions), with the last one and the pool.
    owners: Tree<(NetworkId, Family, u128), (u128, PoolId)>;
    /// Reported pods by realm and uid.
    pod_uids: Tree<(Name, Text), Id<ReportedPod>>;
    pod_realms: Tree<Name, Id<ReportedRealm>>;
    /// Realms of reported pods by the log time until which they are verified.
    verified_until: TreeSet<(u64, Id<ReportedRealm>)>;
    /// Addresses of a subnet that no pool owns.
    unassigned: Tree<SubnetId, Arc<FreeSet>>;
    /// Pools that exclude something, by subnet.
    excluding: TreeSet<(SubnetId, PoolId)>;
    /// Gateways of pools, which no pool allocates.
    gateways: TreeSet<GatewayKey>;
    /// Addresses that all reservations of a network cover.
    reserved: Tree<(NetworkId, Family), Arc<RangeSet>>;
    /// Ranges that reservations record for an endpoint.
    records: TreeSet<(NetworkId, Family, u128, u128, ReservationId)>;
    /// Reservations that record addresses, by their endpoint.
    records_of: TreeSet<(EndpointKey, ReservationId)>;
    /// Default pools by their selector keys, the most specific first.
    default_pools: TreeSet<DefaultKey>;
    spaces: Tree<PoolId, Arc<Space>>;
    occupants: Occupants;
    /// Incarnations, the newest last.
    endpoints: TreeSet<(EndpointKey, EndpointId)>;
    /// Incarnations of hosts by realm and name, in all namespaces.
    hosts: TreeSet<(Name, ObjectName, EndpointId)>;
    /// Sticky endpoints by their controller.
    controllers: TreeSet<(ControllerKey, EndpointId)>;
    attachments: ByAttachment<Attachment>;
    tombstones: ByAttachment<Tombstone>;
    tombstones_of_node: TreeSet<(BootHistoryId, TombstoneId)>;
    tombstone_counts: Tree<BootHistoryId, usize>;
    boots: Tree<(Name, ObjectName), BootHistoryId>;
    /// Newest reports of nodes' agents.
    reports: Tree<NodeKey, Id<NodeReport>>;
    /// Use of the cluster by nodes.
    usage: UsageByNode;
    /// Attachments of nodes, with their digests.
    inventories: Inventories;
    /// Occupied addresses of networks without a holder: cooling or quarantined.
    unheld: TreeSet<(NetworkId, IpAddr)>;
    /// Quarantined addresses of networks.
    quarantined: TreeSet<(NetworkId, IpAddr)>;
    /// Ends of checks.
    checks_until: TreeSet<(u64, CheckId)>;
    /// Allocated addresses for which two stations answer, by pool.
    collisions: TreeSet<(PoolId, AllocationId)>;
    /// Nodes by their links: network and addresses; none is empty.
    links: Tree<(Name, IpNet), TreeSet<NodeKey>>;
    /// Reports of nodes by the log time of the newest heartbeat.
    heard: TreeSet<(u64, Id<NodeReport>)>;
    /// Ends of cooling times.
    cooling_until: TreeSet<(u64, CoolingId)>;
    /// Waiting claims by their place in line.
    waiting: Tree<u64, Waiter>;
    /// Claims by scarce resource, number of addresses that they need of it, and place in line.
    waiting_for: TreeSet<(WaitTarget, u32, u64)>;
    /// Place in line of the first claim that each resource could serve now.
    first_waiter_of: Tree<WaitTarget, u64>;
    /// First claims that the resources could serve now, by place in line.
    ready_waiters: TreeSet<(u64, WaitTarget)>;
    /// Numbers of addresses that namespaces and applications hold.
    used: Tree<QuotaScope, QuotaUsage>;
    /// Ends of leases.
    leases: LeaseIndex;
    token_secrets: Tree<SecretHash, TokenId>;
    /// Tokens that expire, by the log time at which they do.
    token_ends: TreeSet<(u64, TokenId)>;
    /// Tokens of nodes, by the node, the oldest first.
    node_tokens: TreeSet<(NodeKey, TokenId)>;
    replays: Tree<(Text, Text), ReplayId>;
    /// Kept answers of each principal, the oldest first.
    replays_of: TreeSet<(Text, ReplayId)>;
    /// Kept answers of each principal.
    replay_usage: Tree<Text, ReplayUsage>;
    /// Principals by the bytes of their kept answers.
    replay_bytes_of: TreeSet<(u64, Text)>;
    /// Bytes of all kept answers.
    replay_bytes: u64;
    /// Blocks by parent (pool or prefix) and first address; the value is the last address and the prefix.
    blocks: Tree<(ParentId, u128), (u128, PrefixId)>;
    /// Prefixes by parent and owner.
    prefix_owners: Tree<(ParentId, PrefixOwner), PrefixId>;
    /// Prefixes and prefix claims by the name and the realm of their owner.
    prefixes_owned: TreeSet<(ObjectName, Name, u64)>;
    /// Ends of prefixes.
    prefix_until: TreeSet<(u64, PrefixId)>;
    /// Free addresses of prefixes from which others are cut.
    divided: Tree<PrefixId, Arc<Division>>;
    /// Prefix claims by their request.
    prefix_claims: Tree<PrefixPath, PrefixClaimId>;
    /// Prefix claims by the source that they name.
    claims_from: TreeSet<(ParentId, PrefixClaimId)>;
    /// Prefix claims by the parent and the owner of the prefix that they need next.
    awaited_prefixes: TreeSet<(ParentId, PrefixOwner, PrefixClaimId)>;
    /// Cooling blocks by the prefix that they were cut from, the longest-cooling first.
    prefix_coolings_of: TreeSet<(PrefixId, PrefixCoolingId)>;
    /// Cooling blocks by the prefix that they were cut from, and by address.
    prefix_cooling_at: Tree<(PrefixId, u128), PrefixCoolingId>;
    /// Cooling blocks by the prefix that they were cut from, and by owner.
    prefix_cooling_owners: Tree<(PrefixId, PrefixOwner), PrefixCoolingId>;
    /// Ends of the cooling times of blocks.
    prefix_cooling_until: TreeSet<(u64, PrefixCoolingId)>;
}

/// Network, family, selector key, specificity, name and id of a default pool.
pub(crate) type DefaultKey = (NetworkId, Family, SelectorKey, Rank, Name, PoolId);

/// Use of the cluster by nodes that use it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsageByNode(Tree<NodeKey, Usage>);

impl Part for UsageByNode {
    fn take_in(&mut self, other: Self) {
        for (node, usage) in other.0.iter() {
            self.0.change(node.clone(), |own| *own = own.plus(*usage));
        }
    }
}

impl UsageByNode {
    pub(crate) fn of(&self, node: &NodeKey) -> Usage {
        self.0.get(node).copied().unwrap_or_default()
    }

    pub(crate) fn change(&mut self, node: &NodeKey, change: impl FnOnce(&mut Usage)) {
        let mut usage = self.of(node);
        change(&mut usage);
        if usage == Usage::default() {
            self.0.remove(node);
        } else {
            self.0.insert(node.clone(), usage);
        }
    }
}
