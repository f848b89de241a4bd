//! File operations that every part of the store must get right.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::simulation;

/// Makes names in a directory durable: a file's fsync doesn't cover its directory entry.
pub(in crate::store) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a directory with its parents, if missing, and makes every new name durable.
pub(in crate::store) fn create_dir(dir: &Path) -> io::Result<()> {
    create_dir_and(dir, sync_dir)
}

fn create_dir_and(dir: &Path, mut sync: impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    // Parents come first, so that every existing directory has a durable name at any instant.
    for new in missing(dir).into_iter().rev() {
        match fs::create_dir(new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && new.is_dir() => {}
            made => made?,
        }
        sync(parent(new))?;
    }
    Ok(())
}

/// Returns the missing directories on the path to `dir`, itself included, the deepest first.
fn missing(dir: &Path) -> Vec<&Path> {
    dir.ancestors().take_while(|place| !place.as_os_str().is_empty() && !place.is_dir()).collect()
}

/// Returns the directory that has the entry of this one.
fn parent(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Replaces a small file atomically: the old or the new content exists at any instant, never a mixture.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = File::create(&aside)?;
    file.write_all(content)?;
    file.sync_all()?;
    rename(&aside, path)
}

/// Renames, and makes the new name durable.
pub(in crate::store) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_dir(parent(to))
}

/// Turns the error of a missing file into none.
pub(in crate::store) fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Returns the id of the machine's current boot. Until the next boot the page cache survives: written data is
/// there, synced or not.
pub(in crate::store) fn boot_id(dir: &Path) -> String {
    if let Some(simulation) = simulation::present() {
        return (simulation.boot_id)(dir);
    }
    // Without the kernel's boot id every start counts as another boot: the safe answer.
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| uuid::Uuid::new_v4().to_string(), |id| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_in_the_directory_where_we_are() {
        assert_eq!(parent(Path::new("survivor.ipamd")), Path::new("."));
        assert_eq!(parent(Path::new("/srv/survivor.ipamd")), Path::new("/srv"));
    }

    #[test]
    fn every_directory_that_is_new_gets_a_durable_name() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("var/lib/ipamd");
        let mut synced = Vec::new();
        let mut sync = |parent: &Path| {
            synced.push((parent.to_owned(), fs::read_dir(parent)?.count()));
            Ok(())
        };
        create_dir_and(&deep, &mut sync).unwrap();
        create_dir_and(&deep, &mut sync).unwrap();
        // Each right after it got its one name, and never again.
        let parents = ["", "var", "var/lib"].map(|name| (dir.path().join(name), 1));
        assert_eq!(synced, parents);
        assert!(deep.is_dir());
    }

    #[test]
    fn a_relative_directory_begins_here() {
        assert_eq!(missing(Path::new("surely-not-there/data")).len(), 2);
        assert_eq!(parent(Path::new("data")), Path::new("."));
        assert_eq!(parent(Path::new("a/data")), Path::new("a"));
    }

    #[test]
    fn a_file_in_the_way_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("var"), "").unwrap();
        create_dir(&dir.path().join("var/lib")).unwrap_err();
    }
}
