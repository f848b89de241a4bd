//! Doors for fuzz targets: what is read from disk, and bytes with right sums, which no fuzzer guesses.

use std::io;
use std::path::Path;

use codeq::{Decode, Encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::store::directory::{Identity, Marker, frame};
use crate::store::log::{Record, WalLogId, WalPayload, WalVote};
use crate::store::rows::{Point, seal, unseal};
use crate::store::snapshot;

use ipam_machine::{RowKey, State};

pub use crate::store::journal::fuzzing as journal;

/// A frame with right sums.
#[must_use]
pub fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    // Into memory: it can only be too long, and is empty then.
    let _ = frame::write(&mut framed, kind, 1, body);
    framed
}

/// Reads a snapshot, and writes its contents again.
///
/// # Errors
/// When it isn't one.
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

/// A snapshot with right sums, count and seal, and with the right digest if its rows are a state.
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
pub const ITEMS: u8 = 7;

/// Reads one kind of item, of [`ITEMS`], and writes it once more.
#[must_use]
pub fn item(kind: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    match kind % ITEMS {
        0 => recoded::<WalLogId>(bytes),
        1 => recoded::<WalVote>(bytes),
        2 => recoded::<WalPayload>(bytes),
        3 => recoded::<Record>(bytes),
        4 => {
            let (key, rest) = bytes.split_at_checked(RowKey::BYTES)?;
            let (key, row) = unseal(&(sled::IVec::from(key), sled::IVec::from(rest))).ok().flatten()?;
            Some([key.to_bytes().as_slice(), &seal(key, &row)].concat())
        }
        5 => Some(framed(0xB1, &body::<Marker>(&frame::read(bytes, 0xB1).ok()?.body)?)),
        _ => Some(framed(0xC1, &body::<Point>(&frame::read(bytes, 0xC1).ok()?.body)?)),
    }
}

/// Frames an arbitrary body with valid checksums.
#[must_use]
pub fn item_of(kind: u8, body: &[u8]) -> Vec<u8> {
    match kind % ITEMS {
        0 => [&[0xA1], body].concat(),
        1 => [&[0xA2], body].concat(),
        2 => framed(0xA3, body),
        3 => {
            let mut bytes = body.to_vec();
            bytes.extend_from_slice(&u64::from(crc32fast::hash(body)).to_be_bytes());
            bytes
        }
        4 => {
            let (key, row) = body.split_at_checked(RowKey::BYTES).unwrap_or_default();
            let key = RowKey::from_bytes(key).unwrap_or(RowKey { table: 0, id: 0 });
            [key.to_bytes().as_slice(), &seal(key, row)].concat()
        }
        5 => framed(0xB1, body),
        _ => framed(0xC1, body),
    }
}

/// Reads the identity of the data directory `dir`, and whether it is one.
#[must_use]
pub fn identity(dir: &Path) -> bool {
    Identity::load(dir).is_ok_and(|identity| identity.is_some())
}

fn recoded<T: Encode + Decode>(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let value = T::decode(&mut bytes).ok()?;
    let mut again = Vec::new();
    value.encode(&mut again).ok()?;
    Some(again)
}

fn body<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<Vec<u8>> {
    postcard::to_stdvec(&postcard::from_bytes::<T>(bytes).ok()?).ok()
}
