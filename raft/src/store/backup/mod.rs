//! Backups: written by a member, restored into a new directory, or recovered from a stopped member.

mod recover;
mod restore;
#[cfg(test)]
mod tests;
mod write;

pub use recover::{Recovered, Survivor};
pub use restore::{RestoreError, Restored, restore};
pub use write::Backup;
pub(crate) use write::Source as BackupSource;
