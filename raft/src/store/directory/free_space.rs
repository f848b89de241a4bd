//! Free space of the disk, monitored before a write fails.
//!
//! After a failed write the log can't be used until the process restarts. So new writes are refused while
//! there is still space for unavoidable ones: a vote, the rest of writes in progress, a snapshot. Part of the
//! disk is reserved by a *ballast* file, which other writers can't use: if a write of our own lacks space, as
//! much of the ballast is released as it needs. It is allocated again when there is space.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use serde::{Deserialize, Serialize};

use super::disk;
use crate::sync::held;
use crate::{simulation, threads};

/// Interval between two checks of the disk.
const LOOK: Duration = Duration::from_millis(250);
/// Checks until a failed allocation of the ballast is retried.
const LOOKS_OFF: u32 = 240;
/// Divisor of `low_bytes` for the hysteresis: a low disk needs that many more bytes to have enough again.
const SWING: u64 = 8;
/// Space that a write needs beyond its own bytes, for metadata of the file system. It is small, or a
/// neighbour that fills the disk would get more of the ballast than the store.
const SPARE_BYTES: u64 = 256 << 10;
/// Bytes that a start writes.
pub(in crate::store) const START_BYTES: u64 = 1 << 20;
/// Divisor of `low_bytes`: below that sum of free bytes and ballast, entries of other members are refused.
const KEPT: u64 = 4;

/// Limits below which a disk counts as full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskLimits {
    /// Free bytes below which only changes that shrink the state are accepted; below half of it none are. The
    /// size of the next snapshot is added to the first limit.
    pub low_bytes: u64,
    /// The size of the ballast file; 0 for none.
    pub ballast_bytes: u64,
}

impl Default for DiskLimits {
    fn default() -> Self {
        Self { low_bytes: 64 << 20, ballast_bytes: 32 << 20 }
    }
}

impl DiskLimits {
    /// Limits before monitoring starts.
    const NONE: Self = Self { low_bytes: 0, ballast_bytes: 0 };
}

/// Free space on a disk, as a class. Members exchange its index: variants are appended only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FreeSpace {
    /// No change is accepted.
    Nothing,
    /// Only changes that shrink the state are accepted.
    Little,
    /// All changes are accepted.
    Enough,
}

impl FreeSpace {
    /// Name for people and programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Little => "little",
            Self::Enough => "enough",
        }
    }

    /// Class of `free` bytes where `needed` must be free. After too little, a little more is required to
    /// return to enough, as a hysteresis.
    fn judge(free: u64, needed: u64, limits: DiskLimits, before: Self) -> Self {
        let enough =
            if before == Self::Enough { needed } else { needed.saturating_add(limits.low_bytes / SWING) };
        if free >= enough {
            Self::Enough
        } else if free >= limits.low_bytes / 2 {
            Self::Little
        } else {
            Self::Nothing
        }
    }
}

/// Disk space at the last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Free bytes that are required for accepting all changes.
    pub needed_bytes: u64,
    /// Resulting class.
    pub room: FreeSpace,
}

/// Watches the disk of a data directory.
#[derive(Debug)]
pub(crate) struct Headroom {
    dir: PathBuf,
    /// The file of the current snapshot: the next snapshot needs as much space.
    snapshot: PathBuf,
    limits: OnceLock<DiskLimits>,
    space: Mutex<DiskSpace>,
    /// Size of the present ballast.
    ballast_bytes: AtomicU64,
    /// Checks until the next attempt. Locked while the ballast is allocated or released.
    ballast_off: Mutex<u32>,
}

impl Headroom {
    /// Creates the monitor of a data directory, with the ballast that an earlier run left.
    pub(in crate::store) fn new(dir: &Path, snapshot: PathBuf) -> Self {
        let bytes = fs::metadata(ballast_path(dir)).map_or(0, |file| file.len());
        Self {
            dir: dir.to_owned(),
            snapshot,
            limits: OnceLock::new(),
            space: Mutex::new(DiskSpace { free_bytes: 0, needed_bytes: 0, room: FreeSpace::Enough }),
            ballast_bytes: AtomicU64::new(bytes),
            ballast_off: Mutex::default(),
        }
    }

    /// Starts monitoring, which continues as long as another handle exists.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn watch(self: &Arc<Self>, limits: DiskLimits) -> io::Result<()> {
        if self.limits.set(limits).is_err() {
            return Ok(());
        }
        self.look();
        let weak = Arc::downgrade(self);
        let looking = async move {
            loop {
                tokio::time::sleep(LOOK).await;
                let Some(headroom) = weak.upgrade() else { return };
                headroom.look();
            }
        };
        threads::start("ipamd-disk", looking).map(drop)
    }

    /// Returns the disk space at the last check.
    pub(crate) fn space(&self) -> DiskSpace {
        *held(&self.space)
    }

    /// Class at the last check.
    pub(crate) fn room(&self) -> FreeSpace {
        self.space().room
    }

    /// Returns true if entries that another member proposed are still accepted. They are accepted longer than
    /// new proposals, because a majority may depend on this member.
    ///
    /// The result is that of the last check, since heartbeats wait for the caller. On such a disk, each
    /// growth of the log is a check as well, and other writers can't use the ballast.
    pub(crate) fn takes_entries(&self) -> bool {
        let space = self.space();
        let ballast = self.ballast_bytes.load(Relaxed);
        space.room > FreeSpace::Nothing
            || space.free_bytes.saturating_add(ballast) >= self.limits().low_bytes / KEPT
    }

    /// Releases as much of the ballast as the write may lack; 0 for small writes. The write is attempted in
    /// any case: its result shows if the space sufficed.
    pub(in crate::store) fn make_room(&self, bytes: u64) {
        let limits = self.limits();
        let due = bytes.saturating_add(SPARE_BYTES);
        let Ok(free) = free_bytes(&self.dir) else { return };
        if free >= due.max(limits.low_bytes) {
            return;
        }
        let off = held(&self.ballast_off);
        let there = self.ballast_bytes.load(Relaxed);
        if free < due && there > 0 {
            let left = there.saturating_sub(due);
            tracing::warn!(left, "the disk is full: giving up some of the ballast");
            self.give_up(left);
        }
        // The next check would be too late: another writer may fill the disk before.
        self.judge(*off);
    }

    /// Makes room for a snapshot that is about to be written, of about the size of the last one.
    pub(in crate::store) fn make_room_for_snapshot(&self) {
        self.make_room(self.snapshot_bytes());
    }

    /// Checks the disk, and allocates the ballast if there is space.
    fn look(&self) {
        let limits = self.limits();
        let mut off = held(&self.ballast_off);
        *off = off.saturating_sub(1);
        let there = self.ballast_bytes.load(Relaxed);
        if there > limits.ballast_bytes {
            self.give_up(limits.ballast_bytes);
        }
        let room = self.judge(*off);
        if room == FreeSpace::Enough && there < limits.ballast_bytes && *off == 0 {
            match make(&ballast_path(&self.dir), limits.ballast_bytes) {
                Ok(()) => self.ballast_bytes.store(limits.ballast_bytes, Relaxed),
                Err(error) => {
                    tracing::warn!(%error, "there is no ballast on the disk; it will be tried again");
                    *off = LOOKS_OFF;
                }
            }
            self.judge(*off);
        }
    }

    fn judge(&self, off: u32) -> FreeSpace {
        let before = self.room();
        // If the disk doesn't answer, the last result stays valid.
        let Ok(free) = free_bytes(&self.dir) else { return before };
        let limits = self.limits();
        let there = self.ballast_bytes.load(Relaxed);
        let missing = if off > 0 { 0 } else { limits.ballast_bytes.saturating_sub(there) };
        let snapshot = self.snapshot_bytes();
        let needed = limits.low_bytes.saturating_add(snapshot);
        // Space that the ballast will occupy again isn't available for new writes.
        let room = FreeSpace::judge(free.saturating_sub(missing), needed, limits, before);
        let needed = needed.saturating_add(missing);
        *held(&self.space) = DiskSpace { free_bytes: free, needed_bytes: needed, room };
        match room {
            _ if room == before => {}
            FreeSpace::Enough => tracing::info!(free, needed, "the disk has enough room again"),
            FreeSpace::Little | FreeSpace::Nothing => {
                tracing::warn!(free, needed, room = room.as_str(), "the disk is running full");
            }
        }
        room
    }

    fn give_up(&self, left: u64) {
        let path = ballast_path(&self.dir);
        // Some file systems free blocks only once their release is durable.
        let given_up = match File::options().write(true).open(&path) {
            Ok(file) if left > 0 => file.set_len(left).and_then(|()| file.sync_all()),
            Ok(_) => fs::remove_file(&path).and_then(|()| disk::sync_dir(&self.dir)),
            Err(error) => Err(error),
        };
        match given_up {
            Ok(()) => self.ballast_bytes.store(left, Relaxed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.ballast_bytes.store(0, Relaxed),
            Err(error) => tracing::error!(%error, "the ballast can't be given up"),
        }
    }

    /// The size of the current snapshot; 0 without one.
    fn snapshot_bytes(&self) -> u64 {
        fs::metadata(&self.snapshot).map_or(0, |file| file.len())
    }

    fn limits(&self) -> DiskLimits {
        self.limits.get().copied().unwrap_or(DiskLimits::NONE)
    }
}

fn ballast_path(dir: &Path) -> PathBuf {
    dir.join("ballast")
}

/// Bytes that users other than root may still write.
fn free_bytes(dir: &Path) -> io::Result<u64> {
    if let Some(simulated) = simulation::free_bytes(dir) {
        return Ok(simulated);
    }
    let stat = statvfs(dir)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Creates a file with allocated blocks, durably.
fn make(path: &Path, bytes: u64) -> io::Result<()> {
    let made = File::options().create(true).truncate(false).write(true).open(path).and_then(|file| {
        fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
        file.sync_all()
    });
    if made.is_err() {
        let _gone = fs::remove_file(path);
    }
    made
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    const LIMITS: DiskLimits = DiskLimits { low_bytes: 80, ballast_bytes: 0 };

    #[test]
    fn room_is_judged_by_what_must_be_free_and_doesnt_swing() {
        let judge = |free, before| FreeSpace::judge(free, 100, LIMITS, before);
        assert_eq!(judge(100, FreeSpace::Enough), FreeSpace::Enough);
        assert_eq!(judge(99, FreeSpace::Enough), FreeSpace::Little);
        assert_eq!(judge(109, FreeSpace::Little), FreeSpace::Little, "a tenth of what is low more");
        assert_eq!(judge(110, FreeSpace::Little), FreeSpace::Enough);
        assert_eq!(judge(40, FreeSpace::Enough), FreeSpace::Little);
        assert_eq!(judge(39, FreeSpace::Enough), FreeSpace::Nothing);
        assert_eq!(judge(40, FreeSpace::Nothing), FreeSpace::Little);
    }

    #[test]
    fn entries_go_in_for_some_time_after_nothing_new_does() {
        let headroom = Headroom::new(Path::new("/gone"), PathBuf::new());
        headroom.limits.set(LIMITS).unwrap();
        let takes = |room, free_bytes, ballast| {
            *held(&headroom.space) = DiskSpace { free_bytes, needed_bytes: 0, room };
            headroom.ballast_bytes.store(ballast, Relaxed);
            headroom.takes_entries()
        };
        assert!(takes(FreeSpace::Little, 0, 0));
        assert!(takes(FreeSpace::Nothing, 20, 0));
        assert!(takes(FreeSpace::Nothing, 0, 20));
        assert!(!takes(FreeSpace::Nothing, 9, 10));
    }

    #[test]
    fn a_ballast_has_its_bytes_and_goes_when_there_is_no_room_without_it() {
        let dir = tempfile::TempDir::new().unwrap();
        let headroom = Arc::new(Headroom::new(dir.path(), dir.path().join("snapshot")));
        headroom.watch(DiskLimits { low_bytes: 1 << 20, ballast_bytes: 1 << 20 }).unwrap();
        let file = fs::metadata(ballast_path(dir.path())).unwrap();
        assert!(file.blocks() * 512 >= 1 << 20, "{file:?}");
        assert_eq!(headroom.room(), FreeSpace::Enough);
        headroom.make_room(1);
        assert_eq!(fs::metadata(ballast_path(dir.path())).unwrap().len(), 1 << 20);
        // More than any disk has.
        headroom.make_room(u64::MAX);
        assert!(!ballast_path(dir.path()).exists());
        headroom.look();
        assert!(ballast_path(dir.path()).exists(), "made again");
        assert_eq!(
            Headroom::new(dir.path(), dir.path().join("snapshot")).ballast_bytes.load(Relaxed),
            1 << 20,
            "found by the next run"
        );
    }
}
