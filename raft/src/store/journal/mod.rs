//! The journal on disk and in memory: every event that is kept, in log order.
//!
//! The open segment is in memory and, written behind with the rows, in a file; sealed ones are compressed
//! files of their own. The state has the chain that all of it must fit, so an altered byte is never served:
//! it is damage, and the segment is fetched from another member.
//!
//! **Invariant:** rows on disk are never ahead of the journal on disk, and a snapshot is never durable before
//! the journal is: the log is not purged of what the journal lacks.

mod block;
mod check;
mod files;
#[cfg(feature = "testing")]
pub mod fuzzing;
mod pages;
mod query;
mod recent;
mod sealed;
mod source;
#[cfg(test)]
pub(super) mod tests;

pub(super) use block::Block;
pub use check::{DamagedFile, JournalReport, check_journal};
pub(super) use files::JournalFiles;
pub(crate) use pages::Journal;
pub use query::{EventFilter, EventPage, EventQuery, JournalError};
pub(super) use recent::{Recent, read_blocks};
pub(super) use sealed::Sealed;
pub(super) use source::{JournalSource, View};

/// The blocks of an open segment.
pub(super) type Blocks = Vec<std::sync::Arc<Block>>;
