//! Tarball of the programs with their manual pages, units, examples and documentation.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use ipam_image::tree::Tree;

/// Compressed archive of a tree. Equal trees and times give equal bytes.
///
/// # Errors
/// A path that is too long for the format.
pub(crate) fn write(tree: &Tree, time: u64, level: Compression) -> Result<Vec<u8>> {
    Ok(tree.archive(gzip(level), time)?.finish()?)
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

#[cfg(test)]
mod tests {
    use ipam_image::tree::PROGRAM;

    use super::*;

    #[test]
    fn equal_trees_give_equal_archives_with_folders_first() {
        let mut tree = Tree::default();
        tree.file("bin/ipamd", "program", PROGRAM);
        tree.link("bin/kubectl-ipam", "ipamctl");
        let tree = tree.below("ipamd-1");
        let archive = write(&tree, 7, Compression::fast()).unwrap();
        assert_eq!(archive, write(&tree, 7, Compression::fast()).unwrap());
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
