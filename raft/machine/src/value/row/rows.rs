//! The rows of the state: everything that the state machine stores.

use crate::value::cause::NamedPrefix;
use crate::value::id::{
    AttachmentId, BootHistoryId, EndpointId, NetworkId, ParentId, PoolId, PrefixId, SubnetId, TokenId,
};
use crate::value::prefix::PrefixOwner;
use crate::value::quota::QuotaScope;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipam_api::Family;
use ipam_api::access::NodeKey;
use ipam_api::mac::MacAddress;
use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipam_api::node_report::Inventory;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, Lifecycle, PoolSize, ScaleDown};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::value::condition::{Readiness, WaitReason};
use crate::value::field_name::FieldName;
use crate::value::{
    AgentReadiness, Allocate, AllocationMetadata, Cause, Controller, Credential, Delegate, Grant,
    HostPolicySpec, IdList, Link, NamespaceSpec, NetworkSpec, NodeSpec, PoolSpec, Purpose, RareList,
    ReportedBoot, ReservationSpec, RouteConfig, SecretHash, Started, SubnetSpec, Text,
};

/// Identity and history of a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Id of the resource; a re-created resource has another id.
    pub id: u64,
    /// Revision of the last change of the spec.
    pub revision: u64,
    /// Wall time of the creation.
    pub created_wall_ms: u64,
    /// Principal that created it.
    pub created_by: Text,
    /// Wall time of the last change.
    pub updated_wall_ms: u64,
    /// Principal of the last change.
    pub updated_by: Text,
    /// Fields that the last change changed; empty before the first change.
    pub updated_fields: RareList<FieldName>,
}

/// An address space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Identity and history.
    pub meta: Meta,
    /// Desired state.
    pub spec: NetworkSpec,
}

/// A CIDR of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// Identity and history.
    pub meta: Meta,
    /// Desired state.
    pub spec: SubnetSpec,
    pub network: NetworkId,
}

/// A named set of addresses of a subnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Identity and history.
    pub meta: Meta,
    /// Desired state.
    pub spec: PoolSpec,
    pub subnet: SubnetId,
    /// Application of the pool, if a request created the pool.
    pub automatic: Option<Box<Automatic>>,
}

/// The application that an automatic pool is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Automatic {
    pub realm: Name,
    pub namespace: ObjectName,
    /// Controller of the endpoints; without a uid once the controller has ended.
    pub controller: Controller,
    /// Interface of the endpoints that gets addresses of this pool.
    pub interface: InterfaceName,
    /// Desired number of addresses of the pool.
    pub size: PoolSize,
    /// Desired number of replicas, from the application's last request.
    pub replicas: u32,
    /// Standing of the application.
    pub standing: AutomaticStanding,
    /// Node whose request created the pool, if any.
    pub created_by: Option<NodeKey>,
}

/// Standing of the application of an automatic pool. Variants are only ever appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AutomaticStanding {
    /// The application uses the pool.
    Present,
    /// The application uses another subnet now.
    Elsewhere,
    /// The application has ended.
    Ended,
}

/// Addresses that are never allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Identity and history.
    pub meta: Meta,
    /// Desired state.
    pub spec: ReservationSpec,
    pub network: NetworkId,
}

/// A host, as an operator describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Identity and history.
    pub meta: Meta,
    /// Desired state.
    pub spec: NodeSpec,
}

/// A group of endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Identity and history.
    pub meta: Meta,
    /// Desired state.
    pub spec: NamespaceSpec,
}

/// A template of the network configuration of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPolicy {
    /// Identity and history.
    pub meta: Meta,
    /// Desired state.
    pub spec: HostPolicySpec,
}

/// Data of a pool that changes with its use. Apart from the pool, so that a busy pool can be edited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolState {
    /// Last allocated address.
    pub cursor: Option<IpAddr>,
    pub readiness: Readiness,
    /// Wall time since which the pool has this readiness; a label.
    pub since_wall_ms: u64,
}

/// One incarnation of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Identity and history.
    pub meta: Meta,
    /// Identity of the endpoint.
    pub key: EndpointKey,
    /// Uid of the incarnation, assigned by the external system.
    pub uid: Option<Text>,
    /// Controller of the endpoint, as the last request named it.
    pub controller: Option<Box<Controller>>,
    /// Stickiness; none for other endpoints.
    pub sticky: Option<Box<Sticky>>,
    /// Ids of its allocations, oldest first.
    pub allocations: IdList<Allocation>,
    /// Waiting claim, if any.
    pub waiting: Option<Box<Waiting>>,
}

/// Waiting claim of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Place in line: the revision in which the claim began to wait.
    pub order: u64,
    /// Request that waits.
    pub request: Allocate,
    /// Credential whose rights apply.
    pub credential: Credential,
    /// Principal of the request.
    pub principal: Text,
    /// Id of the request.
    pub request_id: Text,
    /// Wall time since which the claim waits; a label.
    pub since_wall_ms: u64,
    /// Reason as a word.
    pub why: WaitReason,
    /// Cause with names and numbers.
    pub cause: Box<Cause>,
    /// Missing resources, each with the number of addresses needed; empty if no later change alone helps.
    pub missing: Vec<(WaitTarget, u32)>,
}

/// Scarce resource that a claim waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WaitTarget {
    /// A pool, by its id.
    Pool(PoolId),
    /// Remainder of a quota for a family.
    Quota(QuotaScope, Family),
    /// Free block of a pool or a prefix. The need is log2 of its size, plus one.
    Block(ParentId),
    /// Pool that delegates nothing now, and may be opened. The need is one.
    Open(PoolId),
}

/// Stickiness of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sticky {
    /// Policy for the addresses after a scale-down; by default that of their pools.
    pub scale_down: Option<ScaleDown>,
    /// True unless the controller has scaled the endpoint down, as far as known.
    pub wanted: bool,
}

/// A live attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub key: AttachmentKey,
    /// Start time of the requesting process.
    pub started: Started,
    pub endpoint: EndpointId,
    /// Ids of its allocations.
    pub allocations: IdList<Allocation>,
}

/// One address held by one interface of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    pub address: IpAddr,
    pub network: NetworkId,
    pub pool: PoolId,
    pub endpoint: EndpointId,
    /// Interface that holds the address.
    pub interface: InterfaceName,
    /// Id of the attachment, of several the newest; none if there is no attachment.
    pub attachment: Option<AttachmentId>,
    /// Ids of the other attachments, the oldest first.
    pub also_attached: RareList<AttachmentId>,
    /// Node where the address is used.
    pub node: Option<ObjectName>,
    /// Lifecycle of the allocation.
    pub lifecycle: Lifecycle,
    /// Lease, if the allocation ends by log time.
    pub lease: Option<Box<Lease>>,
    /// True if a probe found no other holder on the wire.
    pub checked: bool,
    /// The interface's hardware address.
    pub mac: Option<Text>,
    /// Metadata of the allocation.
    pub metadata: AllocationMetadata,
    /// Routes of its request, if it specified any.
    pub route_config: Option<Arc<RouteConfig>>,
    /// Wall time of the allocation.
    pub created_wall_ms: u64,
    /// Principal that requested the allocation.
    pub created_by: Text,
    /// Class of its requester.
    pub source: Source,
}

/// Requester class of an allocation; it decides which node may free it. Variants are only ever appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// A request without a node's grant: no node frees it without an attachment of its own.
    Operator,
    /// A request with this node's grant.
    Node(NodeKey),
    /// An adoption: the address was already in use, and an operator recorded it.
    Adopted,
}

/// End of an allocation unless it is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// TTL from the allocation or the last renewal.
    pub ttl_ms: u64,
    /// The log time at which it ends.
    pub until_ms: u64,
    /// Earliest wall time of the end, as a label.
    pub until_wall_ms: u64,
}

/// Tombstone of an attachment with its releases: an ADD that began before one of them is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    pub key: AttachmentKey,
    /// Latest start of a releasing process, per boot one with kernel ticks and one without; newest last.
    pub releases: Vec<Started>,
    pub node: BootHistoryId,
    /// Log time at which the tombstone is deleted.
    pub until_ms: u64,
}

/// Freed address that is cooling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooling {
    pub address: IpAddr,
    pub network: NetworkId,
    pub pool: PoolId,
    /// Log time at which the cooling ends.
    pub until_ms: u64,
}

/// Boots of a node that has sent requests, with or without a row of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootHistory {
    /// The node's realm.
    pub realm: Name,
    /// The node's name.
    pub name: ObjectName,
    /// Boots of the node, in the order in which their first requests arrived.
    pub boots: Vec<Boot>,
    /// The log time at which the present window of events ends.
    pub window_ends_ms: u64,
    /// Events in that window that requests with the node's grant caused.
    pub window_events: u64,
}

/// One boot of a node, according to its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// Start of the boot's earliest process that was seen since the last DEL from another boot.
    pub earliest: Started,
    /// True if a process was seen since then.
    pub is_confirmed: bool,
    /// True if a DEL was seen: all boots before this one are past, and their requests late.
    pub has_released: bool,
}

/// Newest report of a node's agent, with or without a row of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    pub node: NodeKey,
    /// The node's present boot.
    pub boot: ReportedBoot,
    /// Ids of earlier boots, the oldest first.
    pub past: Vec<Text>,
    pub readiness: AgentReadiness,
    /// Wall time of the last change of the readiness, as a label.
    pub since_wall_ms: u64,
    pub agent_version: Text,
    /// Log time of the newest heartbeat.
    pub heard_ms: u64,
    /// Wall time of the newest heartbeat, as a label.
    pub heard_wall_ms: u64,
    /// Links that the agent can probe.
    pub links: Vec<Link>,
    /// Attachments in the agent's journal at the newest heartbeat.
    pub inventory: Inventory,
    /// True if that inventory equaled the cluster's when the heartbeat was applied.
    pub inventory_matched: bool,
}

/// Address that a foreign host uses, and that is neither allocated nor delegated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    pub address: IpAddr,
    pub network: NetworkId,
    pub pool: PoolId,
    /// The foreign host.
    pub mac: MacAddress,
    /// Node whose agent reported it.
    pub reported_by: NodeKey,
    /// Node whose agent confirmed it.
    pub confirmed_by: Option<NodeKey>,
    /// Wall time of the report, as a label.
    pub since_wall_ms: u64,
    /// Log time of the newest answer.
    pub heard_ms: u64,
    /// Wall time of the newest answer, as a label.
    pub heard_wall_ms: u64,
}

/// Proof that no host used an address when it was probed, made ahead of its allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub address: IpAddr,
    pub network: NetworkId,
    pub pool: PoolId,
    /// Log time at which it ends.
    pub until_ms: u64,
}

/// Stations that probes of an allocated address have found. Its id is that of the allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbor {
    pub pool: PoolId,
    /// Attachment of the allocation when its station was first heard.
    pub attachment: Option<AttachmentId>,
    /// Station that answered first.
    pub mac: MacAddress,
    /// Another station that answers for the address.
    pub other: Option<MacAddress>,
    /// Log time at which another station was last recorded.
    pub other_ms: u64,
    /// Nodes whose agents heard the station.
    pub heard_by: Vec<NodeKey>,
    /// Silence since the last answer, by node.
    pub silence: Vec<Silence>,
}

/// Silent rounds of one prober.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    pub node: NodeKey,
    pub rounds: u32,
    /// Log time of the newest round.
    pub last_ms: u64,
}

/// Credential of callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Identity and history.
    pub meta: Meta,
    pub name: Name,
    pub purpose: Purpose,
    /// Rights of the token.
    pub grant: Grant,
    pub description: Text,
    /// Name of the join token that was exchanged for this token.
    pub joined_with: Option<Name>,
    pub secret_hash: SecretHash,
    /// Log time at which the token expires.
    pub expires_ms: Option<u64>,
    /// Wall time of the expiry, as a label.
    pub expires_wall_ms: Option<u64>,
    /// Token for which this join token was exchanged.
    pub used_for: Option<TokenId>,
    /// True if a node token created with this join token replaces the node's present tokens.
    pub replaces: bool,
}

/// Member of the cluster, by its id; or the record of a removed one, so that its id is never reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub name: Name,
    /// The id of its data directory.
    pub disk_id: Text,
    /// Address for peers when the member joined.
    pub peer_address: Text,
    /// URL for clients when the member joined.
    pub client_url: Text,
    /// Desired standing of the member.
    pub standing: MemberStanding,
    /// Revision at which it joined.
    pub joined: u64,
}

/// Desired standing of a member. The membership of the log follows. Variants are only ever appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberStanding {
    /// The member receives the log, and has no vote.
    Learner,
    /// The member has a vote.
    Voter,
    /// The member has left for good: its id is never used again.
    Removed,
}

/// An epoch that began with a restore. Its id is its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    pub number: u64,
    /// The revision of the state that was restored.
    pub from_revision: u64,
    /// Wall time of the restore.
    pub since_wall_ms: u64,
    /// Ids of the confirmed pools; none once all are confirmed.
    pub confirmed: BTreeSet<PoolId>,
    /// Time of the confirmation of all pools.
    pub ended_wall_ms: Option<u64>,
}

/// A block of addresses that an owner may divide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// CIDR of the prefix.
    pub cidr: IpNet,
    pub network: NetworkId,
    /// Id of the pool at the root of the prefix's tree.
    pub pool: PoolId,
    /// Id of the parent prefix, or of the pool if the prefix is cut from the pool itself.
    pub parent: ParentId,
    pub owner: PrefixOwner,
    /// True if its first and its last address are never allocated.
    pub keep_edges: bool,
    /// TTL without a refresh, in log time; none for a prefix that lasts until its release.
    pub ttl_ms: Option<u64>,
    /// The log time at which it ends, with everything below it.
    pub until_ms: Option<u64>,
    /// True after a release: the prefix is only waiting for its deletion.
    pub released: bool,
    /// Wall time of the delegation.
    pub created_wall_ms: u64,
    /// Principal that requested it.
    pub created_by: Text,
}

/// Prefix request that waits for a block. Its id is its place in the queue, the revision in which it began to
/// wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixClaim {
    /// Id of the pool at the root of the tree.
    pub pool: PoolId,
    /// Owner of the last level.
    pub owner: PrefixOwner,
    /// Request that waits.
    pub request: Delegate,
    /// Credential whose rights apply.
    pub credential: Credential,
    /// Principal of the request.
    pub principal: Text,
    /// Id of the request.
    pub request_id: Text,
    /// Wall time since which the claim waits; a label.
    pub since_wall_ms: u64,
    /// Reason as a word.
    pub why: WaitReason,
    /// Cause with names and numbers.
    pub cause: Box<Cause>,
    /// Missing block; none if no later change alone helps.
    pub missing: Option<MissingBlock>,
}

/// Block that a prefix claim needs next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingBlock {
    /// Resource that the claim waits for.
    pub of: WaitTarget,
    /// Need of the resource: log2 of the block's size plus one.
    ///
    /// The need is 0 if the owner's last address cools there, and `u32::MAX` until the prefix is deleted.
    pub need: u32,
    /// Owner of the first level that doesn't exist.
    pub owner: PrefixOwner,
}

/// Cooling block of one address, cut from another prefix. Blocks of pools cool as [`Cooling`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixCooling {
    /// Prefix that the block was cut from.
    pub parent: PrefixId,
    pub network: NetworkId,
    /// Id of the pool at the root of the tree.
    pub pool: PoolId,
    pub address: IpAddr,
    /// Last owner, to which the address can be reallocated at once.
    pub owner: PrefixOwner,
    /// Log time at which the cooling ends.
    pub until_ms: u64,
}

/// Need that no free block meets.
pub(crate) const NEVER_ROOM: u32 = u32::MAX;

impl NamedPrefix {
    pub(crate) fn of(id: PrefixId, row: &Prefix) -> Self {
        Self { id, cidr: row.cidr, owner: row.owner.clone() }
    }
}

/// End of a released prefix: below any log time, so that the grace of a leadership doesn't delay it.
pub(crate) const RELEASED_MS: u64 = 0;
