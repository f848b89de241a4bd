//! Stage `release`: artifacts of the programs under test, checked with Debian's tools and base system.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::workspace::{Workspace, call};
use crate::{binaries, dist, image, monitoring, packages};

/// Programs of the artifacts.
const PROGRAMS: [&str; 4] = ["ipamd", "ipamctl", "ipam-cni", "ipam-agent"];
/// Release of Debian whose base system the packages are installed on.
const DEBIAN: &str = "bookworm";
/// Further packages of the base system, for hosts that boot and for containers on them.
const INCLUDED: [&str; 7] =
    ["adduser", "containerd", "containernetworking-plugins", "iproute2", "runc", "systemd", "systemd-sysv"];
/// Packages that a base system with a kernel of its own needs, too.
const KERNEL: [&str; 4] = ["initramfs-tools", "kmod", "linux-image-cloud-amd64", "udev"];
/// Unit of containerd, which no host must start by itself.
const CONTAINERD: &str = "etc/systemd/system/containerd.service";
/// Marker file, written last into a complete base system.
const COMPLETE: &str = "complete";

/// Choice of programs and tests.
pub(crate) struct Choice<'a> {
    /// True for the programs that ship.
    pub(crate) shipped: bool,
    /// True for the tests that a daily run leaves out, too.
    pub(crate) by_hand: bool,
    /// Folder with the Debian packages of an earlier release.
    pub(crate) previous: Option<&'a Path>,
}

/// Writes the artifacts, and runs their tests.
pub(crate) fn test(workspace: &Workspace, choice: &Choice<'_>) -> Result<()> {
    let Choice { shipped, by_hand, previous } = *choice;
    if let Some(missing) = previous.filter(|folder| !folder.is_dir()) {
        bail!("{} is no directory; --previous takes one with Debian packages", missing.display());
    }
    packages::ensure_release(by_hand)?;
    monitoring::test(workspace, &packages::ensure_promtool(workspace)?)?;
    let base = base_system(workspace, "tools/debian", &[])?;
    let programs = if shipped { workspace.dist() } else { binaries::build_quickly(workspace, &PROGRAMS)? };
    let work = workspace.target.join("release");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    let stripped = strip(&programs, &work.join("programs"))?;
    let artifacts = work.join("artifacts");
    fs::create_dir_all(&artifacts)?;
    let archive = image::archive_name();
    // Without compression, because the programs of a test run are large.
    image::write_archive(workspace, &stripped, &artifacts.join(&archive), 0)?;
    let writer = binaries::build_quickly(workspace, &[dist::WRITER])?.join(dist::WRITER);
    let more = ["--compression", "gzip", "--also", archive.as_str()];
    dist::artifacts(workspace, &writer, &stripped, &artifacts, &more)?;
    let mut tests = workspace.cargo(["nextest", "run", "--workspace", "--locked", "-E"]);
    tests.arg("package(ipam-release) & kind(test)").env("IPAMD_ARTIFACTS", artifacts).env("IPAMD_BASE", base);
    tests.env("IPAMD_STRIPPED", stripped).env("IPAMD_TIME", image::time(&workspace.root)?.to_string());
    if shipped {
        tests.env("IPAMD_SHIPPED", "1");
    }
    if by_hand {
        let kernel_base = base_system(workspace, "tools/debian-kernel", &KERNEL)?;
        tests.arg("--ignore-default-filter").env("IPAMD_KERNEL_BASE", kernel_base);
    }
    if let Some(previous) = previous {
        tests.env("IPAMD_PREVIOUS", std::path::absolute(previous)?);
    }
    call(&mut tests)
}

/// Copies programs without their symbols, which packages never have.
fn strip(from: &Path, to: &Path) -> Result<PathBuf> {
    fs::create_dir_all(to)?;
    for name in PROGRAMS {
        call(Command::new("strip").arg("-o").arg(to.join(name)).arg(from.join(name)))?;
    }
    Ok(to.to_owned())
}

/// Debian's base system with further packages, in a folder below `target`; made once.
fn base_system(workspace: &Workspace, home: &str, further: &[&str]) -> Result<PathBuf> {
    let home = workspace.target.join(home);
    let base = home.join(DEBIAN);
    if home.join(COMPLETE).exists() {
        return Ok(base);
    }
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    let include = format!("--include={}", [&INCLUDED, further].concat().join(","));
    call(Command::new("debootstrap").args(["--variant=minbase", &include, DEBIAN]).arg(&base))?;
    symlink("/dev/null", base.join(CONTAINERD))?;
    fs::write(home.join(COMPLETE), DEBIAN)?;
    Ok(base)
}
