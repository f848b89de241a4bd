//! The few things about files that every part of the store must get right.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Makes names in a directory durable: a file's fsync doesn't cover the entry that leads to it.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Makes a directory, if it isn't there, and its name durable.
pub(super) fn create_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir)?;
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => sync_dir(Path::new(".")),
    }
}

/// Puts new content in the place of a small file: the old or the new is there at any instant, never a mixture.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = File::create(&aside)?;
    file.write_all(content)?;
    file.sync_all()?;
    rename(&aside, path)
}

/// Renames, and makes the new name durable.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    to.parent().map_or(Ok(()), sync_dir)
}

/// Reads a file that need not be there.
pub(super) fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Which boot of the machine this is. While it lasts, the page cache lasts: what was written is there, synced
/// or not.
pub(super) fn boot_id() -> String {
    // Where the kernel doesn't say, every start counts as another boot: the careful answer.
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| uuid::Uuid::new_v4().to_string(), |id| id.trim().to_owned())
}
