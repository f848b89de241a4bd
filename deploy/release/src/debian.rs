//! Debian packages, built by `dpkg-deb` from a staged tree.
//!
//! Maintainer scripts and fields are files in `deploy/debian/NAME/`. Settings are no conffiles: an upgrade
//! never asks about them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use ipam_image::tree::{DATA, Entry, PROGRAM, Tree, read};

/// Maintainer scripts, in the order of an installation.
const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];
/// Time of all entries, by the convention of reproducible builds.
pub(crate) const TIME: &str = "SOURCE_DATE_EPOCH";

/// Package of a version for an architecture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Package<'a> {
    /// Name, and name of the folder with its fields and scripts.
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    /// Time of all entries, in seconds since 1970.
    pub(crate) time: u64,
    /// Compression, as `dpkg-deb` names it.
    pub(crate) compression: &'a str,
}

impl Package<'_> {
    /// Name of the package's file.
    pub(crate) fn file(&self) -> String {
        format!("{}_{}_{}.deb", self.name, self.version, architecture())
    }

    /// Builds the package from a tree and `folder` with its fields and scripts; writes it to `to`.
    ///
    /// # Errors
    /// A file that is missing, or a tree that `dpkg-deb` refuses.
    pub(crate) fn build(&self, tree: &Tree, folder: &Path, to: &Path) -> Result<()> {
        let staged = tempfile::tempdir()?;
        let root = staged.path().join(self.name);
        tree.stage(&root)?;
        let mut control = Tree::default();
        control.file("control", self.control(&folder.join("control"), tree)?, DATA);
        control.file("md5sums", sums(&root, tree)?, DATA);
        for script in SCRIPTS {
            let path = folder.join(script);
            if path.exists() {
                control.file(script, self.filled(&read(&path)?)?, PROGRAM);
            }
        }
        control.stage(&root.join("DEBIAN"))?;
        // The umask of the caller must not determine the modes of a package.
        for path in folders(&root)? {
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
        let mut command = Command::new("dpkg-deb");
        // The number of threads determines the blocks of the compressed data, so it is fixed.
        command.args(["--root-owner-group", "--threads-max=1", &format!("-Z{}", self.compression)]);
        if self.compression != "xz" {
            command.arg("-z1");
        }
        command.arg("--build").arg(&root).arg(to);
        let output = command.env(TIME, self.time.to_string()).output();
        let output = output.context("can't start dpkg-deb (package dpkg)")?;
        if !output.status.success() {
            bail!("dpkg-deb: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    /// Fields with version, architecture and installed size in KiB.
    fn control(&self, file: &Path, tree: &Tree) -> Result<String> {
        let bytes = tree.iter().map(|(_, entry)| match entry {
            Entry::File(content, _) => content.len(),
            Entry::Link(_) => 0,
        });
        let size = bytes.sum::<usize>().div_ceil(1024);
        let text = self.filled(&read(file)?)?;
        Ok(text.replace("@ARCHITECTURE@", architecture()).replace("@SIZE@", &size.to_string()))
    }

    /// Text with the version.
    pub(crate) fn filled(&self, text: &[u8]) -> Result<String> {
        Ok(std::str::from_utf8(text)?.replace("@VERSION@", self.version))
    }
}

/// Lines of `md5sums`, computed by coreutils, since MD5 has no other use in this workspace.
fn sums(root: &Path, tree: &Tree) -> Result<String> {
    let files = tree.iter().filter(|(_, entry)| matches!(entry, Entry::File(..))).map(|(path, _)| path);
    let output = Command::new("md5sum").arg("--").args(files).current_dir(root).output()?;
    if !output.status.success() {
        bail!("md5sum: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A folder and all folders in it.
fn folders(root: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut found = vec![root.to_owned()];
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(folders(&entry.path())?);
        }
    }
    Ok(found)
}

/// Debian's name of this machine's architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
