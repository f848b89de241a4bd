//! Disk of a member: a file system of its own, whose power can be cut.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::tools::call;
use crate::nemesis::Cut;

/// Size of the image, which is sparse: unwritten parts take no memory.
const BYTES: u64 = 256 << 20;
/// Size of the smallest piece of space that [`Disk::fill`] allocates, in bytes.
const SECTOR: u64 = 512;
/// Contents of the canary file, which a cut must remove.
const CANARY: &str = "this was never synced";
/// Time limit for the kernel to release a disk.
const LET_GO: Duration = Duration::from_secs(20);

/// A file system of ext4 in an image.
#[derive(Debug)]
pub(crate) struct Disk {
    image: PathBuf,
    place: PathBuf,
    mounted: bool,
    is_frozen: bool,
    /// Canary file, written and not synced before the last cut; it must not exist after the cut.
    canary: PathBuf,
}

impl Disk {
    /// Creates an empty disk, and mounts it.
    pub(crate) fn make(dir: &Path, name: &str) -> Result<Self> {
        let (image, place) = (dir.join(format!("{name}.img")), dir.join(format!("{name}.disk")));
        File::create(&image).and_then(|file| file.set_len(BYTES)).context("no room for a disk")?;
        call("mkfs.ext4", ["-q".as_ref(), "-F".as_ref(), image.as_os_str()])?;
        fs::create_dir_all(&place)?;
        let mut disk = Self { image, place, mounted: false, is_frozen: false, canary: PathBuf::new() };
        disk.mount()?;
        Ok(disk)
    }

    /// Mount point.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    fn mount(&mut self) -> Result<()> {
        call("mount", ["-o".as_ref(), "loop".as_ref(), self.image.as_os_str(), self.place.as_os_str()])?;
        self.mounted = true;
        Ok(())
    }

    /// Uses all free space, and returns its bytes. Blocks are allocated and not written.
    pub(crate) fn fill(&mut self) -> Result<u64> {
        let file = File::options().create(true).append(true).open(self.filler()).context("a filler")?;
        let mut bytes = file.metadata()?.len();
        // Free space is fragmented, so the file takes smaller and smaller pieces.
        let mut piece = BYTES;
        while piece >= SECTOR {
            match fallocate(&file, FallocateFlags::empty(), bytes, piece) {
                Ok(()) => bytes += piece,
                Err(Errno::NOSPC) => piece /= 2,
                Err(error) => return Err(error).context("a disk can't be filled"),
            }
        }
        Ok(bytes)
    }

    /// Frees the space that [`Self::fill`] used.
    pub(crate) fn empty(&mut self) -> Result<()> {
        match fs::remove_file(self.filler()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("a filler"),
            _ => Ok(()),
        }
    }

    fn filler(&self) -> PathBuf {
        self.place.join("filler")
    }

    /// Blocks all writers until the thaw; they can't be killed.
    pub(crate) fn freeze(&mut self) -> Result<()> {
        call("fsfreeze", ["-f".as_ref(), self.place.as_os_str()])?;
        self.is_frozen = true;
        Ok(())
    }

    /// Unblocks the writers.
    pub(crate) fn thaw(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_frozen) {
            call("fsfreeze", ["-u".as_ref(), self.place.as_os_str()])?;
        }
        Ok(())
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Writes a file that a cut must remove, as evidence of the cut.
    pub(crate) fn set_canary(&mut self) -> Result<()> {
        // A new name each time: ext4 itself syncs a rewritten file when it is closed.
        self.canary = self.place.join(format!("canary-{}", uuid::Uuid::new_v4()));
        fs::write(&self.canary, CANARY).with_context(|| self.canary.display().to_string())
    }

    /// Restores the power after a cut: mounts the disk again, which replays its journal. The disk must be
    /// unused.
    pub(crate) fn power_on(&mut self, after: Cut) -> Result<()> {
        self.unmount()?;
        self.mount()?;
        let kept = fs::read_to_string(&self.canary).is_ok_and(|found| found == CANARY);
        let _gone = fs::remove_file(&self.canary);
        if after != Cut::Flushed && kept {
            bail!("the cut was none: {} has what was never synced", self.place.display());
        }
        Ok(())
    }

    fn unmount(&mut self) -> Result<()> {
        call("umount", [&self.place])?;
        self.mounted = false;
        // The namespace of a killed process may keep the disk in use for a moment. Mounted again before its
        // release, the disk would be the dead file system again.
        let begun = Instant::now();
        while self.is_in_use()? {
            if begun.elapsed() > LET_GO {
                bail!("the kernel doesn't let go of {}", self.image.display());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Returns true if a loop device uses the image.
    fn is_in_use(&self) -> Result<bool> {
        for device in fs::read_dir("/sys/block").context("/sys/block")? {
            let backing = fs::read_to_string(device?.path().join("loop/backing_file"));
            if backing.is_ok_and(|backing| Path::new(backing.trim_end()) == self.image) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = self.thaw() {
            eprintln!("{error:#}");
        }
        if self.mounted
            && let Err(error) = call("umount", ["--lazy".as_ref(), self.place.as_os_str()])
        {
            eprintln!("{error:#}");
        }
        let _gone = fs::remove_file(&self.image);
    }
}
