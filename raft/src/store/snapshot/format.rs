//! Format of a snapshot: the whole state at one log entry, in one file.
//!
//! `magic, header frame, row frames of at most 32 KiB, the open segment of the journal, end frame, blake3 of
//! all that`. Frames let a reader stop at the first damaged one; the seal at the end proves that all of them
//! are present, in order.

use std::io::{self, Read, Write};

use ipam_api::limits::ROW_BYTES_MAX;
use serde::{Deserialize, Serialize};

use super::instant::{Instant, Meta};
use crate::progress::Progress;
use crate::store::directory::background::Panicked;
use crate::store::directory::frame;
use crate::store::journal::read_blocks;
use crate::store::rows::loading;
#[cfg(feature = "testing")]
use crate::store::spoil::{BREAKING_TO_SEND, break_if_named};
use ipam_machine::RowKey;
use ipam_machine::model::word_of;

const MAGIC: &[u8; 8] = b"IPAMSNAP";
const VERSION: u8 = 1;
const HEADER: u8 = 0xD1;
const ROWS: u8 = 0xD2;
const END: u8 = 0xD3;
/// A block of the journal's open segment; sealed segments are fetched after the state.
const JOURNAL: u8 = 0xD4;
/// Bytes of rows in a frame. Their encoding must not keep a core for long from urgent threads.
pub(super) const FRAME_BYTES_MAX: usize = 32 << 10;

/// The header of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::store) struct Header {
    pub(in crate::store) meta: Meta,
    pub(in crate::store) digest: u128,
}

/// Content that exceeds the format's limits: a defect of this program, and no reason for a member to stop.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::store) struct Unwritable(String);

impl Unwritable {
    /// Checks content against its maximum size.
    fn check(bytes: usize, bytes_max: usize, what: impl FnOnce() -> String) -> io::Result<()> {
        match bytes <= bytes_max {
            true => Ok(()),
            false => {
                let what = what();
                Err(Self(format!("{what} has {bytes} bytes, and at most {bytes_max} are allowed")).into())
            }
        }
    }

    /// Returns true for [`Unwritable`] and for a panic of the snapshot thread, which are no disk errors.
    pub(in crate::store) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>() || inner.is::<Panicked>())
    }
}

impl From<Unwritable> for io::Error {
    fn from(unwritable: Unwritable) -> Self {
        Self::new(io::ErrorKind::InvalidInput, unwritable)
    }
}

/// Writes a snapshot.
///
/// # Errors
/// If the disk refuses a write; [`Unwritable`] if part of the content exceeds its limit.
pub(in crate::store) fn write(to: impl Write, instant: &Instant) -> io::Result<()> {
    let Instant { state, journal, .. } = instant;
    let mut to = Sealing { inner: to, seal: blake3::Hasher::new() };
    to.write_all(MAGIC)?;
    let header = postcard::to_stdvec(&Header { meta: instant.meta(), digest: state.digest() });
    let header = header.map_err(|error| Unwritable(format!("its header can't be encoded: {error}")))?;
    frame::write(&mut to, HEADER, VERSION, &header)?;
    let mut body = Vec::new();
    let mut count = 0_u64;
    for (key, row) in state.rows() {
        #[cfg(feature = "testing")]
        break_if_named(BREAKING_TO_SEND, key, &row);
        if !body.is_empty() && body.len() + RowKey::BYTES + 4 + row.len() > FRAME_BYTES_MAX {
            frame::write(&mut to, ROWS, VERSION, &body)?;
            body.clear();
        }
        Unwritable::check(row.len(), ROW_BYTES_MAX, || {
            format!("the row of {} {}", word_of(key.table), key.id)
        })?;
        let length = u32::try_from(row.len()).map_err(io::Error::other)?;
        body.extend_from_slice(&key.to_bytes());
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(&row);
        count += 1;
    }
    if !body.is_empty() {
        frame::write(&mut to, ROWS, VERSION, &body)?;
    }
    for block in journal {
        let number = state.header().journal.segment;
        let bytes = block.bytes();
        Unwritable::check(bytes.len(), frame::BODY_BYTES_MAX, || {
            format!("the block of segment {number} of the journal that begins with event {}", block.first())
        })?;
        frame::write(&mut to, JOURNAL, VERSION, &bytes)?;
    }
    frame::write(&mut to, END, VERSION, &count.to_be_bytes())?;
    let seal = to.seal.finalize();
    to.inner.write_all(seal.as_bytes())
}

/// Reads the header alone: what the snapshot claims to be.
pub(super) fn read_header(mut from: impl Read) -> io::Result<Header> {
    if frame::read_array(&mut from)? != *MAGIC {
        return Err(frame::invalid("this isn't a snapshot"));
    }
    let header = body(frame::read(from, HEADER)?)?;
    postcard::from_bytes(&header).map_err(frame::codec)
}

/// Reads the whole snapshot and checks that it is complete, without building a state.
pub(in crate::store) fn verify(from: impl Read) -> io::Result<Header> {
    let mut rows = Rows::begin(from)?;
    while rows.next_row()?.is_some() {}
    Ok(rows.header)
}

/// Loads the state, and checks that the snapshot is complete and its digest right.
pub(in crate::store) fn load(from: impl Read + Send, progress: &Progress) -> io::Result<Instant> {
    let mut rows = Rows::begin(from)?;
    let state = loading::load(|| rows.next_row(), |damaged| frame::invalid(damaged.0), progress)?;
    if state.digest() != rows.header.digest {
        return Err(frame::invalid("the digest of its rows isn't the one it claims"));
    }
    let journal = read_blocks(&state.header().journal, rows.journal)?;
    let Meta { last_log_id: applied, last_membership: membership } = rows.header.meta;
    Ok(Instant { state, applied, membership, journal })
}

/// A snapshot being read.
struct Rows<R> {
    from: Sealing<R>,
    header: Header,
    body: io::Cursor<Vec<u8>>,
    journal: Vec<Vec<u8>>,
    count: u64,
    ended: bool,
}

impl<R: Read> Rows<R> {
    fn begin(from: R) -> io::Result<Self> {
        let mut from = Sealing { inner: from, seal: blake3::Hasher::new() };
        let header = read_header(&mut from)?;
        Ok(Self { from, header, body: io::Cursor::default(), journal: Vec::new(), count: 0, ended: false })
    }

    /// The next row; nothing after the last, once the seal was found to be right.
    fn next_row(&mut self) -> io::Result<Option<(RowKey, Vec<u8>)>> {
        while self.body.position() >= self.body.get_ref().len() as u64 {
            if self.ended || !self.next_frame()? {
                return Ok(None);
            }
        }
        let key: [u8; RowKey::BYTES] = frame::read_array(&mut self.body)?;
        let key = RowKey::from_bytes(&key).ok_or_else(|| frame::invalid("a key isn't a row's"))?;
        let length = u32::from_be_bytes(frame::read_array(&mut self.body)?);
        let mut row = Vec::new();
        (&mut self.body).take(length.into()).read_to_end(&mut row)?;
        if row.len() as u64 != u64::from(length) {
            return Err(frame::invalid("a row reaches beyond its frame"));
        }
        self.count += 1;
        Ok(Some((key, row)))
    }

    fn next_frame(&mut self) -> io::Result<bool> {
        let kind: [u8; 1] = frame::read_array(&mut self.from)?;
        let from = kind.chain(&mut self.from);
        if kind == [JOURNAL] {
            self.journal.push(body(frame::read(from, JOURNAL)?)?);
            return Ok(true);
        }
        if kind == [ROWS] {
            self.body = io::Cursor::new(body(frame::read(from, ROWS)?)?);
            return Ok(true);
        }
        let count = body(frame::read(from, END)?)?;
        if count != self.count.to_be_bytes() {
            return Err(frame::invalid("the number of its rows isn't the one it claims"));
        }
        let seal = self.from.seal.finalize();
        let found: [u8; blake3::OUT_LEN] = frame::read_array(&mut self.from.inner)?;
        if seal != found {
            return Err(frame::invalid("its seal is broken"));
        }
        if self.from.inner.read(&mut [0])? != 0 {
            return Err(frame::invalid("something follows its end"));
        }
        self.ended = true;
        Ok(false)
    }
}

fn body(frame: frame::Frame) -> io::Result<Vec<u8>> {
    match frame.version {
        VERSION => Ok(frame.body),
        version => Err(frame::invalid(format!("a snapshot of version {version} can't be read here"))),
    }
}

/// Reader or writer that computes the seal of all bytes that pass.
struct Sealing<I> {
    inner: I,
    seal: blake3::Hasher,
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.seal.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Sealing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.seal.update(bytes.get(..read).unwrap_or_default());
        Ok(read)
    }
}
