//! Marker: a small fsynced file that records how much of log and rows must exist.
//!
//! No checksum can see that a file was cut at a record's border, or that sled went back to an older page. The
//! marker can: a log or row store that ends before it is damaged, not torn. It is written at the pace of the
//! row store, not per append, so damage between its position and the log's end looks like a torn write.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::{disk, frame};
use crate::types::{LogId, Vote};

const KIND: u8 = 0xB1;
const VERSION: u8 = 1;

/// The part of the log that is known to be on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::store) struct LogMark {
    /// Bytes ever written to the log. Unlike an index it never falls, not even when entries are truncated.
    pub(in crate::store) end: u64,
    /// Last entry of the log at that position.
    pub(in crate::store) last: Option<LogId>,
    /// Vote at that position.
    pub(in crate::store) vote: Option<Vote>,
}

/// Content of the marker file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::store) struct Marker {
    /// Id of the boot in which the marker was written.
    pub(in crate::store) boot_id: String,
    /// True if everything was closed cleanly, and nothing has been written since.
    pub(in crate::store) clean: bool,
    pub(in crate::store) log: LogMark,
    /// Last entry whose effect is in the row store.
    pub(in crate::store) rows_applied: Option<LogId>,
}

impl Marker {
    pub(in crate::store) fn path(dir: &Path) -> PathBuf {
        dir.join("marker")
    }

    /// The marker of the last run; nothing in a new directory.
    pub(in crate::store) fn read(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = Self::path(dir);
        let Some(content) = disk::if_there(fs::read(&path)).map_err(StoreError::io(&path))? else {
            return Ok(None);
        };
        let frame = frame::read(content.as_slice(), KIND)
            .map_err(|error| StoreError::damaged(&path, error.to_string()))?;
        match frame.version {
            VERSION => postcard::from_bytes(&frame.body)
                .map(Some)
                .map_err(|error| StoreError::damaged(&path, error.to_string())),
            version if version > VERSION => {
                Err(StoreError::TooNew { path, version: version.into(), newest: VERSION.into() })
            }
            // No ipamd has written a lower version.
            version => Err(StoreError::damaged(&path, format!("it has the unknown version {version}"))),
        }
    }

    /// Writes the marker to disk, durably.
    pub(in crate::store) fn write(&self, dir: &Path) -> Result<(), StoreError> {
        let path = Self::path(dir);
        let body = postcard::to_stdvec(self).map_err(|error| StoreError::io(&path)(frame::codec(error)))?;
        let mut content = Vec::new();
        frame::write(&mut content, KIND, VERSION, &body)
            .and_then(|_| disk::replace(&path, &content))
            .map_err(StoreError::io(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_version_above_the_known_one_is_too_new() {
        let dir = tempfile::tempdir().unwrap();
        let marker = Marker { boot_id: "boot".to_owned(), ..Marker::default() };
        marker.write(dir.path()).unwrap();
        assert_eq!(Marker::read(dir.path()).unwrap(), Some(marker.clone()));
        let read = |version: u8| {
            let mut content = Vec::new();
            frame::write(&mut content, KIND, version, &postcard::to_stdvec(&marker).unwrap()).unwrap();
            fs::write(Marker::path(dir.path()), content).unwrap();
            Marker::read(dir.path())
        };
        assert!(matches!(read(VERSION + 1), Err(StoreError::TooNew { version: 2, newest: 1, .. })));
        let older = read(VERSION - 1);
        assert!(
            matches!(&older, Err(StoreError::Damaged { what, .. }) if what.contains("version 0")),
            "{older:?}"
        );
    }
}
