//! The identity of a data directory.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk;
use super::error::StoreError;
use super::json_file::{self, StoredJson, VERSION};
use crate::simulation::random_id;

/// Identity of a directory, which ties it to one member of one cluster. The file is created with the
/// directory. A directory without it is new, and never gets the id of an earlier member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of this file.
    pub version: u32,
    /// Random id, created with the directory: distinguishes a wiped disk from its predecessor.
    pub disk_id: String,
    /// The member's name, as in all configurations.
    pub name: String,
    /// Id of the cluster that the directory belongs to, if any.
    #[serde(default)]
    pub cluster_id: Option<String>,
    /// Id of the member in the log's membership, if any. Never reused.
    #[serde(default)]
    pub member_id: Option<u64>,
    /// True once the founding of its cluster has begun. Set before the first step, so that a start after a
    /// crash continues with the same cluster instead of founding a second one.
    #[serde(default)]
    pub founding: bool,
}

impl Identity {
    /// The identity of a directory; a new one if it has none.
    ///
    /// # Errors
    /// When the directory belongs to another name, or the file can't be read or written.
    pub fn load_or_create(dir: &Path, name: &str) -> Result<Self, StoreError> {
        if let Some(identity) = Self::load(dir)? {
            if identity.name == name {
                return Ok(identity);
            }
            let (found, wanted) = (identity.name, name.to_owned());
            return Err(StoreError::OtherName { dir: dir.to_owned(), found, wanted });
        }
        // The marker is written before the first byte of log, and the identity before the marker.
        if super::marker::Marker::path(dir).exists() {
            let path = dir.join(Self::FILE);
            return Err(StoreError::damaged(&path, "the file is gone, but the directory was in use"));
        }
        let identity = Self {
            version: VERSION,
            disk_id: random_id().to_string(),
            name: name.to_owned(),
            cluster_id: None,
            member_id: None,
            founding: false,
        };
        identity.save(dir)?;
        Ok(identity)
    }

    /// The identity of a directory, if it has one.
    ///
    /// # Errors
    /// When the file is there but can't be read.
    pub fn load(dir: &Path) -> Result<Option<Self>, StoreError> {
        json_file::load(dir)
    }

    /// Writes the identity to disk, durably.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn save(&self, dir: &Path) -> Result<(), StoreError> {
        disk::create_dir(dir).map_err(StoreError::io(dir))?;
        json_file::save(dir, self)
    }
}

impl StoredJson for Identity {
    const FILE: &'static str = "identity.json";
}
