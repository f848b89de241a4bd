//! Persistent quarantine flag: the state diverged and must not be served after a restart.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk;
use super::error::StoreError;
use super::json_file::{self, StoredJson, VERSION};

/// Reason why a member doesn't serve its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Quarantine {
    /// Version of this file.
    version: u32,
    /// True if no majority agrees on any state, so that the right one is unknown.
    pub(crate) halted: bool,
    /// The reason, as a sentence.
    pub(crate) why: String,
}

impl Quarantine {
    /// Creates the flag of a member that differs, or may differ, from a majority that agrees.
    pub(crate) fn quarantined(why: String) -> Self {
        Self { version: VERSION, halted: false, why }
    }

    /// Creates the flag for a cluster in which no majority agrees.
    pub(crate) fn halted(why: String) -> Self {
        Self { version: VERSION, halted: true, why }
    }

    /// Loads the flag of a directory.
    ///
    /// # Errors
    /// If the file exists but can't be read.
    pub(crate) fn load(dir: &Path) -> Result<Option<Self>, StoreError> {
        json_file::load(dir)
    }

    /// Writes the flag to disk, durably.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(crate) fn save(&self, dir: &Path) -> Result<(), StoreError> {
        json_file::save(dir, self)
    }

    /// Removes the flag: the state is the majority's.
    ///
    /// # Errors
    /// When the file can't be removed.
    pub(crate) fn lift(dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(Self::FILE);
        disk::if_there(std::fs::remove_file(&path)).map_err(StoreError::io(&path))?;
        disk::sync_dir(dir).map_err(StoreError::io(dir))
    }
}

impl StoredJson for Quarantine {
    // The name in directories of the first version.
    const FILE: &'static str = "doubt.json";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarantine_stays_until_it_is_lifted() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Quarantine::load(dir.path()).unwrap(), None);
        let quarantine = Quarantine::halted("because".to_owned());
        quarantine.save(dir.path()).unwrap();
        assert_eq!(Quarantine::load(dir.path()).unwrap(), Some(quarantine));
        Quarantine::lift(dir.path()).unwrap();
        Quarantine::lift(dir.path()).unwrap();
        assert_eq!(Quarantine::load(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join(Quarantine::FILE), "{").unwrap();
        assert!(Quarantine::load(dir.path()).is_err(), "damaged is not absent");
    }
}
