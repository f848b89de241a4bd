//! Access for fuzz targets: segments of the journal, sealed and open.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use super::block::Block;
use super::files::read_chunks;
use super::read_blocks;
use super::sealed::{self, Sealed};
use ipam_machine::journal::{Chain, JournalHead, Segment};

const BEFORE: Chain = [7; 32];

/// Opens a sealed segment and reads all of it; returns the bytes of its blocks if it is whole.
///
/// # Errors
/// If the segment is damaged.
pub fn sealed(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let sealed = Sealed::open_any(path)?;
    let _ = sealed.first_of(0);
    let read: Vec<io::Result<Block>> =
        (0..sealed.blocks().min(64)).map(|number| sealed.block(number)).collect();
    for key in read.iter().flatten().flat_map(Block::keys) {
        let _ = sealed.find(*key);
    }
    let _ = sealed.find(0);
    sealed.verify()?;
    read.into_iter().map(|block| block.map(|block| block.bytes().into_owned())).collect()
}

/// Writes these bytes as a sealed segment; returns false if they are no valid blocks.
///
/// # Errors
/// If the disk fails.
pub fn seal(path: &Path, bytes: &[Vec<u8>]) -> io::Result<bool> {
    if bytes.is_empty() {
        // An empty segment is never sealed.
        return Ok(false);
    }
    let (mut chain, mut blocks) = (BEFORE, Vec::new());
    for bytes in bytes {
        let Ok((block, after)) = Block::parse(bytes.clone(), chain) else { return Ok(false) };
        blocks.push(Arc::new(block));
        chain = after;
    }
    let frames = blocks.iter().map(|block| block.frames()).sum();
    let segment = Segment { frames, before: BEFORE, chain, ..Segment::default() };
    sealed::write(path, 3, &segment, &blocks)?;
    Ok(true)
}

/// File with valid checksums around arbitrary compressed `blocks`, pages of an index, and a footer.
///
/// # Errors
/// When the disk fails.
pub fn pretend(path: &Path, blocks: &[Vec<u8>], pages: &[Vec<u8>], footer: &[u8]) -> io::Result<()> {
    fs::write(path, sealed::pretended(blocks, pages, footer)?)
}

/// Reads the file of an open segment; returns its blocks if the state vouches for `frames` frames.
///
/// # Errors
/// If the file is damaged.
pub fn open(content: &[u8], frames: u64) -> io::Result<Vec<Vec<u8>>> {
    let mut head = JournalHead::default();
    (head.open.before, head.open.frames) = (BEFORE, frames);
    let blocks = read_chunks(content, &head)?;
    let frames = blocks.iter().map(Block::frames).sum();
    let bytes: Vec<Vec<u8>> = blocks.iter().map(|block| block.bytes().into_owned()).collect();
    head.open.frames = frames;
    for frame in blocks.iter().flat_map(Block::raw) {
        head.open.chain = ipam_machine::journal::link(&before(&head), frame);
    }
    let again = read_blocks(&head, bytes)?;
    Ok(again.iter().map(|block| block.bytes().into_owned()).collect())
}

/// Chain so far, while a head is constructed.
fn before(head: &JournalHead) -> Chain {
    if head.open.chain == Chain::default() { head.open.before } else { head.open.chain }
}

/// The number of keys in the frames of a block, if it is one.
#[must_use]
pub fn block(bytes: &[u8]) -> Option<usize> {
    Block::parse(bytes.to_vec(), BEFORE).ok().map(|(block, _)| block.keys().len())
}

/// Frames of the journal as a block has them.
#[must_use]
pub fn block_of(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut block = Block::new(ipam_machine::EventId::default(), BEFORE);
    for frame in frames {
        block.push(frame);
    }
    block.bytes().into_owned()
}
