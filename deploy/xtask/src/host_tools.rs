//! Network managers of Debian, unpacked for the tests of rendered files.
//!
//! The packages are never installed: an installed network manager would take over the interfaces of this
//! machine. A test mounts the folder over `/usr` in namespaces of its own.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::packages;
use crate::workspace::{Workspace, call};

/// Packages of Debian 12: the tools, and what they need beyond a machine with [`crate::packages`].
const PACKAGES: [&str; 61] = [
    // The tools.
    "cloud-init",
    "dbus-bin",
    "dbus-daemon",
    "dbus-system-bus-common",
    "ifupdown",
    "netplan.io",
    "network-manager",
    "systemd",
    // Their libraries.
    "libapparmor1",
    "libargon2-1",
    "libbluetooth3",
    "libbrotli1",
    "libcryptsetup12",
    "libcurl3-gnutls",
    "libdbus-1-3",
    "libjansson4",
    "libjson-c5",
    "libkmod2",
    "libmm-glib0",
    "libndp0",
    "libnetplan0",
    "libnewt0.52",
    "libnghttp2-14",
    "libnm0",
    "libpolkit-agent-1-0",
    "libpolkit-gobject-1-0",
    "libpsl5",
    "librtmp1",
    "libslang2",
    "libssh2-1",
    "libsystemd-shared",
    "libteamdctl0",
    "libyaml-0-2",
    // Modules of Python that netplan and cloud-init import.
    "python3-attr",
    "python3-blinker",
    "python3-certifi",
    "python3-cffi-backend",
    "python3-chardet",
    "python3-charset-normalizer",
    "python3-configobj",
    "python3-cryptography",
    "python3-dbus",
    "python3-idna",
    "python3-jinja2",
    "python3-json-pointer",
    "python3-jsonpatch",
    "python3-jsonschema",
    "python3-jwt",
    "python3-markdown-it",
    "python3-markupsafe",
    "python3-mdurl",
    "python3-netifaces",
    "python3-oauthlib",
    "python3-pkg-resources",
    "python3-pygments",
    "python3-pyrsistent",
    "python3-requests",
    "python3-rich",
    "python3-six",
    "python3-urllib3",
    "python3-yaml",
];

/// Links of the root directory into `/usr`, which packages of Debian 12 still name.
const MERGED: [&str; 3] = ["bin", "lib", "sbin"];

/// Python of Debian, which starts the tools.
const PYTHON: &str = "/usr/bin/python3";

/// List of the unpacked packages, written last.
const LIST: &str = "unpacked.txt";

/// Manifest of the program that applies states of nmstate.
const NMSTATE: &str = "daemon/tests/hosts/nmstate/Cargo.toml";

/// Unpacks the network managers, and builds the program with nmstate's crate.
pub(crate) fn ensure(workspace: &Workspace) -> Result<()> {
    ensure_unpacked(workspace)?;
    // The program is not a member of the workspace: its dependencies would change features of all tests.
    let mut build = workspace.cargo(["build", "--quiet", "--locked", "--manifest-path"]);
    build.arg(workspace.root.join(NMSTATE)).arg("--target-dir").arg(workspace.target.join("tools/nmstate"));
    call(&mut build)
}

/// Unpacks the packages into `target/tools/hosts`, unless this is already done.
fn ensure_unpacked(workspace: &Workspace) -> Result<()> {
    let home = workspace.target.join("tools/hosts");
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(home.join(LIST)).is_ok_and(|list| list == wanted) {
        println!("all there: {}", home.display());
        return Ok(());
    }
    let downloads = workspace.target.join("tools/hosts-downloads");
    clear(&home)?;
    download(&PACKAGES, &downloads)?;
    for name in MERGED {
        fs::create_dir_all(home.join("usr").join(name))?;
        symlink(Path::new("usr").join(name), home.join(name))?;
    }
    for package in packages(&downloads, PACKAGES.len())? {
        unpack(&package, &home)?;
    }
    fs::remove_dir_all(&downloads)?;
    // Compiles Python modules, as the scripts of the packages do. In the tests `/usr` is read-only, so each
    // start of a tool would compile all of its modules.
    packages::ensure_python()?;
    let modules = home.join("usr/lib/python3/dist-packages");
    call(Command::new(PYTHON).args(["-m", "compileall", "-q"]).arg(modules))?;
    Ok(fs::write(home.join(LIST), wanted)?)
}

/// Makes an empty folder.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

/// Downloads packages of Debian into an empty folder, without installing them.
pub(crate) fn download(packages: &[&str], downloads: &Path) -> Result<()> {
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("this machine has no apt-get, which downloads {}", packages.join(", "));
    }
    clear(downloads)?;
    let download = || {
        let mut command = Command::new("apt-get");
        // apt-get downloads as another user, which can't access root's own folder.
        command.args(["-o", "APT::Sandbox::User=root", "download"]).args(packages).current_dir(downloads);
        call(&mut command)
    };
    // The lists may be old or absent, so a failed first try is followed by an update.
    if download().is_err() {
        call(Command::new("apt-get").arg("update"))?;
        download()?;
    }
    Ok(())
}

/// Downloaded packages: one file for each name.
pub(crate) fn packages(downloads: &Path, count: usize) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(downloads)?.collect::<Result<Vec<_>, _>>()?;
    let packages: Vec<PathBuf> =
        files.iter().map(fs::DirEntry::path).filter(|path| is_package(path)).collect();
    if packages.len() != count {
        bail!("apt-get downloaded {} of {count} packages", packages.len());
    }
    Ok(packages)
}

fn is_package(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "deb")
}

/// Unpacks a package without running its scripts. Links of the root directory stay.
pub(crate) fn unpack(package: &Path, home: &Path) -> Result<()> {
    let archive = package.with_extension("tar");
    let output = File::create(&archive)?;
    let listed = Command::new("dpkg-deb").arg("--fsys-tarfile").arg(package).stdout(output).status();
    if !listed.context("can't start dpkg-deb")?.success() {
        bail!("dpkg-deb can't read {}", package.display());
    }
    let mut command = Command::new("tar");
    command.args(["--extract", "--keep-directory-symlink", "--no-same-owner", "--exclude=./usr/share/doc"]);
    command.args(["--exclude=./usr/share/man", "--exclude=./usr/share/locale", "--directory"]);
    call(command.arg(home).arg("--file").arg(archive))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A duplicate name is downloaded once, so the number of files would never match.
    #[test]
    fn each_package_is_named_once() {
        let mut names = PACKAGES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PACKAGES.len());
        assert!(is_package(Path::new("a/netplan.io_0.106_amd64.deb")) && !is_package(Path::new("a/x.tar")));
    }
}
