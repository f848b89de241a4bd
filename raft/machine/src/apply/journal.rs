//! Journal writer: events of a command as frames, and sealing and trimming of segments.

use crate::value::row::Segment;
use ipam_api::limits::{JOURNAL_FRAME_BYTES_MAX, JOURNAL_FRAME_EVENTS_MAX, JOURNAL_SEGMENT_BYTES_MAX};

use crate::apply::step::Step;
use crate::command::Answer;
use crate::event::EventKind;
use crate::journal::{Happened, link};
use crate::state::State;
use crate::value::event_id::EventId;
use crate::value::row::{JournalHead, Journaled};
use crate::value::{At, Cause, Refusal, refuse_if};

impl State {
    /// Writes the events of a command to the journal.
    pub(crate) fn write_down(&mut self, at: At, happened: &Happened) {
        let mut first_number = 0_u32;
        for whats in happened.whats.chunks(JOURNAL_FRAME_EVENTS_MAX) {
            self.write_frames(at, happened, first_number, whats);
            first_number = first_number.saturating_add(u32::try_from(whats.len()).unwrap_or(u32::MAX));
        }
    }

    /// Writes events as one frame, or as several halved frames if one frame would be too long.
    fn write_frames(&mut self, at: At, happened: &Happened, first_number: u32, whats: &[EventKind]) {
        let bytes = happened.encode(first_number, whats);
        if bytes.len() > JOURNAL_FRAME_BYTES_MAX && whats.len() > 1 {
            let (one, other) = whats.split_at(whats.len() / 2);
            self.write_frames(at, happened, first_number, one);
            let first_of_other = u32::try_from(one.len()).unwrap_or(u32::MAX);
            self.write_frames(at, happened, first_number.saturating_add(first_of_other), other);
            return;
        }
        let events = u32::try_from(whats.len()).unwrap_or(u32::MAX);
        self.append_frame(at, bytes, EventId { revision: happened.revision, number: first_number }, events);
    }

    fn append_frame(&mut self, at: At, bytes: Vec<u8>, first: EventId, events: u32) {
        if self.header.journal.is_old(self.header.log_time_ms) {
            self.seal_segment();
        }
        let head = &mut self.header.journal;
        let open = &mut head.open;
        if open.frames == 0 {
            head.opened_log_time_ms = self.header.log_time_ms;
            open.first = first;
            (open.from_wall_ms, open.until_wall_ms) = (at.wall_ms, at.wall_ms);
        }
        open.last = EventId { number: first.number.saturating_add(events).saturating_sub(1), ..first };
        open.frames += 1;
        open.events += u64::from(events);
        open.bytes += bytes.len() as u64;
        open.from_wall_ms = open.from_wall_ms.min(at.wall_ms);
        open.until_wall_ms = open.until_wall_ms.max(at.wall_ms);
        open.until_log_time_ms = self.header.log_time_ms;
        let before = open.chain;
        open.chain = link(&before, &bytes);
        let full = open.bytes >= JOURNAL_SEGMENT_BYTES_MAX;
        self.ledger.journaled.push(Journaled::Frame { bytes, first, before });
        if full {
            self.seal_segment();
        }
    }

    fn seal_segment(&mut self) {
        let head = &mut self.header.journal;
        let chain = head.open.chain;
        let next = Segment { before: chain, chain, ..Segment::default() };
        let segment = std::mem::replace(&mut head.open, next);
        let number = head.segment;
        head.segment += 1;
        self.write(number, segment.clone());
        self.ledger.journaled.push(Journaled::Sealed { number, segment });
    }

    /// Takes the journal operations since the last call, which the store carries out.
    pub fn take_journaled(&mut self) -> Vec<Journaled> {
        std::mem::take(&mut self.ledger.journaled)
    }

    /// The number of the oldest segment that is kept.
    #[must_use]
    pub fn oldest_segment(&self) -> u64 {
        self.segments.first().map_or(self.header.journal.segment, |(number, _)| number)
    }

    /// Returns the id of the newest event, or the default if there was none.
    #[must_use]
    pub fn newest_event(&self) -> EventId {
        let JournalHead { open, trimmed, .. } = &self.header.journal;
        match self.segments.last() {
            _ if open.frames > 0 => open.last,
            Some((_, segment)) => segment.last,
            None => *trimmed,
        }
    }

    /// Oldest kept event; with an empty journal the position after the trimmed part.
    #[must_use]
    pub fn oldest_event(&self) -> EventId {
        let open = &self.header.journal.open;
        match self.segments.first() {
            Some((_, segment)) => segment.first,
            None if open.frames > 0 => open.first,
            None => self.header.journal.trimmed,
        }
    }
}

impl Step<'_> {
    /// Seals the open segment if it is old enough. Sealing is no event: else the next segment would never be
    /// empty, and an idle journal would grow by a segment a day.
    pub(crate) fn seal_journal(&mut self) -> Answer {
        let JournalHead { segment, .. } = self.state.header.journal;
        let old = self.state.header.journal.is_old(self.state.log_time_ms());
        if old {
            self.state.seal_segment();
        }
        Answer::Sealed { segment: old.then_some(segment) }
    }

    /// Trims the oldest segments. A segment that is trimmed already is no error.
    pub(crate) fn trim_journal(&mut self, through: u64) -> Result<Answer, Refusal> {
        let open = self.state.header.journal.segment;
        refuse_if(through >= open, || Cause::SegmentNotSealed { segment: through, newest: open - 1 })?;
        let gone: Vec<u64> = self
            .state
            .segments
            .iter()
            .map(|(number, _)| number)
            .take_while(|number| *number <= through)
            .collect();
        let (mut events, mut bytes) = (0, 0);
        for number in &gone {
            let segment = self.state.erase_named::<Segment>(*number);
            events += segment.events;
            bytes += segment.bytes;
            let head = &mut self.state.header.journal;
            head.trimmed = segment.last;
            head.trimmed_wall_ms = head.trimmed_wall_ms.max(segment.until_wall_ms);
        }
        let segments = gone.len() as u64;
        if segments > 0 {
            self.state.tick();
            self.emit(EventKind::JournalTrimmed { through, segments, events, bytes });
        }
        Ok(Answer::Trimmed { segments })
    }
}
