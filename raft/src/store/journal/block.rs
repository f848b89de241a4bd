//! A block: about 64 KiB of frames, the unit in which the journal is compressed, looked up and checked.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, OnceLock};

use ipam_api::limits::JOURNAL_BLOCK_BYTES;
use xxhash_rust::xxh3::xxh3_64;

use crate::store::directory::frame;
use ipam_machine::EventId;
use ipam_machine::journal::{Chain, Frame, link};

const LENGTH: usize = 4;
/// Bytes at which a part gets no further frame. Each published state has a clone of the block that grows, so
/// each entry with events copies at most one part.
const PART_BYTES: usize = 4 << 10;

/// Frames in order, each with its length before it.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// Whole frames. Clones share all parts but the last one.
    parts: Vec<Arc<Vec<u8>>>,
    length: usize,
    frames: u64,
    first: EventId,
    before: Chain,
    keys: OnceLock<Vec<u64>>,
}

impl Block {
    /// Creates an empty block; `first` is the first event that it will hold.
    pub(super) fn new(first: EventId, before: Chain) -> Self {
        Self { parts: Vec::new(), length: 0, frames: 0, first, before, keys: OnceLock::new() }
    }

    /// Parses the bytes of a block; returns it with the chain after them.
    pub(super) fn parse(bytes: Vec<u8>, before: Chain) -> io::Result<(Self, Chain)> {
        let mut chain = before;
        let mut block = Self::new(EventId::default(), before);
        let mut rest = bytes.as_slice();
        while let Some((frame, behind)) = split(rest)? {
            if block.frames == 0 {
                block.first = decode(frame)?.first();
            }
            chain = link(&chain, frame);
            block.frames += 1;
            rest = behind;
        }
        if block.frames == 0 {
            return Err(frame::invalid("a block of the journal is empty"));
        }
        block.length = bytes.len();
        block.parts.push(Arc::new(bytes));
        Ok((block, chain))
    }

    pub(super) fn push(&mut self, frame: &[u8]) {
        // A frame is bounded by what a log entry can bring about.
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        if self.parts.last().is_none_or(|part| part.len() >= PART_BYTES) {
            self.parts.push(Arc::default());
        }
        if let Some(part) = self.parts.last_mut() {
            let part = Arc::make_mut(part);
            part.extend_from_slice(&length.to_be_bytes());
            part.extend_from_slice(frame);
        }
        self.length += LENGTH + frame.len();
        self.frames += 1;
        self.keys = OnceLock::new();
    }

    pub(super) fn is_full(&self) -> bool {
        self.length >= JOURNAL_BLOCK_BYTES
    }

    /// Returns the frames with their lengths, as files and snapshots have them.
    pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
        match self.parts.as_slice() {
            [part] => Cow::Borrowed(part),
            parts => Cow::Owned(parts.iter().map(|part| part.as_slice()).collect::<Vec<_>>().concat()),
        }
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    pub(in crate::store) fn first(&self) -> EventId {
        self.first
    }

    /// Returns the chain before the first frame of the block.
    pub(super) fn before(&self) -> Chain {
        self.before
    }

    /// Returns the frames as they are stored.
    pub(super) fn raw(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().flat_map(|part| {
            let mut rest = part.as_slice();
            std::iter::from_fn(move || {
                let (frame, behind) = split(rest).ok().flatten()?;
                rest = behind;
                Some(frame)
            })
        })
    }

    /// Returns the decoded frames.
    pub(super) fn decoded(&self) -> impl Iterator<Item = io::Result<Frame>> {
        self.raw().map(decode)
    }

    /// Returns the index keys of the block, sorted.
    pub(super) fn keys(&self) -> &[u64] {
        self.keys.get_or_init(|| {
            let mut keys = BTreeSet::new();
            for frame in self.decoded().flatten() {
                for event in frame.into_events() {
                    keys.insert(key("principal", &event.by.principal));
                    keys.extend(event.kind.address().map(|address| key("address", &address.to_string())));
                    keys.extend(event.kind.pool().map(|pool| key("pool", pool.as_str())));
                    keys.extend(event.kind.endpoint().map(|one| key("endpoint", &one.to_string())));
                }
            }
            keys.into_iter().collect()
        })
    }
}

/// Returns the index key of a value. Part of the format of segments.
pub(super) fn key(word: &str, value: &str) -> u64 {
    let mut text = String::with_capacity(word.len() + 1 + value.len());
    text.push_str(word);
    text.push('\0');
    text.push_str(value);
    xxh3_64(text.as_bytes())
}

fn decode(bytes: &[u8]) -> io::Result<Frame> {
    Frame::decode(bytes).ok_or_else(|| frame::invalid("a frame of the journal can't be read by this version"))
}

/// First frame and the rest; nothing at the end.
fn split(bytes: &[u8]) -> io::Result<Option<(&[u8], &[u8])>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let beyond = || frame::invalid("a frame of the journal reaches beyond its block");
    let (length, rest) = bytes.split_first_chunk::<LENGTH>().ok_or_else(beyond)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    rest.split_at_checked(length).map(Some).ok_or_else(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_grows_copies_its_last_part_alone() {
        let mut block = Block::new(EventId::default(), Chain::default());
        let frame = [7; 1000];
        let count = JOURNAL_BLOCK_BYTES / frame.len();
        let (mut before, mut copied) = (block.clone(), 0);
        for _ in 0..count {
            block.push(&frame);
            let parts = block.parts.iter().zip(&before.parts);
            copied +=
                parts.filter(|(new, old)| !Arc::ptr_eq(new, old)).map(|(_, old)| old.len()).sum::<usize>();
            before = block.clone();
        }
        assert!(copied <= count * PART_BYTES, "{copied} bytes of {count} frames");
        assert_eq!((block.raw().count(), block.frames()), (count, count as u64));
        let whole = Block { parts: vec![Arc::new(block.bytes().into_owned())], ..block.clone() };
        assert!(whole.raw().eq(block.raw()));
    }
}
