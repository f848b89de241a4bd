//! Small files with one fact about a data directory, as readable JSON.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::disk;
use super::error::StoreError;

/// The newest version of such files that this build reads, and the one it writes.
pub(in crate::store) const VERSION: u32 = 1;

/// Content of a JSON file in the data directory.
pub(in crate::store) trait StoredJson: Serialize + DeserializeOwned {
    /// The file's name in the data directory.
    const FILE: &'static str;
}

/// The field that all such files have.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// The file's content, if the directory has the file.
///
/// # Errors
/// When the file is there but can't be read: damaged is not absent.
pub(in crate::store) fn load<N: StoredJson>(dir: &Path) -> Result<Option<N>, StoreError> {
    let path = dir.join(N::FILE);
    let Some(content) = disk::if_there(fs::read(&path)).map_err(StoreError::io(&path))? else {
        return Ok(None);
    };
    let damaged = |error: serde_json::Error| StoreError::damaged(&path, error.to_string());
    match serde_json::from_slice(&content).map_err(damaged)? {
        Version { version } if version > VERSION => {
            Err(StoreError::TooNew { path, version, newest: VERSION })
        }
        _ => serde_json::from_slice(&content).map(Some).map_err(damaged),
    }
}

/// Writes the file to disk, durably.
///
/// # Errors
/// If the file can't be written.
pub(in crate::store) fn save<N: StoredJson>(dir: &Path, note: &N) -> Result<(), StoreError> {
    let path = dir.join(N::FILE);
    let mut content = serde_json::to_vec_pretty(note)
        .map_err(|error| StoreError::io(&path)(std::io::Error::other(error)))?;
    content.push(b'\n');
    disk::replace(&path, &content).map_err(StoreError::io(&path))
}
