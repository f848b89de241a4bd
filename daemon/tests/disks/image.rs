//! A disk of its own for one member: ext4 in a file in memory.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{StatVfsMountFlags, statvfs};
use tempfile::TempDir;

use crate::support::held::Held;

/// As root one may write to the last byte; the journal of the file system is as small as it can be.
const MKFS: [&str; 7] = ["-q", "-F", "-m", "0", "-J", "size=4", "-Enodiscard,lazy_itable_init=0"];

/// Mounted file system; unmounted when it is dropped.
#[derive(Debug)]
pub(crate) struct Image {
    dir: TempDir,
    frozen: bool,
}

impl Image {
    /// Fully allocated image of this size.
    pub(crate) fn new(bytes: u64) -> Self {
        // Blocks that hold nothing but zeros take no memory.
        Self::lying(bytes, 2 * bytes)
    }

    /// One that claims to have `bytes`, on something that has `backing_bytes`.
    pub(crate) fn lying(bytes: u64, backing_bytes: u64) -> Self {
        let image = Self { dir: TempDir::new().unwrap(), frozen: false };
        fs::create_dir(image.backing()).unwrap();
        fs::create_dir(image.path()).unwrap();
        let size = format!("size={backing_bytes}");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "ipamd-disk"]).arg(image.backing()));
        File::create(image.file()).unwrap().set_len(bytes).unwrap();
        run(Command::new("mkfs.ext4").args(MKFS).arg(image.file()));
        image.mount();
        image
    }

    fn backing(&self) -> PathBuf {
        self.dir.path().join("backing")
    }

    fn file(&self) -> PathBuf {
        self.backing().join("image")
    }

    /// Mount point.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("disk")
    }

    /// Mounts the image. The kernel detaches a loop device some time after `umount`, and a mount on a device
    /// that has failed writes behind it is read-only: such a mount is repeated.
    pub(crate) fn mount(&self) {
        let begun = Instant::now();
        loop {
            run(Command::new("mount").args(["-o", "loop"]).arg(self.file()).arg(self.path()));
            if !statvfs(self.path()).unwrap().f_flag.contains(StatVfsMountFlags::RDONLY) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{} stays read-only", self.path().display());
            self.unmount();
        }
    }

    /// Waits for the last file to be closed.
    pub(crate) fn unmount(&self) {
        let begun = Instant::now();
        while !Command::new("umount").arg(self.path()).output().unwrap().status.success() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{} is in use", self.path().display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Bytes that are free.
    pub(crate) fn free_bytes(&self) -> u64 {
        let stat = statvfs(self.path()).unwrap();
        stat.f_bavail * stat.f_frsize
    }

    /// Uses all but this many bytes, like a neighbour on the same disk; 0 for a completely full disk.
    pub(crate) fn fill_but(&self, left_bytes: u64) {
        fill(&self.filler(), || self.free_bytes().saturating_sub(left_bytes));
    }

    /// Frees them.
    pub(crate) fn empty(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// From now on new blocks can't be allocated, which is reported as an error.
    pub(crate) fn refuse(&self) {
        fill(&self.neighbour_of_the_file(), || u64::MAX);
    }

    /// Ends the fault; writes that failed are lost.
    pub(crate) fn accept(&self) {
        fs::remove_file(self.neighbour_of_the_file()).unwrap();
    }

    fn neighbour_of_the_file(&self) -> PathBuf {
        self.backing().join("neighbour")
    }

    /// Freezes the file system: writers block, and can't be killed.
    pub(crate) fn freeze(&mut self) {
        self.frozen = true;
        run(Command::new("fsfreeze").arg("-f").arg(self.path()));
    }

    /// Lets them go on.
    pub(crate) fn thaw(&mut self) {
        if std::mem::take(&mut self.frozen) {
            run(Command::new("fsfreeze").arg("-u").arg(self.path()));
        }
    }

    fn filler(&self) -> PathBuf {
        self.path().join("neighbour")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.thaw();
        for path in [self.path(), self.backing()] {
            // Its loop device ends with its last user.
            let _ = Command::new("umount").arg("-l").arg(path).output();
        }
    }
}

/// Writes to a file while `left` returns bytes to use and the disk accepts them.
fn fill(path: &Path, left: impl Fn() -> u64) {
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    let mut piece = 1 << 20;
    loop {
        let bytes = usize::try_from(left()).unwrap_or(piece).min(piece);
        if bytes == 0 {
            break;
        }
        match file.write_all(&vec![7; bytes]).and_then(|()| file.sync_data()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull && piece > 4096 => piece /= 4,
            Err(error) if error.kind() == ErrorKind::StorageFull => break,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

/// Runs a program that must succeed.
#[track_caller]
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {printed}\nThese tests need root and loop devices.");
}

#[test]
fn a_mount_namespace_of_another_test_has_no_disk() {
    let disk = Image::new(16 << 20);
    let held = Held::start(&["--mount"], ":");
    let output = held.inside(&["-m"]).args(["cat", "/proc/self/mounts"]).output().unwrap();
    let mounts = String::from_utf8(output.stdout).unwrap();
    assert!(mounts.contains(" /proc "), "{mounts}");
    let dir = disk.dir.path().to_str().unwrap();
    assert!(!mounts.contains(dir), "{mounts}");
    // Only there.
    assert!(fs::read_to_string("/proc/self/mounts").unwrap().contains(dir));
}
