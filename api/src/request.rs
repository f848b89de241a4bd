//! Requests of clients for allocations and attachments.

mod automatic;
mod bulk;
mod prefix;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::address::{AddressRange, Family};
use crate::client::push_encoded;
use crate::name::{InterfaceName, Name, NamePattern, NetworkAttachment, ObjectName};
use crate::resource::{
    Allocation, Condition, Controller, EndpointKey, Interface, Labels, Lease, Lifecycle, Route, ScaleDown,
};

pub use automatic::{AutomaticPool, EndRequest};
pub use bulk::{
    BulkAllocateRequest, BulkAllocated, BulkAllocation, BulkPool, BulkReleaseRequest, BulkReleased,
};
pub use prefix::{
    DelegateRequest, Delegated, PrefixLevel, PrefixReleased, PrefixesSet, ReleasedPrefix, SetPrefixesRequest,
};

/// CNI attachment on a node of a realm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AttachmentKey {
    /// The node's realm.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// The node's name.
    pub node: ObjectName,
    /// `name` of the network configuration.
    pub config: ObjectName,
    /// The container's id.
    pub container_id: ObjectName,
    /// The interface's name.
    pub interface: InterfaceName,
}

impl std::fmt::Display for AttachmentKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}/{}/{}", self.realm, self.node, self.config, self.container_id, self.interface)
    }
}

impl AttachmentKey {
    /// Path of the attachment in the HTTP API.
    #[must_use]
    pub fn path(&self) -> String {
        let Self { realm, node, config, container_id, interface } = self;
        let segments =
            [realm.as_str(), node.as_str(), config.as_str(), container_id.as_str(), interface.as_str()];
        segments.iter().fold("/v1/attachments".to_owned(), |mut path, segment| {
            path.push('/');
            push_encoded(&mut path, segment);
            path
        })
    }
}

/// Start time of the requesting process, on a clock of its machine.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// `/proc/sys/kernel/random/boot_id` of the machine.
    pub boot_id: String,
    /// `CLOCK_BOOTTIME` as the process read it first, in microseconds.
    pub at_us: u64,
    /// The kernel's start time of the process: field 22 of `/proc/self/stat`, in ticks of 10 ms since boot.
    /// It orders two processes of one boot; `at_us` decides between equal ticks.
    pub start_ticks: Option<u64>,
}

/// One interface of an allocation request.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InterfaceRequest {
    /// Name of the interface.
    pub name: InterfaceName,
    /// Subnets to allocate from, in this order for equally specific pools. They precede all other sources of
    /// pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Name>,
    /// IPv4 pools to try, in this order where they are equally specific. Names may have wildcards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv4_pools: Vec<NamePattern>,
    /// IPv6 pools to try, in the same way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6_pools: Vec<NamePattern>,
    /// IPv4 pools of the node's configuration. They are tried if neither the request nor the endpoint's
    /// namespace names pools of either family.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_ipv4_pools: Vec<NamePattern>,
    /// IPv6 pools to try, in the same case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_ipv6_pools: Vec<NamePattern>,
    /// Families that need an address; by default those of the applicable pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<Family>,
    /// Requested addresses; others are chosen by the pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// The interface's hardware address, if known.
    pub mac: Option<String>,
    /// The network attachment of the interface; without it the attachment's `config`, on its own interface.
    pub network_attachment: Option<NetworkAttachment>,
    /// True if the interface's routers get no default route.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean_gateway: bool,
    /// Addresses of the host's interface that this one is connected to: only pools whose subnet contains one
    /// of them are used. Without any, the host's interface makes no difference. Not permitted with `wait`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_addresses: Vec<IpAddr>,
}

impl InterfaceRequest {
    /// Interface without any settings.
    #[must_use]
    pub fn blank(name: InterfaceName) -> Self {
        Self {
            name,
            subnets: Vec::new(),
            ipv4_pools: Vec::new(),
            ipv6_pools: Vec::new(),
            default_ipv4_pools: Vec::new(),
            default_ipv6_pools: Vec::new(),
            families: Vec::new(),
            addresses: Vec::new(),
            mac: None,
            network_attachment: None,
            clean_gateway: false,
            link_addresses: Vec::new(),
        }
    }
}

/// `POST /v1/allocations`: addresses for one endpoint, all or none.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AllocateRequest {
    /// Endpoint that gets the addresses.
    pub endpoint: EndpointKey,
    /// Uid of the endpoint's incarnation in its external system.
    pub uid: Option<String>,
    /// The endpoint's labels, by which pools select.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The node where they will be, if on one.
    pub node: Option<ObjectName>,
    /// Attachment of the allocations; makes them `attached`. Its interface must be among the interfaces; the
    /// others are allocated with it, all or none, and stay *preallocated* until their own ADD. The whole list
    /// may be repeated with each ADD: existing allocations are unaffected.
    pub attachment: Option<AttachmentKey>,
    /// Controller that creates the endpoint. Endpoints of a `StatefulSet`, `VirtualMachine` or
    /// `VirtualMachineInstance` are sticky: they keep their addresses for their return.
    pub controller: Option<Controller>,
    /// Number of replicas that the controller wants, if known.
    pub replicas: Option<u32>,
    /// True if the endpoint is sticky; for controllers that don't imply it.
    pub sticky: Option<bool>,
    /// Policy for a sticky endpoint's addresses after a scale-down; without it the pool's policy applies.
    pub scale_down: Option<ScaleDown>,
    /// End of the allocations: `attached` with an attachment, `leased` with `ttl_ms`, else `held`.
    pub lifecycle: Option<Lifecycle>,
    /// The interfaces that need addresses.
    pub interfaces: Vec<InterfaceRequest>,
    /// The pools that the endpoint's application has for itself, in subnets that interfaces name. Needs
    /// `controller`.
    pub automatic_pool: Option<AutomaticPool>,
    /// Further routes, default routes among them. A route belongs to the first interface whose subnet
    /// contains its gateway, and replaces the subnet's routes to the same destination. Stored with the
    /// addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Interface whose routers get a default route. Without it each interface gets one, unless it has
    /// `clean_gateway`.
    pub default_route_interface: Option<InterfaceName>,
    /// Annotations of Spiderpool, as on a pod. They are equivalent to the other fields and may not contradict
    /// them; annotations of other systems are ignored.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    /// Start time of the requesting process.
    pub started: Option<Started>,
    /// TTL of the lease, in milliseconds of log time; repeating the request renews it.
    pub ttl_ms: Option<u64>,
    /// True to record addresses that the interfaces have already. Ignores selectors, disabled pools,
    /// reservations and cooling; never takes an address that another endpoint holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    /// True for a host that was installed again: the endpoint of kind `host` gets the `uid` of this request,
    /// and keeps the addresses that it holds under another uid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_over: bool,
    /// True to wait while the pools are exhausted: the endpoint is queued and served as soon as possible. Not
    /// permitted with an attachment or a requested address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// Host name in DNS. Like the description it is taken from the request that allocated; a repetition
    /// changes neither.
    pub hostname: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl AllocateRequest {
    /// Request of an endpoint without any settings.
    #[must_use]
    pub fn blank(endpoint: EndpointKey) -> Self {
        Self {
            endpoint,
            uid: None,
            labels: Labels::new(),
            node: None,
            attachment: None,
            controller: None,
            replicas: None,
            sticky: None,
            scale_down: None,
            lifecycle: None,
            interfaces: Vec::new(),
            automatic_pool: None,
            routes: Vec::new(),
            default_route_interface: None,
            annotations: Labels::new(),
            started: None,
            ttl_ms: None,
            adopt: false,
            take_over: false,
            wait: false,
            hostname: None,
            description: String::new(),
        }
    }
}

/// The answer to an allocation request.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allocated {
    /// Endpoint that got the addresses.
    pub endpoint: EndpointKey,
    /// Allocated addresses by interface.
    pub interfaces: Vec<Interface>,
    /// True if an earlier request had allocated them and this one changed nothing.
    pub repeated: bool,
    /// Reason for waiting, if nothing was allocated and the request waits.
    pub waiting: Option<Condition>,
    /// Revision of the allocation.
    pub revision: u64,
}

/// `POST /v1/attachments/release`: the request of CNI DEL.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseAttachmentRequest {
    /// Attachment to release.
    pub attachment: AttachmentKey,
    /// Start time of the requesting process.
    pub started: Option<Started>,
    /// Endpoint that the runtime ends. Without such an attachment, the request releases what the endpoint
    /// with this `uid` has adopted on the attachment's node.
    pub endpoint: Option<EndpointKey>,
    /// Incarnation of the endpoint; without it nothing adopted is released.
    pub uid: Option<String>,
}

/// Request to split ranges off a pool into a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SplitRequest {
    /// The new pool's name.
    pub into: Name,
    /// Ranges that move from the old pool to the new one.
    pub ranges: Vec<AddressRange>,
}

/// Request to replace a pool, which allocates nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// The other pool.
    pub to: Name,
}

/// Response to draining a pool, with the affected allocations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drained {
    /// Name of the drained pool.
    pub pool: Name,
    /// The one that stands in for it.
    pub to: Name,
    /// Addresses that are still held in it.
    pub held: u64,
    /// Allocations that are still held, lowest address first, at most 1000. Each moves at its next request.
    pub affected: Vec<Allocation>,
    /// Revision after the request.
    pub revision: u64,
}

/// `POST /v1/controllers/scale`: new number of a controller's replicas. Sticky endpoints that it no longer
/// wants lose their addresses unless the policy is to keep them; running ones lose them at their end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScaleRequest {
    /// Realm of the controller.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Namespace of the controller.
    #[serde(default = "ObjectName::default_name")]
    pub namespace: ObjectName,
    /// Controller to scale. With a uid, endpoints of its other incarnations are unaffected.
    pub controller: Controller,
    /// Number of wanted replicas. For a controller without ordinals any number but 0 keeps all endpoints.
    pub replicas: u32,
    /// First ordinal of the endpoints' names.
    #[serde(default)]
    pub start: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The answer to a release: which addresses are free of their holder now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Released {
    /// Released addresses, at most 65,536; empty if there was nothing to release.
    pub addresses: Vec<IpAddr>,
    /// Number of released addresses beyond those listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// True if nothing was released because the request was late: the attachment's ADD began after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Revision after the request.
    pub revision: u64,
}

/// `POST …/renew` of an allocation or an endpoint. Without a body each lease lasts as long again as before.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// New TTL from now, in milliseconds of log time; unchanged if absent.
    pub ttl_ms: Option<u64>,
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Renewed {
    /// Renewed leases, oldest first; at most 65,536.
    pub leases: Vec<RenewedLease>,
    /// Number of renewed leases beyond those listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Revision after the request.
    pub revision: u64,
}

/// A lease that was renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenewedLease {
    /// The allocation's id.
    pub allocation: u64,
    /// Address of the allocation.
    pub address: IpAddr,
    /// Lease with its new end.
    pub lease: Lease,
}

/// `GET /v1/attachments/{realm}/{node}/{config}/{container id}/{interface}`: the request of CNI CHECK.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attachment {
    /// Attachment that was released.
    pub attachment: AttachmentKey,
    /// Endpoint that holds the attachment's addresses.
    pub endpoint: EndpointKey,
    /// The interface with its addresses.
    pub interface: Interface,
    /// The state that this was read from.
    pub revision: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_carries_any_name() {
        let path = |interface: &str| {
            let name = |text| ObjectName::new(text).unwrap();
            let (node, config, container_id) = (name("node:1"), name("net"), name("c1"));
            let interface = InterfaceName::new(interface).unwrap();
            AttachmentKey { realm: Name::default_name(), node, config, container_id, interface }.path()
        };
        assert_eq!(path("eth0"), "/v1/attachments/default/node%3A1/net/c1/eth0");
        assert_eq!(path("é%?#"), "/v1/attachments/default/node%3A1/net/c1/%C3%A9%25%3F%23");
    }
}
