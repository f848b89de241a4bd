//! Reading the journal, a page at a time, with bounded work.

use std::io;
use std::sync::Arc;

use ipam_api::limits::{EVENT_PAGE_BLOCKS_MAX, EVENT_PAGE_SEGMENTS_MAX};

use super::block::Block;
use super::files::JournalFiles;
use super::query::{EventFilter, EventPage, EventQuery, JournalError};
use super::source::{JournalSource, View};
use ipam_machine::journal::Segment;
use ipam_machine::{Event, EventId};

/// Journal, for readers.
#[derive(Clone)]
pub(crate) struct Journal {
    source: Arc<dyn JournalSource>,
    files: Arc<JournalFiles>,
}

/// A segment, in memory or on disk.
struct Piece<'a> {
    number: u64,
    segment: &'a Segment,
    blocks: Option<&'a [Arc<Block>]>,
}

/// Blocks of a segment that may contain matching events, in the order of the page.
type Blocks<'a> = Box<dyn Iterator<Item = io::Result<Arc<Block>>> + 'a>;

impl Journal {
    pub(crate) fn new(source: Arc<dyn JournalSource>, files: Arc<JournalFiles>) -> Self {
        Self { source, files }
    }

    /// Files of the journal, for fetching and serving segments.
    pub(crate) fn files(&self) -> &JournalFiles {
        &self.files
    }

    /// Sealed segments that this member should have and hasn't.
    pub(crate) fn missing(&self) -> Vec<(u64, Segment)> {
        let View { segments, recent, .. } = self.source.view();
        let in_memory = |number| recent.sealed.iter().any(|waiting| waiting.number == number);
        let missing = segments.iter().filter(|(number, _)| !self.files.has(*number) && !in_memory(*number));
        missing.map(|(number, segment)| (number, segment.clone())).collect()
    }

    /// Reads a page. Blocks, so it must not be called on async threads.
    pub(crate) fn page(&self, query: &EventQuery) -> Result<EventPage, JournalError> {
        let view = self.source.view();
        let place =
            query.after.unwrap_or(if query.reverse { EventId::end_of(u64::MAX) } else { view.head.trimmed });
        if !query.reverse && place < view.head.trimmed {
            return Err(JournalError::Compacted { oldest: view.oldest });
        }
        let mut walk = Walk { query, place, events: Vec::new(), seen: None, blocks: 0, segments: 0 };
        let mut pieces: Vec<Piece<'_>> = view.pieces().filter(|piece| walk.wants(piece.segment)).collect();
        if query.reverse {
            pieces.reverse();
        }
        let mut ended = true;
        for piece in &pieces {
            if !self.read(piece, &mut walk)? {
                ended = false;
                break;
            }
        }
        let next = if ended { None } else { walk.seen };
        Ok(EventPage {
            events: walk.events,
            next,
            oldest: (!view.segments.is_empty() || view.head.open.frames > 0).then_some(view.oldest),
            complete_since_ms: (view.head.trimmed != EventId::default()).then_some(view.head.trimmed_wall_ms),
            revision: view.revision,
        })
    }

    /// Reads a segment; returns false when the page is full.
    fn read(&self, piece: &Piece<'_>, walk: &mut Walk<'_>) -> Result<bool, JournalError> {
        let Segment { first, last, .. } = *piece.segment;
        walk.segments += 1;
        if walk.segments > EVENT_PAGE_SEGMENTS_MAX {
            return Ok(false);
        }
        let damaged = |what: io::Error| {
            // An error of the system doesn't prove damage, so the last copy isn't discarded for it.
            use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
            if matches!(what.kind(), InvalidData | UnexpectedEof | NotFound) {
                tracing::error!(segment = piece.number, %what, "the journal is damaged; another member's copy replaces it");
                self.files.put_aside(piece.number);
                return JournalError::Damaged { from: first, until: last, what };
            }
            tracing::warn!(segment = piece.number, %what, "a segment of the journal can't be read");
            JournalError::Unreadable { from: first, until: last, what }
        };
        if piece.blocks.is_none() && !self.files.has(piece.number) {
            return Err(JournalError::Missing { from: first, until: last });
        }
        for block in piece.blocks(walk, &self.files).map_err(damaged)? {
            if !block.and_then(|block| walk.take(&block)).map_err(damaged)? {
                return Ok(false);
            }
        }
        walk.seen = Some(if walk.query.reverse { first } else { last });
        Ok(true)
    }
}

impl View {
    /// All segments, the open one last.
    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let sealed = self.segments.iter().map(|(number, segment)| {
            let waiting = self.recent.sealed.iter().find(|waiting| waiting.number == number);
            Piece { number, segment, blocks: waiting.map(|waiting| waiting.blocks.as_slice()) }
        });
        let open = Piece {
            number: self.head.segment,
            segment: &self.head.open,
            blocks: Some(self.recent.open.as_slice()),
        };
        sealed.chain((self.head.open.frames > 0).then_some(open))
    }
}

impl<'a> Piece<'a> {
    fn blocks(&self, walk: &Walk<'_>, files: &JournalFiles) -> io::Result<Blocks<'a>> {
        let key = walk.query.filter.key();
        let Some(blocks) = self.blocks else {
            let sealed = files.sealed(self.number, self.segment)?;
            let mut numbers = match key {
                Some(key) => sealed.find(key)?,
                None => (0..sealed.blocks()).collect(),
            };
            numbers.retain(|number| walk.reaches(sealed.first_of(*number), sealed.first_of(number + 1)));
            return Ok(Box::new(
                walk.in_order(numbers).into_iter().map(move |number| sealed.block(number).map(Arc::new)),
            ));
        };
        let may_hold = |(number, block): &(usize, &Arc<Block>)| {
            walk.reaches(Some(block.first()), blocks.get(number + 1).map(|next| next.first()))
                // A block that still grows isn't worth an index.
                && key.is_none_or(|key| !block.is_full() || block.keys().binary_search(&key).is_ok())
        };
        let found = blocks.iter().enumerate().filter(may_hold).map(|(_, block)| Ok(Arc::clone(block)));
        Ok(Box::new(walk.in_order(found.collect()).into_iter()))
    }
}

/// Progress of reading a page.
struct Walk<'q> {
    query: &'q EventQuery,
    place: EventId,
    events: Vec<Event>,
    /// The last event that was examined, matching or not.
    seen: Option<EventId>,
    blocks: usize,
    segments: usize,
}

impl Walk<'_> {
    /// Returns true if a segment lies after the position, and may contain matching events.
    fn wants(&self, segment: &Segment) -> bool {
        let EventFilter { since_ms, until_ms, .. } = &self.query.filter;
        self.reaches(Some(segment.first), None)
            && (self.query.reverse || segment.last > self.place)
            && since_ms.is_none_or(|since_ms| segment.until_wall_ms >= since_ms)
            && until_ms.is_none_or(|until_ms| segment.from_wall_ms <= until_ms)
    }

    /// Returns true if events between these two, the second excluded, may lie after the position.
    fn reaches(&self, first: Option<EventId>, next: Option<EventId>) -> bool {
        if self.query.reverse {
            first.is_none_or(|first| first < self.place)
        } else {
            // The first event of the next block directly follows the last event of this one.
            next.is_none_or(|next| next > self.place)
        }
    }

    fn in_order<T>(&self, mut items: Vec<T>) -> Vec<T> {
        if self.query.reverse {
            items.reverse();
        }
        items
    }

    /// Adds the matching events of a block; returns false when the page is full.
    fn take(&mut self, block: &Block) -> io::Result<bool> {
        if self.blocks >= EVENT_PAGE_BLOCKS_MAX {
            return Ok(false);
        }
        self.blocks += 1;
        let mut events = Vec::new();
        for frame in block.decoded() {
            events.extend(frame?.into_events());
        }
        for event in self.in_order(events) {
            let id = event.id();
            let behind = if self.query.reverse { id < self.place } else { id > self.place };
            if !behind {
                continue;
            }
            if self.events.len() >= self.query.limit {
                return Ok(false);
            }
            self.seen = Some(id);
            if self.query.filter.wants(&event) {
                self.events.push(event);
            }
        }
        Ok(true)
    }
}
