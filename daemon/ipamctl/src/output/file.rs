//! Creation of the files that commands write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Mode of a file that only its owner reads.
pub(crate) const PRIVATE: u32 = 0o600;

/// Creates a file that must not exist yet, because an existing file would keep its mode.
pub(crate) fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Replaces a file atomically: a reader sees the old or the new content, never a part.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    // A remnant of an interrupted run may exist, and `create` accepts only a new file.
    let _ = std::fs::remove_file(&aside);
    let mut file = create(&aside, mode)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}
