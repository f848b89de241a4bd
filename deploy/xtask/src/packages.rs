//! The Debian packages that the tests need, installed where they are missing.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::workspace::{Workspace, call};

/// System package that the tests need, with its possible paths.
struct Package {
    name: &'static str,
    wanted: &'static str,
    places: &'static [&'static str],
}

const NEEDED: &[Package] = &[
    Package {
        name: "containernetworking-plugins",
        wanted: "the CNI plugins bridge, host-local, …",
        places: &["/usr/lib/cni/bridge"],
    },
    Package {
        name: "iproute2",
        wanted: "ip",
        places: &["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"],
    },
    Package {
        name: "e2fsprogs",
        wanted: "mkfs.ext4",
        places: &["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/bin/mkfs.ext4"],
    },
    Package { name: "mount", wanted: "mount, umount", places: &["/usr/bin/mount", "/bin/mount"] },
    Package {
        name: "util-linux",
        wanted: "unshare, fsfreeze",
        places: &["/usr/bin/unshare", "/bin/unshare"],
    },
    Package {
        name: "libfaketime",
        wanted: "wall clocks that are wrong",
        places: &[
            "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
            "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
        ],
    },
    Package { name: "containerd", wanted: "containerd, ctr", places: &["/usr/bin/containerd"] },
    // runc comes before podman, which would otherwise install crun: crun refuses machines with both versions
    // of cgroups.
    Package { name: "runc", wanted: "runc", places: &["/usr/sbin/runc", "/usr/bin/runc"] },
    Package { name: "podman", wanted: "podman, conmon", places: &["/usr/bin/podman"] },
    Package { name: "golang-go", wanted: "go", places: &["/usr/bin/go"] },
    Package {
        name: "golang-google-grpc-dev",
        wanted: "grpc-go",
        places: &["/usr/share/gocode/src/google.golang.org/grpc/version.go"],
    },
    Package { name: "protobuf-compiler", wanted: "protoc", places: &["/usr/bin/protoc"] },
    // The generator for the runtime that Debian's grpc-go uses; newer packages install a generator of the
    // same name.
    Package {
        name: "protoc-gen-go-1-3",
        wanted: "protoc-gen-go",
        places: &["/var/lib/dpkg/info/protoc-gen-go-1-3.list"],
    },
    Package { name: "valgrind", wanted: "valgrind", places: &["/usr/bin/valgrind"] },
];

/// Packages that check release artifacts.
const RELEASE: &[Package] = &[
    Package { name: "lintian", wanted: "lintian", places: &["/usr/bin/lintian"] },
    Package { name: "debootstrap", wanted: "debootstrap", places: &["/usr/sbin/debootstrap"] },
    Package { name: "mandoc", wanted: "mandoc", places: &["/usr/bin/mandoc"] },
    Package { name: "binutils", wanted: "strip", places: &["/usr/bin/strip"] },
    Package { name: "strace", wanted: "strace", places: &["/usr/bin/strace"] },
    Package { name: "systemd", wanted: "systemd-analyze", places: &["/usr/bin/systemd-analyze"] },
    Package { name: "systemd-container", wanted: "systemd-nspawn", places: &["/usr/bin/systemd-nspawn"] },
];

/// Package that builds and reads RPM packages.
const RPM: &[Package] = &[Package { name: "rpm", wanted: "rpmbuild", places: &["/usr/bin/rpmbuild"] }];

/// Package that emulates a machine.
const EMULATOR: &[Package] = &[Package {
    name: "qemu-system-x86",
    wanted: "qemu-system-x86_64",
    places: &["/usr/bin/qemu-system-x86_64"],
}];

/// Debian's package of kubectl.
const KUBECTL: &str = "kubernetes-client";
/// Debian's package of promtool.
const PROMTOOL: &str = "prometheus";

/// Installs missing packages, or prints the command.
pub(crate) fn ensure() -> Result<()> {
    ensure_all(NEEDED)
}

/// Installs the missing packages that check release artifacts, with those of the tests by hand if wanted.
pub(crate) fn ensure_release(by_hand: bool) -> Result<()> {
    ensure_all(RELEASE)?;
    if by_hand {
        ensure_rpm()?;
        ensure_all(EMULATOR)?;
    }
    Ok(())
}

/// Installs rpmbuild, if it is missing.
pub(crate) fn ensure_rpm() -> Result<()> {
    ensure_all(RPM)
}

fn ensure_all(needed: &'static [Package]) -> Result<()> {
    let missing = missing(needed, |place| Path::new(place).exists());
    if missing.is_empty() {
        println!("all there: {}", names(&needed.iter().collect::<Vec<_>>()));
        return Ok(());
    }
    for package in &missing {
        println!("missing: {} (package {})", package.wanted, package.name);
    }
    let names = names(&missing);
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("this machine has no apt-get: install by other means what Debian has as {names}");
    }
    // The owner of our own process directory is the effective user.
    let user = fs::metadata("/proc/self").context("can't read /proc/self")?.uid();
    if user != 0 {
        bail!("packages are missing and only root can install them; run: sudo apt-get install {names}");
    }
    // The lists may be old or absent, so a failed first try is followed by an update.
    if install(&missing).is_err() {
        call(apt_get().arg("update"))?;
        install(&missing)?;
    }
    Ok(())
}

/// Creates the Python virtual environment, unless it exists. Uses the first available tool.
pub(crate) fn ensure_python() -> Result<()> {
    let works = || {
        let import = Command::new("python3").args(["-c", "import venv, ensurepip"]).output();
        import.is_ok_and(|output| output.status.success())
    };
    if works() {
        return Ok(());
    }
    println!("missing: python3 with venv (packages python3, python3-venv)");
    let words = ["install", "--yes", "--no-install-recommends", "python3", "python3-venv"];
    if call(apt_get().args(words)).is_err() {
        call(apt_get().arg("update"))?;
        call(apt_get().args(words))?;
    }
    if works() {
        Ok(())
    } else {
        bail!("python3 has no venv; install python3-venv, or what your system calls it")
    }
}

/// Unpacks Debian's kubectl, unless it exists. The manifests are limited to the kustomize version that is
/// built into it, and a machine may have another kubectl.
pub(crate) fn ensure_kubectl(workspace: &Workspace) -> Result<()> {
    ensure_unpacked(&workspace.target.join("tools/kubectl"), KUBECTL, "usr/bin/kubectl").map(drop)
}

/// Unpacks Debian's promtool, unless it exists; returns its path. Its installed package would start a server.
pub(crate) fn ensure_promtool(workspace: &Workspace) -> Result<PathBuf> {
    ensure_unpacked(&workspace.target.join("tools/promtool"), PROMTOOL, "usr/bin/promtool")
}

/// Unpacks a package into a folder, unless the folder has the program.
fn ensure_unpacked(home: &Path, package: &str, program: &str) -> Result<PathBuf> {
    let program = home.join(program);
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(home)?;
    let download = || call(apt_get().args(["download", package]).current_dir(home));
    if download().is_err() {
        call(apt_get().arg("update"))?;
        download()?;
    }
    let is_package = |path: &Path| path.extension().is_some_and(|extension| extension == "deb");
    let files = fs::read_dir(home)?.collect::<Result<Vec<_>, _>>()?;
    let file = files.iter().map(fs::DirEntry::path).find(|path| is_package(path));
    let file = file.context("apt-get downloaded no package")?;
    call(Command::new("dpkg-deb").arg("--extract").arg(&file).arg(home))?;
    fs::remove_file(file)?;
    Ok(program)
}

fn missing(needed: &'static [Package], exists: impl Fn(&str) -> bool) -> Vec<&'static Package> {
    needed.iter().filter(|package| !package.places.iter().any(|place| exists(place))).collect()
}

fn names(packages: &[&Package]) -> String {
    packages.iter().map(|package| package.name).collect::<Vec<_>>().join(" ")
}

fn install(packages: &[&Package]) -> Result<()> {
    call(
        apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages.iter().map(|p| p.name)),
    )
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_of_a_package_is_enough() {
        let all = missing(NEEDED, |_| false);
        let is_go = |place: &str| ["/usr/bin/go", "grpc", "protoc"].iter().any(|part| place.contains(part));
        assert_eq!(
            names(&all),
            "containernetworking-plugins iproute2 e2fsprogs mount util-linux libfaketime containerd runc \
             podman golang-go golang-google-grpc-dev protobuf-compiler protoc-gen-go-1-3 valgrind"
        );
        assert_eq!(
            names(&missing(NEEDED, |place| place.starts_with("/bin/")
                || place.contains("faketime")
                || is_go(place))),
            "containernetworking-plugins e2fsprogs containerd runc podman valgrind"
        );
        let there = [
            "/sbin/ip",
            "/usr/lib/cni/bridge",
            "/sbin/mkfs.ext4",
            "/bin/mount",
            "/bin/unshare",
            "/usr/bin/valgrind",
        ];
        let runtimes = ["/usr/bin/containerd", "/usr/bin/runc", "/usr/bin/podman"];
        let missing =
            missing(NEEDED, |place| there.contains(&place) || runtimes.contains(&place) || is_go(place));
        assert_eq!(names(&missing), "libfaketime");
    }
}
