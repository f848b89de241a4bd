//! Tarball of the programs with their manual pages, units, examples and documentation.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::tree::{Entry, Tree};

/// Compressed archive of a tree below a folder. Equal trees and times give equal bytes.
///
/// # Errors
/// A path that is too long for the format.
pub(crate) fn write(tree: &Tree, folder: &str, time: u64, level: Compression) -> Result<Vec<u8>> {
    let mut tar = Builder::new(gzip(level));
    let paths: Vec<String> = tree.iter().map(|(path, _)| format!("{folder}/{path}")).collect();
    for parent in parents(&paths) {
        tar.append_data(&mut header(EntryType::Directory, 0o755, 0, time), format!("{parent}/"), &[][..])?;
    }
    for (path, (_, entry)) in paths.iter().zip(tree.iter()) {
        match entry {
            Entry::File(content, mode) => {
                let size = u64::try_from(content.len())?;
                tar.append_data(
                    &mut header(EntryType::Regular, *mode, size, time),
                    path,
                    content.as_slice(),
                )?;
            }
            Entry::Link(target) => {
                tar.append_link(&mut header(EntryType::Symlink, 0o777, 0, time), path, target)?;
            }
        }
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Compressed text, without time and name.
///
/// # Errors
/// None in practice: the target is memory.
pub(crate) fn compressed(content: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = gzip(Compression::best());
    gzip.write_all(content)?;
    Ok(gzip.finish()?)
}

fn gzip(level: Compression) -> flate2::write::GzEncoder<Vec<u8>> {
    GzBuilder::new().mtime(0).write(Vec::new(), level)
}

fn header(kind: EntryType, mode: u32, size: u64, time: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// All folders of the paths, each before those inside.
fn parents(paths: &[String]) -> BTreeSet<&str> {
    paths.iter().flat_map(|path| path.match_indices('/').filter_map(|(at, _)| path.get(..at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::PROGRAM;

    #[test]
    fn equal_trees_give_equal_archives_with_folders_first() {
        let mut tree = Tree::default();
        tree.file("bin/ipamd", "program", PROGRAM);
        tree.link("bin/kubectl-ipam", "ipamctl");
        let archive = write(&tree, "ipamd-1", 7, Compression::fast()).unwrap();
        assert_eq!(archive, write(&tree, "ipamd-1", 7, Compression::fast()).unwrap());
        let mut read = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let entries: Vec<(String, u64, u32)> = read
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let path = entry.path().unwrap().display().to_string();
                (path, entry.header().mtime().unwrap(), entry.header().mode().unwrap())
            })
            .collect();
        let expected = [
            ("ipamd-1/", 0o755),
            ("ipamd-1/bin/", 0o755),
            ("ipamd-1/bin/ipamd", 0o755),
            ("ipamd-1/bin/kubectl-ipam", 0o777),
        ];
        assert_eq!(entries, expected.map(|(path, mode)| (path.to_owned(), 7, mode)));
    }
}
