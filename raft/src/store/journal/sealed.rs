//! File of a sealed segment: compressed blocks, an index, and a footer with their positions.
//!
//! `magic, block frames, index frames, footer frame, trailer`. Every byte is under a checksum, and the blocks
//! under the chain of the state, so that no damage is ever served as history. The index is a sorted list of
//! numbers (hashes of addresses, pools, endpoints, principals) with their blocks, cut into pages: the history
//! of one address costs a binary search per segment and the blocks that it is in.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::block::Block;
use crate::store::directory::{disk, frame};
use ipam_machine::EventId;
use ipam_machine::journal::{Chain, Segment};

const MAGIC: &[u8; 8] = b"IPAMJRNL";
const VERSION: u8 = 1;
const BLOCK: u8 = 0xE1;
const INDEX: u8 = 0xE2;
const FOOTER: u8 = 0xE3;
/// Bytes of the trailer: offset and length of the footer, their checksum, and the magic again.
const TRAILER: usize = 24;
/// Entries of one page of the index, of 12 bytes each.
const PAGE_ENTRIES: usize = 512;
const ENTRY: usize = 12;
/// Maximum bytes that LZ4 decompresses from one byte.
const LZ4_RATIO_MAX: usize = 255;

/// A place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    offset: u64,
    length: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BlockPlace {
    place: Place,
    /// Its bytes before compression.
    bytes: u32,
    first: EventId,
    before: Chain,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PagePlace {
    place: Place,
    first: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Footer {
    number: u64,
    segment: Segment,
    blocks: Vec<BlockPlace>,
    pages: Vec<PagePlace>,
}

/// Writes a segment file durably and atomically.
pub(super) fn write(path: &Path, number: u64, segment: &Segment, blocks: &[Arc<Block>]) -> io::Result<()> {
    let mut content = MAGIC.to_vec();
    let mut footer = Footer { number, segment: segment.clone(), blocks: Vec::new(), pages: Vec::new() };
    for block in blocks {
        let raw = block.bytes();
        let place = append(&mut content, BLOCK, &lz4_flex::block::compress(&raw))?;
        let bytes = u32::try_from(raw.len()).map_err(io::Error::other)?;
        footer.blocks.push(BlockPlace { place, bytes, first: block.first(), before: block.before() });
    }
    for page in entries(blocks)?.chunks(PAGE_ENTRIES) {
        let mut body = Vec::with_capacity(page.len() * ENTRY);
        for (key, block) in page {
            body.extend_from_slice(&key.to_be_bytes());
            body.extend_from_slice(&block.to_be_bytes());
        }
        let place = append(&mut content, INDEX, &body)?;
        footer.pages.push(PagePlace { place, first: page.first().map_or(0, |(key, _)| *key) });
    }
    let body = postcard::to_stdvec(&footer).map_err(frame::codec)?;
    let place = append(&mut content, FOOTER, &body)?;
    content.extend_from_slice(&trailer(place));
    disk::replace(path, &content)
}

/// Segment with valid checksums and arbitrary contents, which no fuzzer would find.
#[cfg(feature = "testing")]
pub(super) fn pretended(blocks: &[Vec<u8>], pages: &[Vec<u8>], footer: &[u8]) -> io::Result<Vec<u8>> {
    let mut content = MAGIC.to_vec();
    for block in blocks {
        append(&mut content, BLOCK, &lz4_flex::block::compress(block))?;
    }
    for page in pages {
        append(&mut content, INDEX, page)?;
    }
    let place = append(&mut content, FOOTER, footer)?;
    content.extend_from_slice(&trailer(place));
    Ok(content)
}

/// The claims of a block about itself.
#[cfg(test)]
pub(super) struct Claim {
    pub(super) length: u32,
    pub(super) bytes: u32,
}

/// Segment with one small block and a footer with a false claim about it.
#[cfg(test)]
pub(super) fn claiming(claim: &Claim) -> Vec<u8> {
    let mut content = MAGIC.to_vec();
    let place = Place { length: claim.length, ..append(&mut content, BLOCK, &[0; 6]).unwrap() };
    let block = BlockPlace { place, bytes: claim.bytes, first: EventId::default(), before: Chain::default() };
    let footer = Footer { number: 1, segment: Segment::default(), blocks: vec![block], pages: Vec::new() };
    let place = append(&mut content, FOOTER, &postcard::to_stdvec(&footer).unwrap()).unwrap();
    content.extend_from_slice(&trailer(place));
    content
}

/// The keys of the index with their blocks, in order.
fn entries(blocks: &[Arc<Block>]) -> io::Result<Vec<(u64, u32)>> {
    let mut entries = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let number = u32::try_from(number).map_err(io::Error::other)?;
        entries.extend(block.keys().iter().map(|key| (*key, number)));
    }
    entries.sort_unstable();
    Ok(entries)
}

fn append(content: &mut Vec<u8>, kind: u8, body: &[u8]) -> io::Result<Place> {
    let offset = content.len() as u64;
    let length = frame::write(&mut *content, kind, VERSION, body)?;
    Ok(Place { offset, length: u32::try_from(length).map_err(io::Error::other)? })
}

fn trailer(Place { offset, length }: Place) -> Vec<u8> {
    let place = [offset.to_be_bytes().as_slice(), &length.to_be_bytes()].concat();
    [place.as_slice(), &crc32fast::hash(&place).to_be_bytes(), MAGIC].concat()
}

/// A sealed segment, open for reading.
#[derive(Debug)]
pub(in crate::store) struct Sealed {
    file: File,
    footer: Footer,
}

impl Sealed {
    /// Opens the segment that the state knows under this number; another one in its file is damage.
    pub(super) fn open(path: &Path, number: u64, segment: &Segment) -> io::Result<Self> {
        let sealed = Self::open_any(path)?;
        if sealed.footer.number != number || sealed.footer.segment != *segment {
            return Err(frame::invalid("it isn't the segment that the state knows"));
        }
        Ok(sealed)
    }

    /// Opens any segment, without a comparison with the state.
    pub(super) fn open_any(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let end = length.checked_sub(TRAILER as u64).ok_or_else(|| frame::invalid("it is too short"))?;
        let mut found = [0; TRAILER];
        file.read_exact_at(&mut found, end)?;
        let mut from = found.as_slice();
        let offset = u64::from_be_bytes(frame::read_array(&mut from)?);
        let place = Place { offset, length: u32::from_be_bytes(frame::read_array(&mut from)?) };
        if trailer(place) != found || offset.checked_add(place.length.into()) != Some(end) {
            return Err(frame::invalid("its trailer is damaged"));
        }
        let footer: Footer = postcard::from_bytes(&read(&file, place, FOOTER)?).map_err(frame::codec)?;
        Ok(Self { file, footer })
    }

    pub(in crate::store) fn number(&self) -> u64 {
        self.footer.number
    }

    /// Returns the length of the file in bytes, and its content.
    pub(in crate::store) fn bytes(&self) -> io::Result<(u64, impl Read)> {
        let mut file = &self.file;
        file.rewind()?;
        Ok((file.metadata()?.len(), file))
    }

    /// Returns the description of the segment, if it has this number.
    pub(super) fn segment(&self, number: u64) -> io::Result<&Segment> {
        if self.footer.number == number {
            return Ok(&self.footer.segment);
        }
        Err(frame::invalid(format!("it is segment {}, under another name", self.footer.number)))
    }

    pub(super) fn blocks(&self) -> usize {
        self.footer.blocks.len()
    }

    /// The first event of a block.
    pub(super) fn first_of(&self, block: usize) -> Option<EventId> {
        self.footer.blocks.get(block).map(|block| block.first)
    }

    /// Reads a block, and checks it against the chain.
    pub(super) fn block(&self, number: usize) -> io::Result<Block> {
        let known = self.footer.blocks.get(number).ok_or_else(|| frame::invalid("it has no such block"))?;
        let bytes = usize::try_from(known.bytes).unwrap_or(usize::MAX);
        if bytes > frame::BODY_BYTES_MAX {
            return Err(frame::invalid("a block claims too many bytes"));
        }
        let compressed = read(&self.file, known.place, BLOCK)?;
        // The claimed size would be reserved before a byte of it is read.
        if bytes / LZ4_RATIO_MAX > compressed.len() {
            return Err(frame::invalid("a block claims more bytes than it can hold"));
        }
        let bytes = lz4_flex::block::decompress(&compressed, bytes)
            .map_err(|error| frame::invalid(format!("a block can't be decompressed: {error}")))?;
        let (block, chain) = Block::parse(bytes, known.before)?;
        let next = self.footer.blocks.get(number + 1).map_or(self.footer.segment.chain, |next| next.before);
        if chain != next || block.first() != known.first {
            return Err(frame::invalid("a block doesn't fit into the chain"));
        }
        Ok(block)
    }

    /// Returns the blocks that may contain a key, in order.
    pub(super) fn find(&self, key: u64) -> io::Result<Vec<usize>> {
        let pages = &self.footer.pages;
        // The page before the first that begins with the key, or later, may end with it.
        let from = pages.partition_point(|page| page.first < key).saturating_sub(1);
        let mut found = Vec::new();
        for page in pages.iter().skip(from).take_while(|page| page.first <= key) {
            for (other, block) in read_page(&self.file, page.place)? {
                if other == key {
                    found.push(usize::try_from(block).unwrap_or(usize::MAX));
                }
            }
        }
        Ok(found)
    }

    /// Reads every byte and checks it.
    pub(in crate::store) fn verify(&self) -> io::Result<()> {
        let mut magic = [0; MAGIC.len()];
        self.file.read_exact_at(&mut magic, 0)?;
        let mut end = MAGIC.len() as u64;
        let mut follows = |place: Place| {
            let fits = place.offset == end;
            end = end.saturating_add(place.length.into());
            fits
        };
        let mut whole = magic == *MAGIC;
        let mut blocks = Vec::new();
        for (number, block) in self.footer.blocks.iter().enumerate() {
            whole &= follows(block.place);
            blocks.push(Arc::new(self.block(number)?));
        }
        let mut indexed = Vec::new();
        for page in &self.footer.pages {
            whole &= follows(page.place);
            let entries = read_page(&self.file, page.place)?;
            whole &= entries.first().is_some_and(|(key, _)| *key == page.first);
            indexed.extend(entries);
        }
        let before = blocks.first().map(|block| block.before());
        let frames: u64 = blocks.iter().map(|block| block.frames()).sum();
        whole &= before == Some(self.footer.segment.before) && frames == self.footer.segment.frames;
        if !whole || entries(&blocks)? != indexed {
            return Err(frame::invalid("its parts don't fit together"));
        }
        // The footer begins at the end of the last part: opening it has checked the rest.
        let mut kind = [0];
        self.file.read_exact_at(&mut kind, end)?;
        if kind != [FOOTER] { Err(frame::invalid("there is something before its footer")) } else { Ok(()) }
    }
}

/// Reads one frame at its position, and nothing else.
fn read(file: &File, place: Place, kind: u8) -> io::Result<Vec<u8>> {
    let length = usize::try_from(place.length).unwrap_or(usize::MAX);
    if length > frame::BODY_BYTES_MAX {
        return Err(frame::invalid("a part of it claims too many bytes"));
    }
    let end = place.offset.checked_add(place.length.into());
    if end.is_none_or(|end| file.metadata().is_ok_and(|metadata| end > metadata.len())) {
        return Err(frame::invalid("a part of it reaches beyond its end"));
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, place.offset)?;
    let mut from = bytes.as_slice();
    let found = frame::read(&mut from, kind)?;
    if found.version != VERSION || from.read(&mut [0])? != 0 {
        return Err(frame::invalid("a part of it is of another version or length"));
    }
    Ok(found.body)
}

fn read_page(file: &File, place: Place) -> io::Result<Vec<(u64, u32)>> {
    let body = read(file, place, INDEX)?;
    let (entries, rest) = body.as_chunks::<ENTRY>();
    if !rest.is_empty() {
        return Err(frame::invalid("a page of its index ends in the middle of an entry"));
    }
    let entry = |entry: &[u8; ENTRY]| {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *entry;
        (u64::from_be_bytes([a, b, c, d, e, f, g, h]), u32::from_be_bytes([i, j, k, l]))
    };
    Ok(entries.iter().map(entry).collect())
}
