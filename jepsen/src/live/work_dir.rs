//! Private mount namespace with a directory in memory; both end with the process.
//!
//! Its mounts are invisible outside, and the kernel unmounts them and frees the loop devices after the last
//! process in it has ended, even after a kill.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use tempfile::TempDir;

use super::tools::call;

/// Environment variable with the namespace that the re-executed program has left.
const LEFT_ENV: &str = "IPAM_JEPSEN_LEFT_NAMESPACE";

/// Re-executes this program in a mount namespace of its own, unless it is in one.
///
/// # Errors
/// If that fails; on success it doesn't return.
pub fn enter() -> Result<()> {
    let here = fs::read_link("/proc/self/ns/mnt").context("/proc/self/ns/mnt")?;
    match std::env::var_os(LEFT_ENV) {
        Some(left) if left != here.as_os_str() => return Ok(()),
        Some(_) => bail!("unshare has left this program in the mount namespace that it was in"),
        None => {}
    }
    // The owner of our own process directory is the effective user.
    if fs::metadata("/proc/self").context("/proc/self")?.uid() != 0 {
        bail!("only root can mount file systems to cut their power; run it as root");
    }
    if !Path::new("/dev/loop-control").exists() {
        bail!("this machine has no loop devices (/dev/loop-control), and the members' disks are such");
    }
    let error = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--"])
        .arg(std::env::current_exe().context("this program can't be found")?)
        .args(std::env::args_os().skip(1))
        .env(LEFT_ENV, &here)
        .exec();
    Err(anyhow!(error).context("can't start unshare; the package util-linux has it"))
}

/// Directory in memory, removed with this value.
#[derive(Debug)]
pub(crate) struct WorkDir {
    dir: TempDir,
}

impl WorkDir {
    /// Creates and mounts the directory.
    pub(crate) fn make() -> Result<Self> {
        // Members have namespaces of their own, which must release a disk when it is unmounted here.
        call("mount", ["--make-rshared", "/"])?;
        let dir = TempDir::with_prefix("ipam-jepsen-").context("no place for temporary files")?;
        let work_dir = Self { dir };
        let words = ["-t", "tmpfs", "-o", "size=75%,mode=0700", "ipam-jepsen"].map(OsStr::new);
        call("mount", words.into_iter().chain([work_dir.path().as_os_str()]))?;
        Ok(work_dir)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Killed members may still use the directory, so it is unmounted lazily.
        if let Err(error) = call("umount", [OsStr::new("--lazy"), self.path().as_os_str()]) {
            eprintln!("{error:#}");
        }
    }
}
