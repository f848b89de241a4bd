//! Keys and values of the index.

use crate::value::row::Automatic;
use ipam_api::access::NodeKey;
use ipam_api::request::AttachmentKey;
use std::cmp::Reverse;

use crate::tree::Tree;
use ipam_api::Family;
use ipam_api::name::{Name, NetworkAttachment, ObjectName, ResourceName};

use crate::value::id::{EndpointId, NetworkId, ParentId, PoolId, PrefixClaimId};
use crate::value::row::Endpoint;
use crate::value::{Allocate, Controller, ControllerName, Text};

/// Key under which the index lists a controller's endpoints and automatic pools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ControllerKey {
    pub(crate) realm: Name,
    pub(crate) namespace: ObjectName,
    pub(crate) controller: ControllerName,
}

impl ControllerKey {
    pub(crate) fn new(realm: &Name, namespace: &ObjectName, controller: &Controller) -> Self {
        Self {
            realm: realm.clone(),
            namespace: namespace.clone(),
            controller: ControllerName::of(controller),
        }
    }

    /// Key of the controller of a sticky endpoint, if it has one.
    pub(crate) fn of(row: &Endpoint) -> Option<Self> {
        let controller = row.controller.as_deref().filter(|_| row.sticky.is_some())?;
        Some(Self::new(&row.key.realm, &row.key.namespace, controller))
    }
}

/// Application: a controller in its realm and namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Application<'a> {
    pub(crate) realm: &'a Name,
    pub(crate) namespace: &'a ObjectName,
    pub(crate) controller: &'a Controller,
}

impl<'a> Application<'a> {
    pub(crate) fn of(request: &'a Allocate) -> Option<Self> {
        let controller = request.stickiness.controller.as_ref()?;
        Some(Self { realm: &request.endpoint.realm, namespace: &request.endpoint.namespace, controller })
    }

    pub(crate) fn key(&self) -> ControllerKey {
        ControllerKey::new(self.realm, self.namespace, self.controller)
    }

    /// Returns true if a pool was created for this application, in any incarnation.
    pub(crate) fn has(&self, pool: &Automatic) -> bool {
        let (one, other) = (&self.controller, &pool.controller);
        (self.realm, self.namespace) == (&pool.realm, &pool.namespace)
            && (&one.group, &one.kind, &one.name) == (&other.group, &other.kind, &other.name)
    }
}

/// Requirement of a pool by which requests find it. A pool with one isn't examined for requests that don't
/// meet it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SelectorKey {
    Any,
    Label(Text, Text),
    Node(ObjectName),
    NodeLabel(Text, Text),
    Namespace(ObjectName),
    NamespaceLabel(Text, Text),
    Attachment(NetworkAttachment),
    Realm(Name),
}

/// Specificity of a pool. The more specific one sorts first.
pub(crate) type Rank = [Reverse<bool>; 7];

/// Rank that no other sorts before.
pub(crate) const MOST_SPECIFIC: Rank = [Reverse(true); 7];

/// Numbers of held addresses by family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// IPv4 addresses.
    pub ipv4: u64,
    /// IPv6 addresses.
    pub ipv6: u64,
}

impl QuotaUsage {
    pub(crate) fn of(self, family: Family) -> u64 {
        match family {
            Family::V4 => self.ipv4,
            Family::V6 => self.ipv6,
        }
    }

    pub(crate) fn of_mut(&mut self, family: Family) -> &mut u64 {
        match family {
            Family::V4 => &mut self.ipv4,
            Family::V6 => &mut self.ipv6,
        }
    }
}

/// Pools by family, rank and name: the order in which the pools of one pattern are tried.
pub(crate) type PoolNames = Tree<(Family, Rank, ResourceName), PoolId>;

/// Use of the cluster by one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Allocations that were made with the node's grant and still exist.
    pub(crate) allocations: u64,
    /// Attachments on the node.
    pub(crate) attachments: u64,
    /// Claims of the node that wait.
    pub(crate) waiting: u64,
    /// Quarantines that the node has reported and no other node has confirmed.
    pub(crate) quarantines: u64,
}

/// Number and bytes of kept answers, of one principal or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayUsage {
    /// Answers.
    pub keys: usize,
    /// Bytes of their rows.
    pub bytes: u64,
}

/// Claim that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// Endpoint that waits for addresses.
    Endpoint(EndpointId),
    /// Prefix request that waits for a block.
    Prefix(PrefixClaimId),
}

/// Source, realm, and owners of the levels of a prefix request: equal for a repetition.
pub(crate) type PrefixPath = (ParentId, Name, Vec<ObjectName>);

/// Network, family, address, and the pool with this gateway.
pub(crate) type GatewayKey = (NetworkId, Family, u128, PoolId);

impl Usage {
    /// The sum of two parts.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            allocations: self.allocations + other.allocations,
            attachments: self.attachments + other.attachments,
            waiting: self.waiting + other.waiting,
            quarantines: self.quarantines + other.quarantines,
        }
    }
}

pub(crate) fn node_of(key: &AttachmentKey) -> NodeKey {
    NodeKey { realm: key.realm.clone(), name: key.node.clone() }
}
