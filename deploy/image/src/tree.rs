//! Files of an artifact by their paths, before they are in a folder, an archive or a package.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result};
use tar::{Builder, EntryType, Header};

/// Permission bits of programs, scripts and folders.
pub const PROGRAM: u32 = 0o755;
/// Permission bits of all other files.
pub const DATA: u32 = 0o644;

/// File or link of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Content and permission bits.
    File(Vec<u8>, u32),
    /// Target of a symbolic link.
    Link(String),
}

/// Entries by their paths, which are relative.
#[derive(Debug, Clone, Default)]
pub struct Tree(BTreeMap<String, Entry>);

impl Tree {
    /// Adds a file.
    pub fn file(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>, mode: u32) {
        self.0.insert(path.into(), Entry::File(content.into(), mode));
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: impl Into<String>, target: impl Into<String>) {
        self.0.insert(path.into(), Entry::Link(target.into()));
    }

    /// Adds a file of the disk.
    ///
    /// # Errors
    /// A file that can't be read.
    pub fn copy(&mut self, path: impl Into<String>, from: &Path, mode: u32) -> Result<()> {
        self.file(path, read(from)?, mode);
        Ok(())
    }

    /// Adds the files of a folder of the disk and of its subfolders, as data. Hidden files and copies that
    /// editors keep are left out.
    ///
    /// # Errors
    /// A file or folder that can't be read.
    pub fn copy_folder(&mut self, path: &str, from: &Path) -> Result<()> {
        for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            let path = format!("{path}/{name}");
            if entry.file_type()?.is_dir() {
                self.copy_folder(&path, &entry.path())?;
            } else {
                self.copy(path, &entry.path(), DATA)?;
            }
        }
        Ok(())
    }

    /// Adds all entries of another tree.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Entries in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// Returns the same entries with paths inside a folder.
    #[must_use]
    pub fn below(self, folder: &str) -> Self {
        Self(self.0.into_iter().map(|(path, entry)| (format!("{folder}/{path}"), entry)).collect())
    }

    /// Writes a tar archive. Equal trees and times give equal bytes.
    ///
    /// # Errors
    /// A path that is too long for the format, or output that can't be written.
    pub fn archive<W: Write>(&self, output: W, time: u64) -> Result<W> {
        let mut tar = Builder::new(output);
        // Folders come first, each before those inside.
        for folder in self.folders() {
            tar.append_data(
                &mut header(EntryType::Directory, PROGRAM, 0, time),
                format!("{folder}/"),
                &[][..],
            )?;
        }
        for (path, entry) in self.iter() {
            match entry {
                Entry::File(content, mode) => {
                    let size = u64::try_from(content.len())?;
                    let mut header = header(EntryType::Regular, *mode, size, time);
                    tar.append_data(&mut header, path, content.as_slice())?;
                }
                Entry::Link(target) => {
                    tar.append_link(&mut header(EntryType::Symlink, 0o777, 0, time), path, target)?;
                }
            }
        }
        Ok(tar.into_inner()?)
    }

    /// Folders of all entries, each before those inside.
    #[must_use]
    pub fn folders(&self) -> BTreeSet<&str> {
        let all = self.0.keys();
        all.flat_map(|path| path.match_indices('/').filter_map(|(at, _)| path.get(..at))).collect()
    }

    /// Writes all entries below a folder.
    ///
    /// # Errors
    /// A file that can't be written.
    pub fn stage(&self, folder: &Path) -> Result<()> {
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

/// Header of an entry that belongs to root.
pub(crate) fn header(kind: EntryType, mode: u32, size: u64, time: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Content of a file of the disk.
///
/// # Errors
/// A file that can't be read, with its path.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("can't read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_editors_are_no_part_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("alerts")).unwrap();
        for name in [".a.md.swp", "a.md", "a.md~", "alerts/b.md"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let mut tree = Tree::default();
        tree.copy_folder("docs", folder.path()).unwrap();
        assert_eq!(tree.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["docs/a.md", "docs/alerts/b.md"]);
    }
}
