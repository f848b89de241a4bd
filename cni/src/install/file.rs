//! Files that other processes read and execute at any moment: each is replaced as a whole or left as it is.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Effect of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The file had this content and mode already.
    None,
    /// The file is new, or replaces another one.
    Written,
}

/// Directory of a node that no second installation changes at the same time.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Open directory, to lock it and to make its changes durable.
    handle: File,
}

impl Directory {
    /// Waits until no other installation uses the directory. Creates a missing directory.
    ///
    /// # Errors
    /// The failed operation.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let handle = File::open(path)?;
        handle.lock()?;
        Ok(Self { path: path.to_owned(), handle })
    }

    /// Path of a file in the directory.
    #[must_use]
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Installs a file: written beside the present one, made durable, and renamed.
    ///
    /// A program that runs can't be overwritten ("text file busy"), but its name can be given to another
    /// file.
    ///
    /// # Errors
    /// The failed operation. The present file is as it was.
    pub(super) fn put(&self, name: &str, content: &[u8], mode: u32) -> io::Result<Change> {
        let path = self.file(name);
        if is_same(&path, content, mode) {
            return Ok(Change::None);
        }
        // The lock makes this the only installation, so a draft is one that a crash left behind.
        let draft = self.file(&format!(".{name}.new"));
        remove(&draft)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        // A file that is open for writing can't be executed under any name.
        drop(file);
        fs::rename(&draft, &path)?;
        self.handle.sync_all()?;
        Ok(Change::Written)
    }

    /// Moves a file aside, so that it can be put back. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// The failed operation.
    pub(super) fn set_aside(&self, name: &str) -> io::Result<Option<Aside<'_>>> {
        let aside =
            Aside { directory: self, path: self.file(name), kept: self.file(&format!(".{name}.removed")) };
        match fs::rename(&aside.path, &aside.kept) {
            Ok(()) => Ok(Some(aside)),
            // An earlier run may have ended here.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(aside.kept.exists().then_some(aside)),
            Err(error) => Err(error),
        }
    }
}

/// File that was moved aside.
#[derive(Debug)]
pub(super) struct Aside<'a> {
    directory: &'a Directory,
    path: PathBuf,
    kept: PathBuf,
}

impl Aside<'_> {
    /// Path of its former place.
    #[must_use]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the file back.
    ///
    /// # Errors
    /// The failed operation.
    pub(super) fn put_back(self) -> io::Result<()> {
        fs::rename(&self.kept, &self.path)
    }

    /// Removes the file for good.
    ///
    /// # Errors
    /// The failed operation.
    pub(super) fn delete(&self) -> io::Result<()> {
        remove(&self.kept)?;
        self.directory.handle.sync_all()
    }
}

fn is_same(path: &Path, content: &[u8], mode: u32) -> bool {
    let has_shape = |file: &fs::Metadata| {
        file.is_file() && file.len() == content.len() as u64 && file.permissions().mode() & 0o7777 == mode
    };
    fs::metadata(path).is_ok_and(|file| has_shape(&file))
        && fs::read(path).is_ok_and(|present| present == content)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_file_with_the_same_content_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(&dir.path().join("new/bin")).unwrap();
        assert_eq!(directory.put("plugin", b"one", 0o755).unwrap(), Change::Written);
        let inode = || fs::metadata(directory.file("plugin")).unwrap().ino();
        let first = inode();
        assert_eq!(directory.put("plugin", b"one", 0o755).unwrap(), Change::None);
        assert_eq!(inode(), first);
        assert_eq!(directory.put("plugin", b"two", 0o755).unwrap(), Change::Written);
        assert_ne!(inode(), first);
        // The content is the same, but nothing could execute it.
        fs::set_permissions(directory.file("plugin"), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(directory.put("plugin", b"two", 0o755).unwrap(), Change::Written);
        assert_eq!(fs::metadata(directory.file("plugin")).unwrap().permissions().mode() & 0o7777, 0o755);
    }

    #[test]
    fn a_draft_of_a_crash_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path()).unwrap();
        fs::write(directory.file(".plugin.new"), "a half of it, longer than the whole").unwrap();
        directory.put("plugin", b"whole", 0o755).unwrap();
        assert_eq!(fs::read(directory.file("plugin")).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_present_one() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path()).unwrap();
        directory.put("plugin", b"one", 0o755).unwrap();
        fs::create_dir(directory.file(".plugin.new")).unwrap();
        directory.put("plugin", b"two", 0o755).unwrap_err();
        assert_eq!(fs::read(directory.file("plugin")).unwrap(), b"one");
    }

    #[test]
    fn a_file_that_is_set_aside_can_be_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path()).unwrap();
        assert!(directory.set_aside("plugin").unwrap().is_none());
        directory.put("plugin", b"one", 0o755).unwrap();
        // The value is dropped, as at the end of a process that was killed.
        assert!(directory.set_aside("plugin").unwrap().is_some());
        assert!(!directory.file("plugin").exists());
        directory.set_aside("plugin").unwrap().unwrap().put_back().unwrap();
        assert_eq!(fs::read(directory.file("plugin")).unwrap(), b"one");
        directory.set_aside("plugin").unwrap().unwrap().delete().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
