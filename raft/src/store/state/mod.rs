//! Applied state: one thread owns it and applies log entries, all others read the published versions.

mod apply_thread;
mod board;
mod checkpoints;
mod entry;
mod jobs;
mod live;
mod rebuild;
mod row_writer;
mod shared;
mod state_machine;
#[cfg(test)]
mod tests;

pub(crate) use checkpoints::Checkpoint;
pub(crate) use rebuild::Source;
pub(super) use row_writer::Behind;
pub(crate) use shared::SharedState;
pub(crate) use state_machine::MachineStore;
pub(crate) use state_machine::blocking;
