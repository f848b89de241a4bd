//! Files: snapshots, segments of the journal, records of the log, and the frames of rows.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::{env, fs, process};

use ipam_raft::fuzzing::store::{self, journal};

use crate::parts::{choice, parts, rows};

/// Directory of this process, in memory where possible.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { env::temp_dir() };
    let folder = parent.join(format!("ipamd-fuzz-{}", process::id()));
    // If the directory can't be created, writing the first file fails, which is checked.
    let _ = fs::create_dir_all(&folder);
    folder
});

/// The tag of a part that is a block of the journal, and not a row.
const BLOCK: u8 = 0xE0;

/// Reads a snapshot: the input itself, or a snapshot built from the rows and blocks of the input.
pub(crate) fn snapshot(data: &[u8]) {
    let (kind, data) = choice(data);
    let bytes = match kind % 2 {
        0 => data.to_vec(),
        _ => {
            let mut all = rows(data);
            all.retain(|(key, _)| key.table != BLOCK);
            let blocks = parts(data).into_iter().filter(|(tag, _)| *tag == BLOCK);
            store::snapshot_of(&all, &blocks.map(|(_, block)| block.to_vec()).collect::<Vec<_>>())
        }
    };
    if let Ok(once) = store::snapshot(&bytes) {
        assert_eq!(store::snapshot(&once).ok(), Some(once));
    }
}

/// Reads sealed segments of the journal: the input itself, valid segments of its parts, or sealed blocks.
/// Also reads open segments and blocks.
pub(crate) fn journal(data: &[u8]) {
    let (kind, data) = choice(data);
    let path = FOLDER.join("segment");
    let tagged = |wanted: u8| -> Vec<Vec<u8>> {
        parts(data).into_iter().filter(|(tag, _)| *tag == wanted).map(|(_, part)| part.to_vec()).collect()
    };
    match kind % 5 {
        0 => {
            assert!(fs::write(&path, data).is_ok());
            let _ = journal::sealed(&path);
        }
        1 => {
            let footer = tagged(2).pop().unwrap_or_default();
            assert!(journal::pretend(&path, &tagged(0), &tagged(1), &footer).is_ok());
            let _ = journal::sealed(&path);
        }
        2 => {
            let blocks = tagged(0);
            let sealed = journal::seal(&path, &blocks);
            assert!(sealed.is_ok());
            if sealed.is_ok_and(|sealed| sealed) {
                assert_eq!(journal::sealed(&path).ok(), Some(blocks));
            }
        }
        3 => {
            let (frames, rest) = choice(data);
            let content: Vec<u8> =
                parts(rest).iter().flat_map(|(_, chunk)| store::framed(0xE4, chunk)).collect();
            let _ = journal::open(&content, frames.into());
            let _ = journal::open(rest, frames.into());
        }
        _ => {
            let _ = journal::block(data);
            let frames: Vec<Vec<u8>> = parts(data).into_iter().map(|(_, frame)| frame.to_vec()).collect();
            let _ = journal::block(&journal::block_of(&frames));
        }
    }
}

/// Reads files of log, rows, marker and identity.
pub(crate) fn log(data: &[u8]) {
    let (kind, data) = choice(data);
    if kind > 2 * store::ITEMS {
        return log_file(kind % 2 == 0, data);
    }
    if kind == 2 * store::ITEMS {
        assert!(fs::write(FOLDER.join("identity.json"), data).is_ok());
        let _ = store::identity(&FOLDER);
        return;
    }
    let bytes = if kind < store::ITEMS { data.to_vec() } else { store::item_of(kind, data) };
    if let Some(once) = store::item(kind, &bytes) {
        assert_eq!(store::item(kind, &once).as_ref(), Some(&once));
    }
}

/// Opens a file of records and other bytes. An opened log is sound, and opens again with the same content.
fn log_file(same_boot: bool, data: &[u8]) {
    let piece = |(tag, part): &(u8, &[u8])| match tag {
        0 | 1 => store::item_of(*tag, part),
        2 => vec![0; part.len()],
        _ => part.to_vec(),
    };
    let content: Vec<u8> = parts(data).iter().flat_map(piece).collect();
    if let Some(opened) = store::log_file(&FOLDER, &content, same_boot) {
        let again = store::open_log(&FOLDER, true);
        assert!(matches!((opened, again), (Ok(one), Some(Ok(other))) if one == other));
    }
}
