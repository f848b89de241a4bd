//! Access for fuzz targets to the readers of disk formats. Checksums are computed here, since no fuzzer
//! guesses them.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::store::directory::{Identity, Marker, frame};
use crate::store::log::{self, Record};
use crate::store::rows::{Block, Point, with_sum};
use crate::store::snapshot;

use ipam_machine::{RowKey, State};

pub use crate::store::journal::fuzzing as journal;

/// Builds a frame with valid checksums.
#[must_use]
pub fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    // Writing to memory fails only if the body is too long; the result is empty then.
    let _ = frame::write(&mut framed, kind, 1, body);
    framed
}

/// Reads a snapshot, and writes its contents again.
///
/// # Errors
/// If the bytes are no snapshot.
pub fn snapshot(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let whole = snapshot::verify(bytes);
    let instant = snapshot::load(bytes, &crate::progress::Progress::default())?;
    let header = snapshot::Header { meta: instant.meta(), digest: instant.state.digest() };
    if whole? != header {
        return Err(io::Error::other("its header is read in two ways"));
    }
    let mut again = Vec::new();
    snapshot::write(&mut again, &instant)?;
    Ok(again)
}

/// Builds a snapshot with valid checksums, count and seal. The digest is right if the rows form a state.
#[must_use]
pub fn snapshot_of(rows: &[(RowKey, Vec<u8>)], blocks: &[Vec<u8>]) -> Vec<u8> {
    let digest = State::from_rows(rows.iter().cloned()).map_or(0, |state| state.digest());
    let header = snapshot::Header { meta: Default::default(), digest };
    let mut bytes = b"IPAMSNAP".to_vec();
    bytes.extend(framed(0xD1, &postcard::to_stdvec(&header).unwrap_or_default()));
    for (key, row) in rows {
        let mut body = key.to_bytes().to_vec();
        body.extend_from_slice(&u32::try_from(row.len()).unwrap_or(u32::MAX).to_be_bytes());
        body.extend_from_slice(row);
        bytes.extend(framed(0xD2, &body));
    }
    for block in blocks {
        bytes.extend(framed(0xD4, block));
    }
    bytes.extend(framed(0xD3, &(rows.len() as u64).to_be_bytes()));
    let seal = blake3::hash(&bytes);
    bytes.extend_from_slice(seal.as_bytes());
    bytes
}

/// Kinds of items in the files of log, rows and marker.
pub const ITEMS: u8 = 5;

/// Reads one kind of item, of [`ITEMS`], and writes it once more.
#[must_use]
pub fn item(kind: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    match kind % ITEMS {
        0 | 1 => {
            let record = Record::decode(&mut &*bytes).ok()?;
            let mut again = Vec::new();
            record.encode(&mut again).ok()?;
            Some(again)
        }
        2 => {
            let (key, rest) = bytes.split_at_checked(RowKey::BYTES)?;
            let block = Block::unseal(key, rest).ok()?;
            Some([key, &block.seal()].concat())
        }
        3 => Some(framed(0xB1, &body::<Marker>(&frame::read(bytes, 0xB1).ok()?.body)?)),
        _ => Some(framed(0xC1, &body::<Point>(&frame::read(bytes, 0xC1).ok()?.body)?)),
    }
}

/// Frames an arbitrary body with valid checksums.
#[must_use]
pub fn item_of(kind: u8, body: &[u8]) -> Vec<u8> {
    match kind % ITEMS {
        0 => summed(body.to_vec()),
        1 => {
            let (log_id, payload) = body.split_at_checked(24).unwrap_or_default();
            summed([&[0, 0, 0, 1, 0xA1], log_id, &framed(0xA3, payload)].concat())
        }
        2 => {
            let (key, rows) = body.split_at_checked(RowKey::BYTES).unwrap_or_default();
            let key = RowKey::from_bytes(key).unwrap_or(RowKey { table: 0, id: 0 });
            [key.to_bytes().as_slice(), &with_sum(key, rows.to_vec())].concat()
        }
        3 => framed(0xB1, body),
        _ => framed(0xC1, body),
    }
}

/// Opens a log in `dir` whose only file has this content. Returns state and entries as text, once it opens.
#[must_use]
pub fn log_file(dir: &Path, content: &[u8], same_boot: bool) -> Option<io::Result<String>> {
    let folder = log::path(dir);
    // Errors are ignored: a file that can't be removed or created can't be opened either.
    let _ = fs::remove_dir_all(&folder);
    let _ = fs::create_dir(&folder);
    let _ = fs::write(folder.join(log::file_name(0)), content);
    open_log(dir, same_boot)
}

/// Opens the log in `dir` again, as after a kill.
#[must_use]
pub fn open_log(dir: &Path, same_boot: bool) -> Option<io::Result<String>> {
    let log::Opened { files, .. } = log::open(dir, &Marker::default(), same_boot).ok()?;
    let entries = files.read(0..u64::MAX, usize::MAX);
    Some(entries.map(|entries| format!("{:?} {entries:?}", files.state())))
}

/// A record with a valid checksum.
fn summed(mut content: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&content);
    content.extend(u64::from(sum).to_be_bytes());
    content
}

/// Reads the identity of the data directory `dir`, and whether it is one.
#[must_use]
pub fn identity(dir: &Path) -> bool {
    Identity::load(dir).is_ok_and(|identity| identity.is_some())
}

fn body<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<Vec<u8>> {
    postcard::to_stdvec(&postcard::from_bytes::<T>(bytes).ok()?).ok()
}
