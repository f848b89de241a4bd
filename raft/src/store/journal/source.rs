//! Part of the applied state that the journal needs.

use super::recent::Recent;
use ipam_machine::EventId;
use ipam_machine::journal::{JournalHead, Segment};
use ipam_machine::table::Table;

/// The journal of one instant, as the state knows it.
pub(crate) struct View {
    pub(crate) revision: u64,
    pub(crate) head: JournalHead,
    pub(crate) oldest: EventId,
    pub(crate) segments: Table<Segment>,
    pub(crate) recent: Recent,
}

/// Access of the journal to the applied state, which is above it.
pub(crate) trait JournalSource: Send + Sync {
    /// The journal of the published state.
    fn view(&self) -> View;

    /// The part of the journal in memory, and the oldest segment that is to be kept.
    fn to_write(&self) -> (Recent, u64);

    /// Notes that sealed segments up to `through` are on disk.
    fn written(&self, through: u64, install_count: u64);
}
