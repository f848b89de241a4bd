//! Reasons of events.

use serde::{Deserialize, Serialize};

use crate::value::words::words;

words! {
    /// Reason of a change of an address. Variants are only ever appended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Reason {
        /// The runtime deleted its attachment.
        AttachmentReleased = "DEL",
        /// A request released this allocation.
        AllocationReleased = "allocation-released",
        /// A request released its endpoint.
        EndpointReleased = "endpoint-released",
        /// The runtime added an attachment.
        AttachmentAdded = "ADD",
        /// A request without an attachment.
        Requested = "requested",
        /// Its endpoint is sticky, and came back.
        Reattached = "reattached",
        /// Several attachments hold it.
        Shared = "shared",
        /// Its endpoint is sticky, and may return.
        Kept = "kept",
        /// Its endpoint is sticky, and may no longer use its former pool.
        Moved = "moved",
        /// Its endpoint is sticky, and its controller doesn't want it any more.
        ScaledDown = "scaled-down",
        /// Its lease ended.
        LeaseEnded = "lease-ended",
        /// It existed already, and was recorded.
        Adopted = "adopted",
        /// A claim had waited for it.
        Waited = "waited",
        /// It waited for its interface's own ADD.
        Claimed = "claimed",
        /// Nothing of its endpoint is attached any more, and its interface never was.
        Preallocated = "preallocated",
        /// A live migration: another node has it attached, too.
        Migrated = "migrated",
        /// Its node attached the allocation again and is above its bound of attachments.
        Superseded = "superseded",
        /// The agent of its node found no network namespace of its container any more.
        OrphanNetnsGone = "orphaned-netns-gone",
        /// Its container began in an earlier boot of its node.
        OrphanEarlierBoot = "orphaned-earlier-boot",
        /// The runtime of its node does not know its container any more.
        OrphanNotInGcList = "orphaned-not-in-gc-list",
        /// A foreign host uses the address.
        Conflict = "conflict",
        /// The orchestrator or an operator states that its node is gone.
        NodeGone = "node-gone",
        /// Its node is silent, and probes of the address have had no answer for several rounds.
        NodeSilent = "node-silent",
        /// Its orchestrator reports that its workload is gone.
        WorkloadGone = "workload-gone",
    }
}
