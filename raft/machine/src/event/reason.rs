//! Reasons of events.

use serde::{Deserialize, Serialize};

/// Why an address was given or taken back. Variants are only ever appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The runtime deleted its attachment.
    AttachmentReleased,
    /// Somebody released this allocation.
    AllocationReleased,
    /// Somebody released its endpoint.
    EndpointReleased,
    /// The runtime added an attachment.
    AttachmentAdded,
    /// Somebody asked for it, without an attachment.
    Requested,
    /// Its endpoint is sticky, and came back.
    Reattached,
    /// Several attachments hold it.
    Shared,
    /// Its endpoint is sticky, and may come back.
    Kept,
    /// Its endpoint is sticky, and may no longer take from the pool that it took from before.
    Moved,
    /// Its endpoint is sticky, and its controller doesn't want it any more.
    ScaledDown,
    /// Its lease ended.
    LeaseEnded,
    /// It existed already, and was recorded.
    Adopted,
    /// Somebody had waited for it.
    Waited,
    /// It waited for its interface's own ADD.
    Claimed,
    /// Nothing of its endpoint is attached any more, and its interface never was.
    Unclaimed,
    /// A live migration: another node has it attached, too.
    Migrated,
    /// Its node attached the allocation again and has no room for this attachment.
    Superseded,
}

impl Reason {
    /// Its word in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::AttachmentReleased => "DEL",
            Reason::AllocationReleased => "allocation-released",
            Reason::EndpointReleased => "endpoint-released",
            Reason::AttachmentAdded => "ADD",
            Reason::Requested => "requested",
            Reason::Reattached => "reattached",
            Reason::Shared => "shared",
            Reason::Kept => "kept",
            Reason::Moved => "moved",
            Reason::ScaledDown => "scaled-down",
            Reason::LeaseEnded => "lease-ended",
            Reason::Adopted => "adopted",
            Reason::Waited => "waited",
            Reason::Claimed => "claimed",
            Reason::Unclaimed => "unclaimed",
            Reason::Migrated => "migrated",
            Reason::Superseded => "superseded",
        }
    }
}
