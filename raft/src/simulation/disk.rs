//! Disk of a simulated member: pages that a power cut loses, and faults.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// Fault of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// No file can grow.
    Full,
    /// Each sync fails with EIO.
    Failing,
    /// Each sync takes longer.
    Slow(Duration),
    /// No write ends.
    Stalled,
}

#[cfg(any(test, feature = "testing"))]
mod simulated {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::os::unix::fs::FileExt as _;
    use std::path::PathBuf;

    use rustix::io::Errno;
    use tokio::time::sleep;

    use super::super::present;
    use super::super::random::random;
    use super::{DiskFault, Duration, File, Path, Range, io};

    /// Bytes that a disk writes as a whole.
    const PAGE_BYTES: u64 = 4096;
    /// Free bytes of a disk that isn't full.
    const FREE_BYTES: u64 = 1 << 40;
    /// Interval between two checks of a stalled disk.
    const LOOK: Duration = Duration::from_millis(5);

    thread_local! {
        /// Contents on disk of pages with newer contents in memory.
        static UNSYNCED: RefCell<BTreeMap<(PathBuf, u64), Vec<u8>>> = const { RefCell::new(BTreeMap::new()) };
        /// Faults of the disks with these data directories.
        static FAULTS: RefCell<BTreeMap<PathBuf, Fault>> = const { RefCell::new(BTreeMap::new()) };
    }

    /// Fault of a disk, and the number of calls that it changed.
    #[derive(Debug, Clone, Copy)]
    struct Fault {
        kind: DiskFault,
        calls: u64,
    }

    /// Begins or ends a fault of the disk with a data directory. A fault of the same kind continues.
    pub fn set_disk(dir: &Path, fault: Option<DiskFault>) {
        FAULTS.with_borrow_mut(|faults| match fault {
            Some(kind) if faults.get(dir).is_some_and(|fault| fault.kind == kind) => {}
            Some(kind) => drop(faults.insert(dir.to_owned(), Fault { kind, calls: 0 })),
            None => drop(faults.remove(dir)),
        });
    }

    /// Number of calls that the present fault of a disk has refused, delayed or answered differently.
    #[must_use]
    pub fn faulty_calls(dir: &Path) -> u64 {
        FAULTS.with_borrow(|faults| faults.get(dir).map_or(0, |fault| fault.calls))
    }

    /// Returns the fault of the disk with a path, if `is_met` holds for it. Counts the call.
    fn meets(path: &Path, is_met: impl Fn(DiskFault) -> bool) -> Option<DiskFault> {
        FAULTS.with_borrow_mut(|faults| {
            let (_, fault) =
                faults.iter_mut().find(|(dir, fault)| path.starts_with(dir) && is_met(fault.kind))?;
            fault.calls += 1;
            Some(fault.kind)
        })
    }

    /// Saves the durable contents of the pages that are about to be written.
    ///
    /// # Errors
    /// On a full disk, if the file would grow.
    pub(crate) fn before_write(file: &File, path: &Path, bytes: Range<u64>) -> io::Result<()> {
        if present().is_none() {
            return Ok(());
        }
        if bytes.end > file.metadata()?.len() && meets(path, is_full).is_some() {
            return Err(Errno::NOSPC.into());
        }
        for page in bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES) {
            let place = (path.to_owned(), page);
            if UNSYNCED.with_borrow(|unsynced| unsynced.contains_key(&place)) {
                continue;
            }
            let mut old = vec![0; 4096];
            let length = file.read_at(&mut old, page * PAGE_BYTES)?;
            old.truncate(length);
            UNSYNCED.with_borrow_mut(|unsynced| unsynced.insert(place, old));
        }
        Ok(())
    }

    /// Syncs a file.
    ///
    /// # Errors
    /// If the disk fails.
    pub(crate) fn sync(file: &File, path: &Path) -> io::Result<()> {
        if present().is_none() {
            return file.sync_data();
        }
        if meets(path, |fault| fault == DiskFault::Failing).is_some() {
            return Err(Errno::IO.into());
        }
        UNSYNCED.with_borrow_mut(|unsynced| unsynced.retain(|(other, _), _| other != path));
        Ok(())
    }

    /// Waits as long as the disk of a directory takes for a sync.
    pub(crate) async fn ready(dir: &Path) {
        if present().is_none() {
            return;
        }
        loop {
            match meets(dir, |fault| matches!(fault, DiskFault::Slow(_) | DiskFault::Stalled)) {
                Some(DiskFault::Slow(time)) => return sleep(time).await,
                Some(_) => sleep(LOOK).await,
                None => return,
            }
        }
    }

    /// Free bytes of the disk with a data directory.
    pub(crate) fn free_bytes(dir: &Path) -> Option<u64> {
        present().map(|_| if meets(dir, is_full).is_some() { 0 } else { FREE_BYTES })
    }

    fn is_full(fault: DiskFault) -> bool {
        fault == DiskFault::Full
    }

    /// Cuts the power of the machine with a data directory: each page that was not synced is lost at random.
    /// Returns the number of lost pages.
    ///
    /// # Errors
    /// If a file can't be written.
    pub fn cut_power(dir: &Path) -> io::Result<u64> {
        let unsynced = UNSYNCED.with_borrow_mut(std::mem::take);
        let mut lost = 0;
        for ((path, page), mut old) in unsynced {
            if !path.starts_with(dir) {
                UNSYNCED.with_borrow_mut(|unsynced| unsynced.insert((path, page), old));
                continue;
            }
            let is_lost = random().is_some_and(|random| random % 2 == 0);
            let Ok(file) = File::options().write(true).open(&path) else { continue };
            let length = file.metadata()?.len().saturating_sub(page * PAGE_BYTES).min(PAGE_BYTES);
            if is_lost && length > 0 {
                old.resize(usize::try_from(length).unwrap_or_default(), 0);
                file.write_all_at(&old, page * PAGE_BYTES)?;
                lost += 1;
            }
        }
        Ok(lost)
    }
}

#[cfg(not(any(test, feature = "testing")))]
mod simulated {
    use super::{DiskFault, File, Path, Range, io};

    pub const fn set_disk(_: &Path, _: Option<DiskFault>) {}

    #[expect(clippy::unnecessary_wraps, reason = "a simulation reads the file")]
    pub(crate) const fn before_write(_: &File, _: &Path, _: Range<u64>) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn sync(file: &File, _: &Path) -> io::Result<()> {
        file.sync_data()
    }

    pub(crate) async fn ready(_: &Path) {}

    pub(crate) const fn free_bytes(_: &Path) -> Option<u64> {
        None
    }
}

pub use self::simulated::set_disk;
pub(crate) use self::simulated::{before_write, free_bytes, ready, sync};
#[cfg(any(test, feature = "testing"))]
pub use self::simulated::{cut_power, faulty_calls};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt as _;

    use tokio::time::{Instant, sleep};

    use super::super::enter;
    use super::*;
    use crate::store::NOWHERE;

    /// Writes a page of a file, as the log does.
    fn write(file: &File, path: &Path, page: u64, byte: u8) -> io::Result<()> {
        before_write(file, path, page * 4096..(page + 1) * 4096)?;
        file.write_all_at(&[byte; 4096], page * 4096)
    }

    #[test]
    fn a_power_cut_loses_pages_that_were_not_synced_and_no_other() {
        enter(NOWHERE);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        (0..64).for_each(|page| write(&file, &path, page, 1).unwrap());
        sync(&file, &path).unwrap();
        (0..32).for_each(|page| write(&file, &path, page, 2).unwrap());
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(cut_power(elsewhere.path()).unwrap(), 0);
        let lost = cut_power(dir.path()).unwrap();
        assert!((1..32).contains(&lost), "{lost}");
        let content = fs::read(&path).unwrap();
        let with = |byte: u8| content.chunks(4096).filter(|page| **page == [byte; 4096]).count() as u64;
        assert_eq!((with(1), with(2)), (32 + lost, 32 - lost));
        assert_eq!(cut_power(dir.path()).unwrap(), 0, "what is left is on disk");
    }

    #[tokio::test(start_paused = true)]
    async fn each_fault_of_a_disk_shows_until_it_ends() {
        enter(NOWHERE);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        write(&file, &path, 0, 1).unwrap();
        set_disk(dir.path(), Some(DiskFault::Full));
        assert_eq!(faulty_calls(dir.path()), 0);
        assert_eq!(write(&file, &path, 1, 1).unwrap_err().kind(), io::ErrorKind::StorageFull);
        write(&file, &path, 0, 2).unwrap();
        assert_eq!(free_bytes(dir.path()), Some(0));
        set_disk(dir.path(), Some(DiskFault::Full));
        assert_eq!(faulty_calls(dir.path()), 2, "a write and a look at the free bytes");
        set_disk(dir.path(), Some(DiskFault::Failing));
        sync(&file, &path).unwrap_err();
        set_disk(dir.path(), Some(DiskFault::Slow(Duration::from_millis(70))));
        let begun = Instant::now();
        ready(dir.path()).await;
        assert_eq!(begun.elapsed(), Duration::from_millis(70));
        set_disk(dir.path(), Some(DiskFault::Stalled));
        let stalled = dir.path().to_owned();
        tokio::spawn(async move {
            sleep(Duration::from_secs(3)).await;
            set_disk(&stalled, None);
        });
        ready(dir.path()).await;
        assert!(begun.elapsed() > Duration::from_secs(3));
        assert!(free_bytes(dir.path()).unwrap() > 1 << 30);
        sync(&file, &path).unwrap();
    }
}
