//! Backups: written by a member, restored into a new directory, recovered from the directory of a member that is down.

mod recover;
mod restore;
#[cfg(test)]
mod tests;
mod write;

pub use recover::{Recovered, Survivor};
pub use restore::{RestoreError, Restored, restore};
pub use write::Backup;
pub(crate) use write::Source as BackupSource;
