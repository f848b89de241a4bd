//! One process per data directory.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::disk;
use super::error::StoreError;

/// Lock of a data directory, until it is dropped or the process ends for any reason.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

/// Locks a data directory for this process; creates the directory if missing.
///
/// # Errors
/// If another process has locked the directory, or the directory can't be created or written.
pub fn lock_dir(dir: &Path) -> Result<DirLock, StoreError> {
    disk::create_dir(dir).map_err(StoreError::io(dir))?;
    let path = dir.join("lock");
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = opened.map_err(StoreError::io(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut pid = String::new();
            let known = file.read_to_string(&mut pid).is_ok() && !pid.trim().is_empty();
            let pid = if known { pid.trim().to_owned() } else { "?".to_owned() };
            return Err(StoreError::Locked { dir: dir.to_owned(), pid });
        }
        Err(error) => return Err(StoreError::io(&path)(error.into())),
    }
    // The content only serves the message above; the lock itself is the kernel's.
    let written =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(StoreError::io(&path))?;
    Ok(DirLock { _file: file })
}
