//! The only layer of the image.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use tar::{Builder, EntryType, Header};

/// Layer with these files, by their paths, and links beside them.
pub(crate) fn layer(files: &BTreeMap<String, Vec<u8>>, links: &[(&str, &str)], time: u64) -> Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    // Folders come first, each before those inside.
    for folder in folders(files) {
        tar.append_data(&mut header(EntryType::Directory, 0o755, 0, time), format!("{folder}/"), &[][..])?;
    }
    let mut entries: Vec<(&str, Result<&[u8], &str>)> =
        files.iter().map(|(path, content)| (path.as_str(), Ok(content.as_slice()))).collect();
    entries.extend(links.iter().map(|(path, target)| (*path, Err(*target))));
    entries.sort_by_key(|(path, _)| *path);
    for (path, entry) in entries {
        match entry {
            Ok(content) => {
                let size = u64::try_from(content.len())?;
                tar.append_data(&mut header(EntryType::Regular, 0o755, size, time), path, content)?;
            }
            Err(target) => tar.append_link(&mut header(EntryType::Symlink, 0o777, 0, time), path, target)?,
        }
    }
    Ok(tar.into_inner()?)
}

/// Header of an entry of root.
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

/// All folders of the paths.
fn folders(files: &BTreeMap<String, Vec<u8>>) -> BTreeSet<&str> {
    let all = files.keys().flat_map(|path| path.match_indices('/').filter_map(|(at, _)| path.get(..at)));
    all.collect()
}
