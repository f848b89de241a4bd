//! Directory of the disks of a run: in memory if there is room, since no simulated sync waits for a device.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::fs::statvfs;
use tempfile::TempDir;

/// File system in memory.
const MEMORY: &str = "/dev/shm";
/// Free bytes that [`MEMORY`] must have.
const ROOM_BYTES: u64 = 1 << 30;
/// Begin of the names of these directories; the id of the process follows.
const PREFIX: &str = "ipamd-sim-";

/// Creates the directory of this process. Dropping the value removes the directory.
pub(super) fn create() -> Result<TempDir> {
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let parent = parent();
    tempfile::Builder::new().prefix(&prefix).tempdir_in(&parent).with_context(|| parent.display().to_string())
}

/// Removes directories of processes that were killed.
pub fn sweep() {
    let Ok(entries) = fs::read_dir(parent()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if owner.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            // Another process may remove the directory at the same time.
            let _gone = fs::remove_dir_all(entry.path());
        }
    }
}

fn parent() -> PathBuf {
    let free = statvfs(MEMORY).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    if free < ROOM_BYTES { std::env::temp_dir() } else { PathBuf::from(MEMORY) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_dead_processes_are_swept_and_others_stay() {
        let own = create().unwrap();
        // No process has this id: the largest is smaller.
        let dead = parent().join(format!("{PREFIX}{}-x", u32::MAX));
        fs::create_dir_all(dead.join("n1")).unwrap();
        sweep();
        assert!(own.path().exists() && !dead.exists());
    }
}
