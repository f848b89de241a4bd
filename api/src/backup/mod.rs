//! Format of a backup file: a header and frames, every byte covered by a checksum.
//!
//! `magic and version, header frame (JSON), frames of the state, for each segment of the history a frame that
//! announces it and its pieces, end frame, blake3 of all that`. Checksums of frames locate damage; the seal
//! at the end proves that nothing is missing and that the file wasn't assembled from two backups. Only
//! members interpret the contents, so any holder of the file can check it.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::io;

use serde::{Deserialize, Serialize};

pub use self::reader::{Checked, Piece, Reader, check};
pub use self::writer::{StateWriter, Writer};
use crate::time::Timestamp;

/// Magic bytes of a backup; the byte after them is the version.
const MAGIC: &[u8; 7] = b"IPAMBKP";
/// The newest version of the format.
pub const VERSION: u8 = 1;
/// Bytes of one frame's body, at most.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Kind, length, and a checksum after the body.
const FRAME_BYTES: u64 = 1 + 4 + 4;

/// The kinds of frames.
const HEADER: u8 = b'H';
const STATE: u8 = b'S';
const SEGMENT: u8 = b'J';
const PIECE: u8 = b'P';
const END: u8 = b'E';

/// Header of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the daemon that wrote the backup.
    pub version: String,
    /// Cluster of the backup.
    pub cluster: String,
    /// Member that wrote the backup.
    pub member: String,
    /// Creation time, by the clock of that member.
    pub taken_at: Timestamp,
    /// Epoch of the state.
    pub epoch: u64,
    /// Revision of the state.
    pub revision: u64,
    /// Feature level of the state.
    pub level: u32,
    /// The digest of the state, in hexadecimal.
    pub digest: String,
    /// True if the backup includes the sealed segments of the journal.
    pub history: bool,
    /// Number of sealed segments in the backup.
    pub segments: u64,
    /// Numbers of objects in the state.
    pub counts: Counts,
}

/// Numbers of objects in a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Networks.
    pub networks: u64,
    /// Subnets.
    pub subnets: u64,
    /// Pools.
    pub pools: u64,
    /// Reservations.
    pub reservations: u64,
    /// Endpoints.
    pub endpoints: u64,
    /// Addresses held.
    pub allocations: u64,
    /// Tokens: hashes of their secrets, never the secrets.
    pub tokens: u64,
    /// Events in the history of the backup.
    pub events: u64,
}

/// Reason why a backup can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The file isn't a backup.
    #[error("this is no backup: it doesn't begin as one")]
    Foreign,
    /// The file was written by a newer version of the daemon.
    #[error(
        "this backup has version {version} of the format, and this program reads up to {VERSION}: use a \
         newer one"
    )]
    TooNew {
        /// Version of the file.
        version: u8,
    },
    /// The contents differ from what was written.
    #[error("the backup is damaged at byte {at}: {what}; use another one")]
    Damaged {
        /// Offset of the damage, in bytes.
        at: u64,
        /// Symptom of the damage.
        what: String,
    },
    /// Reading failed.
    #[error("the backup can't be read: {0}")]
    Io(#[from] io::Error),
}
