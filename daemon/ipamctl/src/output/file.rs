//! New files for what commands write.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Mode of a file that only its owner reads.
pub(crate) const PRIVATE: u32 = 0o600;

/// Creates a file that must not exist yet, so that it keeps the mode of no other file.
pub(crate) fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}
