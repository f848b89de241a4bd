//! Contents of one log entry: the commands that waited together, and the time of their proposal.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Command;

/// Version of the encoding below; the first byte of every batch.
const BATCH_VERSION: u8 = 1;

/// Maximum size of an entry without commands: three 64-bit varints and three bytes beside them.
const BEGINNING_BYTES_MAX: usize = 3 * 10 + 3;

/// The commands of one log entry, encoded once by the leader that proposed them. Log, peers and cache carry
/// the bytes; only `apply` decodes them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch(Bytes);

/// Decoded contents of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Leadership that the entry belongs to.
    pub leadership: Leadership,
    /// Log time of the proposal, in milliseconds; ignored in an entry that begins a leadership.
    pub log_time_ms: u64,
    /// Wall clock of the leader at the proposal, in milliseconds since 1970; a label.
    pub wall_ms: u64,
    /// The commands, in the order in which they are applied.
    pub commands: Vec<Command>,
}

/// The leadership that an entry belongs to. One Raft term may contain several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leadership {
    /// A new leadership, whose number is the entry's own log index. The entry carries no commands.
    Begins {
        /// Log time after this entry during which no lease and no prefix ends, in milliseconds.
        grace_ms: u64,
    },
    /// The leadership with this number. If another one has begun since, the entry has no effect.
    Number(u64),
}

/// A batch that this version can't read.
#[derive(Debug, thiserror::Error)]
#[error("a log entry can't be read by this version: {0}")]
pub struct Unreadable(String);

impl Batch {
    /// Encodes the contents of one entry.
    ///
    /// # Errors
    /// Never for the types of this crate; only the codec's signature has an error.
    pub fn seal(opened: &Opened) -> Result<Self, Unreadable> {
        postcard::to_extend(opened, vec![BATCH_VERSION])
            .map(|bytes| Self(bytes.into()))
            .map_err(|error| Unreadable(error.to_string()))
    }

    /// Decodes the contents.
    ///
    /// # Errors
    /// For an unknown version or damaged bytes.
    pub fn open(&self) -> Result<Opened, Unreadable> {
        match self.0.split_first() {
            Some((&BATCH_VERSION, body)) => {
                postcard::from_bytes(body).map_err(|error| Unreadable(error.to_string()))
            }
            Some((version, _)) => Err(Unreadable(format!("its version is {version}"))),
            None => Err(Unreadable("it is empty".to_owned())),
        }
    }

    /// Encodes the entry that begins a leadership.
    ///
    /// # Errors
    /// As for [`Self::seal`].
    pub fn beginning(grace_ms: u64, wall_ms: u64) -> Result<Self, Unreadable> {
        let leadership = Leadership::Begins { grace_ms };
        Self::seal(&Opened { leadership, log_time_ms: 0, wall_ms, commands: Vec::new() })
    }

    /// Returns true for the beginning of a leadership, which even a full disk accepts.
    #[must_use]
    pub fn begins_leadership(&self) -> bool {
        // Other entries are larger, and need not be decoded.
        self.size() <= BEGINNING_BYTES_MAX
            && self.open().is_ok_and(|opened| matches!(opened.leadership, Leadership::Begins { .. }))
    }

    /// Length in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} bytes)", self.0.len())
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
