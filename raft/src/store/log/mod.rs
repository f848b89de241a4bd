//! The Raft log: its files, the thread that writes them, and the recovery from torn writes.

mod entry_sizes;
mod files;
mod open;
mod places;
mod record;
mod state;
mod storage;
#[cfg(test)]
mod tests;
mod thread;
mod view;

pub(crate) use entry_sizes::EntrySizes;
#[cfg(feature = "testing")]
pub(super) use files::file_name;
#[cfg(feature = "testing")]
pub(super) use open::Opened;
pub(super) use open::{open, path};
#[cfg(feature = "testing")]
pub(super) use record::Record;
pub(crate) use storage::LogStore;
pub(super) use view::{next, payload_size};
