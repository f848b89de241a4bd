//! Removal of large files in small steps.
//!
//! A file system frees a file in one operation, and every sync meanwhile waits for it, the log's too: 50 ms
//! for 160 MiB on ext4 (`discard`), where a third of a millisecond is usual. So the name is removed at once,
//! and the contents are truncated in steps. After a crash the file system frees the rest, since no name
//! refers to it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::background;
use crate::threads;

/// Bytes that are freed at once.
const STEP_BYTES: u64 = 4 << 20;
/// Pause for other writers between two steps.
const REST: Duration = Duration::from_millis(20);

/// Removes a directory with all that is in it: the names first, then the space. It returns when all is free.
pub(in crate::store) fn remove_dir(dir: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    open_all(dir, &mut files)?;
    fs::remove_dir_all(dir)?;
    files.iter().for_each(free);
    Ok(())
}

fn open_all(dir: &Path, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            open_all(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(writable(&entry.path())?);
        }
    }
    Ok(())
}

/// Removes a file; its space is freed in the background.
pub(in crate::store) fn remove_file(path: &Path) -> io::Result<()> {
    let file = writable(path)?;
    fs::remove_file(path)?;
    free_behind(file);
    Ok(())
}

/// File that may be replaced while it is read. The replaced file is freed after its last reader has closed
/// it.
#[derive(Debug)]
pub(in crate::store) struct Replaceable {
    path: PathBuf,
    replaced: OnceLock<File>,
}

impl Replaceable {
    pub(in crate::store) fn new(path: PathBuf) -> Self {
        Self { path, replaced: OnceLock::new() }
    }

    /// Replaces the file by a call of `with`. If that fails, the file stays current and isn't freed.
    pub(in crate::store) fn replace(&self, with: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        // A file that can't be opened is missing, or is removed at once.
        let old = writable(&self.path).ok();
        with()?;
        if let Some(old) = old {
            self.replaced.get_or_init(|| old);
        }
        Ok(())
    }
}

impl Drop for Replaceable {
    fn drop(&mut self) {
        if let Some(file) = self.replaced.take() {
            free_behind(file);
        }
    }
}

fn writable(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Frees a file on a separate thread. Without a thread, closing the file frees all of it at once.
fn free_behind(file: File) {
    let freeing = async move {
        background::step_back();
        free(&file);
    };
    let _none = threads::start("ipamd-freeing", freeing);
}

fn free(file: &File) {
    let Ok(found) = file.metadata() else { return };
    for length in steps(found.len()) {
        // The rest is freed when the file is closed.
        if file.set_len(length).is_err() {
            return;
        }
        if length > 0 {
            threads::pause(REST);
        }
    }
}

/// Returns the lengths to which a file is truncated, step by step.
fn steps(length: u64) -> impl Iterator<Item = u64> {
    let shorter = |left: &u64| (*left > 0).then(|| left.saturating_sub(STEP_BYTES));
    std::iter::successors(shorter(&length), move |left| shorter(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_is_large_and_nothing_is_left() {
        let lengths: Vec<u64> = steps(10 << 20).collect();
        assert_eq!(lengths, [6 << 20, 2 << 20, 0]);
        assert_eq!(steps(0).count(), 0);
    }

    #[test]
    fn a_directory_goes_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let rows = dir.path().join("rows");
        fs::create_dir_all(rows.join("blobs")).unwrap();
        fs::write(rows.join("db"), vec![1; 5 << 20]).unwrap();
        fs::write(rows.join("blobs/1"), "").unwrap();
        let reader = File::open(rows.join("db")).unwrap();
        remove_dir(&rows).unwrap();
        assert!(!rows.exists());
        assert_eq!(reader.metadata().unwrap().len(), 0);
        remove_dir(&rows).unwrap_err();
    }

    #[test]
    fn a_replaced_file_stays_whole_until_its_last_reader_closes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("current");
        fs::write(&path, vec![1; 5 << 20]).unwrap();
        let mut reader = File::open(&path).unwrap();
        let old = std::sync::Arc::new(Replaceable::new(path.clone()));
        let reading = std::sync::Arc::clone(&old);
        fs::write(dir.path().join("next"), "new").unwrap();
        old.replace(|| fs::rename(dir.path().join("next"), &path)).unwrap();
        drop(old);
        assert_eq!(io::copy(&mut reader, &mut io::sink()).unwrap(), 5 << 20);
        drop(reading);
        while reader.metadata().unwrap().len() > 0 {
            std::thread::yield_now();
        }
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_failed_replacement_holds_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("current");
        fs::write(&path, "here").unwrap();
        let current = Replaceable::new(path.clone());
        current.replace(|| fs::rename(dir.path().join("not there"), &path)).unwrap_err();
        assert!(current.replaced.get().is_none());
        drop(current);
        assert_eq!(fs::read(&path).unwrap(), b"here");
    }
}
