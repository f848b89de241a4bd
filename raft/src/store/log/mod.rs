//! The Raft log: its files, the thread that writes them, and what is forgiven when they are opened.

mod entry_sizes;
mod open;
mod storage;
#[cfg(test)]
mod tests;
mod thread;
mod turn;
mod view;
mod wal;

pub(crate) use entry_sizes::EntrySizes;
pub(super) use open::{open, path};
pub(crate) use storage::LogStore;
pub(super) use view::next;
#[cfg(feature = "testing")]
pub(super) use wal::{Record, WalLogId, WalPayload, WalVote};
