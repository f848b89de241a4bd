//! Disk of a member: a file system of its own, whose power can be cut.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::tools::{Cut, call};

/// Sparse: what isn't written takes no memory.
const BYTES: u64 = 256 << 20;
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
    /// Written and not synced before the last cut; it must not be there afterwards.
    canary: PathBuf,
}

impl Disk {
    /// Makes an empty one, and mounts it.
    pub(crate) fn make(dir: &Path, name: &str) -> Result<Self> {
        let (image, place) = (dir.join(format!("{name}.img")), dir.join(format!("{name}.disk")));
        File::create(&image).and_then(|file| file.set_len(BYTES)).context("no room for a disk")?;
        call("mkfs.ext4", ["-q".as_ref(), "-F".as_ref(), image.as_os_str()])?;
        fs::create_dir_all(&place)?;
        let mut disk = Self { image, place, mounted: false, canary: PathBuf::new() };
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

    /// Writes something that a cut must take away, to see that it is one.
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
        // A namespace of a process just killed may hold it a little longer. Mounted again before that is
        // over, it would be the dead file system again.
        let begun = Instant::now();
        while self.is_in_use()? {
            if begun.elapsed() > LET_GO {
                bail!("the kernel doesn't let go of {}", self.image.display());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// True if a loop device has the image.
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
        if self.mounted
            && let Err(error) = call("umount", ["--lazy".as_ref(), self.place.as_os_str()])
        {
            eprintln!("{error:#}");
        }
        let _gone = fs::remove_file(&self.image);
    }
}
