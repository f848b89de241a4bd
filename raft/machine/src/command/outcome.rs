//! Outcomes of commands: an answer, or a refusal with its reason.

use crate::command::{AllocatedMany, AllocationMetadata, Dns, GivenPrefix, ReportedBoot, Text};
use crate::value::Refusal;
use crate::value::cause::Cause;
use crate::value::condition::WaitReason;
use crate::value::id::{AllocationId, PrefixClaimId, PrefixId};
use crate::value::row::{
    HostPolicy, Lease, Meta, Namespace, Network, Node, Pool, Reservation, Subnet, Token,
};
use ipam_api::limits::RESPONSE_ADDRESSES_MAX;
use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipam_api::node_report::Inventory;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Route;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Outcome of a command.
pub type Outcome = Result<Applied, Refusal>;

/// A command that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub revision: u64,
    /// Answer to the caller.
    pub answer: Answer,
    /// True for the kept answer to an earlier request under the same key.
    pub replayed: bool,
}

/// Answer of a command to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// A resource has the requested state.
    Stored {
        /// True if it is new.
        created: bool,
        revision: u64,
        /// The resource after the write.
        resource: Box<Stored>,
    },
    /// A resource was deleted.
    Gone,
    /// A resource is deleted once it is empty.
    Draining {
        /// Addresses that are still held.
        held: u64,
    },
    /// Addresses were allocated, now or by an earlier equal request.
    Allocated {
        /// True for the repetition of an earlier request.
        repeated: bool,
        /// Addresses of each interface.
        interfaces: Vec<GivenInterface>,
    },
    /// Addresses were released.
    Released {
        /// Released addresses, the first [`RESPONSE_ADDRESSES_MAX`]; empty if there was nothing to release.
        addresses: Vec<IpAddr>,
        /// Number of further ones.
        more: u64,
        /// True if nothing was released because the holder's ADD began after the release.
        late: bool,
    },
    /// The steps of a transaction, each with its answer.
    Steps(Vec<Answer>),
    /// Log time has passed.
    Expired {
        /// Number of deleted rows.
        rows: u64,
    },
    /// The oldest part of the journal was trimmed.
    Trimmed {
        /// Number of trimmed segments.
        segments: u64,
    },
    /// The level is at least the requested one.
    Level {
        /// The present level.
        level: u32,
    },
    /// The open segment of the journal was checked.
    Sealed {
        /// Number of the segment, if it was old enough and is now sealed.
        segment: Option<u64>,
    },
    /// Pools were confirmed.
    Confirmed {
        /// Number of newly confirmed pools.
        pools: u64,
        /// Number of pools that still wait.
        waiting: u64,
    },
    /// The members are as requested.
    Members {
        /// Ids of the members that joined or changed; empty if nothing changed.
        ids: Vec<u64>,
    },
    /// A prefix is delegated, now or by an earlier request that was the same.
    Delegated {
        /// True for the repetition of an earlier request.
        repeated: bool,
        /// Prefixes of the request, level by level; the last one is the requested one.
        prefixes: Vec<GivenPrefix>,
    },
    /// A prefix was released.
    PrefixReleased {
        /// Released CIDRs, as far as they are free already.
        cidrs: Vec<IpNet>,
        /// True if the release continues with later commands.
        ending: bool,
    },
    /// Leases were renewed.
    Renewed {
        /// Renewed leases, the first [`RESPONSE_ADDRESSES_MAX`], oldest first.
        leases: Vec<Renewed>,
        /// Number of further ones.
        more: u64,
    },
    /// The request waits for addresses.
    Pending(Pending),
    /// A heartbeat was recorded.
    Heard {
        /// The node's present boot.
        boot: ReportedBoot,
        /// Attachments of the node.
        inventory: Inventory,
    },
    /// Orphans of a node were released.
    OrphansReleased {
        /// Released addresses, the first [`RESPONSE_ADDRESSES_MAX`].
        addresses: Vec<IpAddr>,
        /// Number of orphans that stay, because the agent hasn't observed their present state.
        stale: u64,
    },
    /// A prefix request waits for a block.
    PrefixPending {
        /// True if the request waited already.
        repeated: bool,
        pending: Box<PendingPrefix>,
    },
    /// Results of probes were recorded.
    Probed {
        /// Number of results that changed the state.
        recorded: u64,
        /// Number of conflicts that exceeded the bound of the node.
        refused: u64,
    },
    /// Allocations of a node were reclaimed.
    Reclaimed {
        /// Released addresses, the first [`RESPONSE_ADDRESSES_MAX`].
        addresses: Vec<IpAddr>,
        /// Number of allocations that were not reclaimed.
        stale: u64,
    },
    /// Pods were reported.
    PodsReported,
    /// Exactly the listed prefixes are delegated, or wait.
    PrefixesSet {
        /// Prefixes in the order of the list.
        prefixes: Vec<ListedPrefix>,
        /// Waiting requests that were withdrawn and prefixes that were released, each by owner.
        released: Vec<UnlistedPrefix>,
        /// True if later commands delete the rest of the released prefixes.
        ending: bool,
    },
    /// Addresses were allocated to many endpoints, now or by earlier requests.
    AllocatedMany(AllocatedMany),
    /// Allocations were released.
    AllocationsReleased {
        /// Released addresses.
        addresses: Vec<IpAddr>,
        /// Number of listed allocations that were released already.
        gone: u64,
    },
}

impl Answer {
    /// Returns the answer for a new resource.
    pub(crate) fn created(revision: u64, resource: Stored) -> Self {
        Self::Stored { created: true, revision, resource: Box::new(resource) }
    }

    /// Returns the answer for released addresses.
    pub(crate) fn released(addresses: Vec<IpAddr>) -> Self {
        let (addresses, more) = listed(addresses);
        Self::Released { addresses, more, late: false }
    }

    /// Returns the answer for released orphans.
    pub(crate) fn orphans_released(addresses: Vec<IpAddr>, stale: u64) -> Self {
        Self::OrphansReleased { addresses: listed(addresses).0, stale }
    }

    /// Returns the answer for reclaimed allocations of a node.
    pub(crate) fn reclaimed(addresses: Vec<IpAddr>, stale: u64) -> Self {
        Self::Reclaimed { addresses: listed(addresses).0, stale }
    }

    /// Returns the answer for renewed leases.
    pub(crate) fn renewed(leases: Vec<Renewed>) -> Self {
        let (leases, more) = listed(leases);
        Self::Renewed { leases, more }
    }

    /// Returns the answer for a resource that already had the requested state.
    pub(crate) fn unchanged(meta: &Meta, resource: Stored) -> Self {
        Self::Stored { created: false, revision: meta.revision, resource: Box::new(resource) }
    }
}

/// Truncates a list to the bound of a response, and counts the rest. An endpoint may have any number of
/// incarnations, and a controller any number of endpoints.
fn listed<T>(mut all: Vec<T>) -> (Vec<T>, u64) {
    let more = all.len().saturating_sub(RESPONSE_ADDRESSES_MAX);
    all.truncate(RESPONSE_ADDRESSES_MAX);
    (all, more as u64)
}

/// A request that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// True if the request waited already.
    pub repeated: bool,
    /// Reason as a word.
    pub why: WaitReason,
    /// Cause with names and numbers.
    pub cause: Box<Cause>,
    /// Wall time since which the request waits; a label.
    pub since_wall_ms: u64,
}

/// A prefix request that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPrefix {
    /// Id of the claim, which withdraws it.
    pub claim: PrefixClaimId,
    pub network: Name,
    pub subnet: Name,
    /// Pool at the root of the tree.
    pub pool: Name,
    /// Prefix that the request names as its source; none for the pool itself.
    pub parent: Option<PrefixId>,
    /// Owners from the pool down to the requested prefix.
    pub path: Vec<ObjectName>,
    /// Realm of the owners.
    pub realm: Name,
    /// Length of the requested prefix.
    pub length: Option<u8>,
    /// True if the first and the last address are never to be allocated.
    pub keep_edges: bool,
    /// TTL of the requested prefix without a refresh, in log time.
    pub ttl_ms: Option<u64>,
    /// Reason as a word.
    pub why: WaitReason,
    /// Cause with names and numbers.
    pub cause: Box<Cause>,
    /// Wall time since which the request waits; a label.
    pub since_wall_ms: u64,
    /// Principal of the request.
    pub created_by: Text,
}

/// Prefix of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListedPrefix {
    Delegated(GivenPrefix),
    /// The request for the prefix waits.
    Waiting(PendingPrefix),
}

/// Prefix that a list left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlistedPrefix {
    /// Id of the prefix, or of the waiting request.
    pub id: PrefixId,
    pub owner: ObjectName,
    /// CIDR of the prefix; none for a request that waited.
    pub cidr: Option<IpNet>,
}

/// A lease after its renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    pub allocation: AllocationId,
    pub address: IpAddr,
    /// New end of the lease.
    pub lease: Lease,
}

/// Stored resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stored {
    Network(Network),
    Subnet(Subnet),
    Pool(Pool),
    Reservation(Reservation),
    Token(Token),
    Node(Node),
    Namespace(Namespace),
    HostPolicy(HostPolicy),
}

/// Addresses of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenInterface {
    pub name: InterfaceName,
    /// Attachment of the addresses; of several the caller's own, else the newest.
    pub attachment: Option<AttachmentKey>,
    /// Other attachments of the same addresses.
    pub also_attached: Vec<AttachmentKey>,
    /// True if the addresses are kept until their endpoint is re-created.
    pub kept: bool,
    /// True if the endpoint exists, but the interface's own ADD is outstanding.
    pub preallocated: bool,
    /// Addresses of the interface, IPv4 first.
    pub addresses: Vec<Given>,
}

/// One address with all that is needed to configure it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    pub allocation: AllocationId,
    /// The address with its subnet's prefix length.
    pub address: IpNet,
    /// The router.
    pub gateway: Option<IpAddr>,
    /// Further routes, including the default route if the request specified another one.
    pub routes: Vec<Route>,
    /// True if no default route through the gateway is configured.
    pub clean_gateway: bool,
    /// Name resolution.
    pub dns: Dns,
    /// 802.1Q id.
    pub vlan: Option<u16>,
    /// The largest packet, in bytes.
    pub mtu: Option<u32>,
    /// Pool of the address.
    pub pool: Name,
    /// True if a probe found no other holder on the wire.
    pub checked: bool,
    /// True if the address must be probed for other hosts before it is used.
    pub probes_conflicts: bool,
    /// True if the gateway must answer a probe before the address is used.
    pub probes_gateway: bool,
    /// End of the lease, if it is leased.
    pub lease: Option<Lease>,
    /// The interface's hardware address.
    pub mac: Option<Text>,
    /// Metadata of the allocation.
    pub metadata: AllocationMetadata,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_lists_so_many_addresses_and_counts_the_rest() {
        let address = IpAddr::from([10, 0, 0, 1]);
        for (all, listed, beyond) in [(3, 3, 0), (RESPONSE_ADDRESSES_MAX + 7, RESPONSE_ADDRESSES_MAX, 7)] {
            let Answer::Released { addresses, more, late: _ } = Answer::released(vec![address; all]) else {
                panic!("it is another answer")
            };
            assert_eq!((addresses.len(), more), (listed, beyond));
        }
    }
}
