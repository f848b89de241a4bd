//! Files of an artifact by their paths, before they are in a folder, an archive or a package.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Permission bits of programs and scripts.
pub(crate) const PROGRAM: u32 = 0o755;
/// Permission bits of all other files.
pub(crate) const DATA: u32 = 0o644;

/// File or link of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Content and permission bits.
    File(Vec<u8>, u32),
    /// Target of a symbolic link.
    Link(String),
}

/// Entries by their paths, which are relative.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree(BTreeMap<String, Entry>);

impl Tree {
    /// Adds a file.
    pub(crate) fn file(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>, mode: u32) {
        self.0.insert(path.into(), Entry::File(content.into(), mode));
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: impl Into<String>, target: impl Into<String>) {
        self.0.insert(path.into(), Entry::Link(target.into()));
    }

    /// Adds a file of the disk.
    ///
    /// # Errors
    /// A file that can't be read.
    pub(crate) fn copy(&mut self, path: impl Into<String>, from: &Path, mode: u32) -> Result<()> {
        self.file(path, read(from)?, mode);
        Ok(())
    }

    /// Entries in the order of their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// Writes all entries below a folder.
    ///
    /// # Errors
    /// A file that can't be written.
    pub(crate) fn stage(&self, folder: &Path) -> Result<()> {
        for (path, entry) in self.iter() {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
            }
            match entry {
                Entry::Link(target) => symlink(target, &path),
                Entry::File(content, mode) => fs::write(&path, content)
                    .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(*mode))),
            }
            .with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// Content of a file of the disk.
///
/// # Errors
/// A file that can't be read, with its path.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("can't read {}", path.display()))
}
