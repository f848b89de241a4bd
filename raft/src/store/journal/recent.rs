//! Newest part of the journal, in memory: the open segment, and sealed ones that aren't on disk yet.

use std::io;
use std::sync::Arc;

use super::block::Block;
use crate::store::directory::frame;
use ipam_machine::Journaled;
use ipam_machine::journal::{JournalHead, Segment};

/// A segment that waits to be written.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) number: u64,
    pub(super) segment: Segment,
    pub(super) blocks: Vec<Arc<Block>>,
}

/// The part in memory. A clone is cheap, and not touched by later events.
#[derive(Debug, Clone)]
pub(crate) struct Recent {
    pub(super) sealed: Vec<Waiting>,
    /// The number of the open segment.
    pub(super) number: u64,
    pub(super) open: Vec<Arc<Block>>,
    /// Number that increases when a snapshot replaces the whole journal.
    pub(super) install_count: u64,
}

impl Recent {
    /// The journal of a state that holds these blocks in its open segment.
    pub(crate) fn new(head: &JournalHead, open: Vec<Arc<Block>>) -> Self {
        Self { sealed: Vec::new(), number: head.segment, open, install_count: 0 }
    }

    /// Continues the install count of `old`, which this journal replaces.
    pub(crate) fn after(self, old: &Self) -> Self {
        Self { install_count: old.install_count.wrapping_add(1), ..self }
    }

    /// Drops the parts that are on disk.
    pub(crate) fn forget(&mut self, through: u64, install_count: u64) {
        if install_count == self.install_count {
            self.sealed.retain(|waiting| waiting.number > through);
        }
    }

    /// The blocks of the open segment.
    pub(crate) fn open(&self) -> &[Arc<Block>] {
        &self.open
    }

    /// Adds the journal output of the state.
    pub(crate) fn take(&mut self, journaled: Vec<Journaled>) {
        for journaled in journaled {
            match journaled {
                Journaled::Frame { bytes, first, before } => {
                    if self.open.last().is_none_or(|block| block.is_full()) {
                        self.open.push(Arc::new(Block::new(first, before)));
                    }
                    if let Some(block) = self.open.last_mut() {
                        Arc::make_mut(block).push(&bytes);
                    }
                }
                Journaled::Sealed { number, segment } => {
                    let blocks = std::mem::take(&mut self.open);
                    self.sealed.push(Waiting { number, segment, blocks });
                    self.number = number + 1;
                }
            }
        }
    }
}

/// The blocks of an open segment from their bytes, as a snapshot has them.
pub(crate) fn read_blocks(head: &JournalHead, bytes: Vec<Vec<u8>>) -> io::Result<Vec<Arc<Block>>> {
    let mut chain = head.open.before;
    let mut blocks = Vec::with_capacity(bytes.len());
    for bytes in bytes {
        let (block, after) = Block::parse(bytes, chain)?;
        blocks.push(block);
        chain = after;
    }
    rebuild(head, blocks.iter().flat_map(Block::raw))
}

/// Blocks of an open segment from its frames, checked against the state. Frames after those of the state are
/// dropped: replaying the log adds them again.
pub(super) fn rebuild<'a>(
    head: &JournalHead,
    frames: impl IntoIterator<Item = &'a [u8]>,
) -> io::Result<Vec<Arc<Block>>> {
    use ipam_machine::journal::{Frame, link};
    let mut recent = Recent::new(head, Vec::new());
    let mut chain = head.open.before;
    let mut count = 0;
    for bytes in frames.into_iter().take(usize::try_from(head.open.frames).unwrap_or(usize::MAX)) {
        let first = Frame::decode(bytes).map(|frame| frame.first());
        let first = first.ok_or_else(|| frame::invalid("a frame of the journal can't be read"))?;
        recent.take(vec![Journaled::Frame { bytes: bytes.to_vec(), first, before: chain }]);
        chain = link(&chain, bytes);
        count += 1;
    }
    if count != head.open.frames || chain != head.open.chain {
        return Err(frame::invalid("the journal is not what the state vouches for"));
    }
    Ok(recent.open)
}
