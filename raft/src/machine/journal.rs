//! The journal: every event in log order, as frames in a hash chain, cut into segments at points that follow
//! from the log alone.
//!
//! The state carries the chain's newest value and one row per sealed segment, never the bytes: they are handed
//! to the store once. So digest and snapshot vouch for a history that they don't hold.
//! Events carry no secrets, and no hashes of secrets: whoever reads history reads it for ever.

use std::fmt;
use std::str::FromStr;

use ipam_api::limits::{
    JOURNAL_FRAME_BYTES_MAX, JOURNAL_FRAME_EVENTS_MAX, JOURNAL_SEGMENT_AGE_MS_MAX, JOURNAL_SEGMENT_BYTES_MAX,
};
use ipam_api::{Code, Problem};
use serde::{Deserialize, Serialize};

use super::At;
use super::command::{Answer, Cause, Origin, Refusal, Text, Via};
use super::event::{Event, What};
use super::state::State;
use super::step::Step;

/// Version of a frame's encoding; its first byte.
const FRAME_VERSION: u8 = 1;

/// A value of the hash chain: BLAKE3 of the value before and the frame.
pub type Chain = [u8; 32];

/// Names an event: the revision of its command, and its place in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId {
    /// The revision after the command.
    pub revision: u64,
    /// Its place among the command's events, from 0.
    pub number: u32,
}

impl EventId {
    /// Behind all events of a revision.
    #[must_use]
    pub fn end_of(revision: u64) -> Self {
        Self { revision, number: u32::MAX }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            u32::MAX => write!(f, "{}", self.revision),
            number => write!(f, "{}.{number}", self.revision),
        }
    }
}

impl FromStr for EventId {
    type Err = Problem;

    /// `REVISION.NUMBER`, or `REVISION` for the place behind all of its events.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let bad =
            || Problem::new(Code::InvalidCursor, "a place among the events is REVISION or REVISION.NUMBER");
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (revision, number) = text.split_once('.').map_or((text, None), |(one, two)| (one, Some(two)));
        if !digits(revision) || !number.is_none_or(digits) {
            return Err(bad());
        }
        Ok(Self {
            revision: revision.parse().map_err(|_| bad())?,
            number: number.map_or(Ok(u32::MAX), str::parse).map_err(|_| bad())?,
        })
    }
}

/// Who asked for what happened, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    /// Who.
    pub principal: Text,
    /// Through which door.
    pub via: Via,
    /// Names the request in logs, events and answers.
    pub request_id: Text,
    /// Why, in the asker's words.
    pub comment: Option<Text>,
}

impl By {
    pub(super) fn of(origin: &Origin) -> Self {
        Self {
            principal: Text::clone(&origin.principal),
            via: origin.via,
            request_id: Text::clone(&origin.request_id),
            comment: origin.comment.clone(),
        }
    }

    /// What only time has brought about, though it came along with somebody's command.
    fn of_time(&self) -> Self {
        Self {
            principal: Text::identifier("task/expire"),
            via: Via::Task,
            request_id: Text::clone(&self.request_id),
            comment: None,
        }
    }
}

/// What one command has brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    pub(super) revision: u64,
    pub(super) wall_ms: u64,
    pub(super) by: By,
    /// So many of the first were due, and not the asker's doing.
    pub(super) due: u32,
    pub(super) whats: Vec<What>,
}

impl Happened {
    /// The same as events.
    #[must_use]
    pub fn into_events(self) -> Vec<Event> {
        let Self { revision, wall_ms, by, due, whats } = self;
        Frame { revision, first_number: 0, wall_ms, by, due, whats }.into_events()
    }
}

/// Events of one command, as the journal keeps them: all, or so many that a frame isn't too long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Frame {
    revision: u64,
    first_number: u32,
    wall_ms: u64,
    by: By,
    due: u32,
    whats: Vec<What>,
}

/// A [`Frame`] being written.
#[derive(Serialize)]
struct FrameRef<'a> {
    revision: u64,
    first_number: u32,
    wall_ms: u64,
    by: &'a By,
    due: u32,
    whats: &'a [What],
}

impl Frame {
    /// Reads a frame.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, body) = bytes.split_first()?;
        (*version == FRAME_VERSION).then(|| postcard::from_bytes(body).ok()).flatten()
    }

    /// Its first event.
    #[must_use]
    pub fn first(&self) -> EventId {
        EventId { revision: self.revision, number: self.first_number }
    }

    /// What happened, in order.
    #[must_use]
    pub fn whats(&self) -> &[What] {
        &self.whats
    }

    /// Who asked.
    #[must_use]
    pub fn by(&self) -> &By {
        &self.by
    }

    /// Its events.
    #[must_use]
    pub fn into_events(self) -> Vec<Event> {
        let Self { revision, first_number, wall_ms, by, due, whats } = self;
        let time = (first_number < due).then(|| by.of_time());
        let event = |(number, what)| {
            let by = time.as_ref().filter(|_| number < due).unwrap_or(&by).clone();
            Event { revision, number, wall_ms, by, what }
        };
        (first_number..=u32::MAX).zip(whats).map(event).collect()
    }
}

/// The chain's value after one more frame.
#[must_use]
pub fn link(chain: &Chain, frame: &[u8]) -> Chain {
    let mut hasher = blake3::Hasher::new();
    hasher.update(chain);
    hasher.update(frame);
    *hasher.finalize().as_bytes()
}

/// How far the journal is: the open segment, and what was before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalHead {
    /// The number of the open segment, from 1.
    pub segment: u64,
    /// What the open segment holds so far; its ends are the default while it is empty.
    pub open: Segment,
    /// The log time of the open segment's first frame.
    pub opened_log_time_ms: u64,
    /// The newest event that was given up; the default if none was.
    pub trimmed: EventId,
    /// The newest wall time among what was given up.
    pub trimmed_wall_ms: u64,
}

impl Default for JournalHead {
    fn default() -> Self {
        let (trimmed, open) = (EventId::default(), Segment::default());
        Self { segment: 1, open, opened_log_time_ms: 0, trimmed, trimmed_wall_ms: 0 }
    }
}

impl JournalHead {
    /// Whether the open segment is to be sealed for its age at this log time.
    #[must_use]
    pub fn is_old(&self, log_time_ms: u64) -> bool {
        let age_ms = log_time_ms.saturating_sub(self.opened_log_time_ms);
        self.open.frames > 0 && age_ms >= JOURNAL_SEGMENT_AGE_MS_MAX
    }
}

/// A piece of the journal: what it holds, and the hash that proves it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its first event.
    pub first: EventId,
    /// Its last event.
    pub last: EventId,
    /// Frames.
    pub frames: u64,
    /// Events.
    pub events: u64,
    /// Bytes of its frames.
    pub bytes: u64,
    /// The lowest wall time in it.
    pub from_wall_ms: u64,
    /// The highest wall time in it.
    pub until_wall_ms: u64,
    /// The chain before its first frame.
    pub before: Chain,
    /// The chain after its last frame.
    pub chain: Chain,
    /// The log time of its last frame: its age is told by that, since wall clocks may be wrong.
    pub until_log_time_ms: u64,
}

/// What the store has to do with the journal, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Journaled {
    /// Append this frame to the open segment.
    Frame {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its first event.
        first: EventId,
        /// The chain before it.
        before: Chain,
    },
    /// Seal the open segment, and begin the next.
    Sealed {
        /// Its number.
        number: u64,
        /// What it holds.
        segment: Segment,
    },
}

impl State {
    /// Writes down what has happened.
    pub(super) fn write_down(&mut self, at: At, happened: &Happened) {
        let mut first_number = 0_u32;
        for whats in happened.whats.chunks(JOURNAL_FRAME_EVENTS_MAX) {
            self.write_frames(at, happened, first_number, whats);
            first_number = first_number.saturating_add(u32::try_from(whats.len()).unwrap_or(u32::MAX));
        }
    }

    /// Writes events down as one frame, or by halves as several if that would be too long.
    fn write_frames(&mut self, at: At, happened: &Happened, first_number: u32, whats: &[What]) {
        let frame = FrameRef {
            revision: happened.revision,
            first_number,
            wall_ms: at.wall_ms,
            by: &happened.by,
            due: happened.due,
            whats,
        };
        // Like rows, frames consist of what postcard can't refuse.
        let bytes = postcard::to_extend(&frame, vec![FRAME_VERSION]).unwrap_or_default();
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
        self.segments.put(number, segment.clone(), &mut self.ledger);
        self.ledger.journaled.push(Journaled::Sealed { number, segment });
    }

    /// What the store has to do with the journal since the last call.
    pub fn take_journaled(&mut self) -> Vec<Journaled> {
        std::mem::take(&mut self.ledger.journaled)
    }

    /// The number of the oldest segment that is kept.
    #[must_use]
    pub fn oldest_segment(&self) -> u64 {
        self.segments.first().map_or(self.header.journal.segment, |(number, _)| number)
    }

    /// The newest event there was; the default if there was none.
    #[must_use]
    pub fn newest_event(&self) -> EventId {
        let JournalHead { open, trimmed, .. } = &self.header.journal;
        match self.segments.last() {
            _ if open.frames > 0 => open.last,
            Some((_, segment)) => segment.last,
            None => *trimmed,
        }
    }

    /// The oldest event that is kept; the place behind what was given up if there is none.
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
    /// Seals the open segment if it is old enough. That is no event, else the next segment would never be empty,
    /// and a quiet journal would grow by a segment a day.
    pub(super) fn seal_journal(&mut self) -> Answer {
        let JournalHead { segment, .. } = self.state.header.journal;
        let old = self.state.header.journal.is_old(self.state.log_time_ms());
        if old {
            self.state.seal_segment();
        }
        Answer::Sealed { segment: old.then_some(segment) }
    }

    /// Gives up the oldest segments. What is gone already is no reason to refuse.
    pub(super) fn trim_journal(&mut self, through: u64) -> Result<Answer, Refusal> {
        let open = self.state.header.journal.segment;
        if through >= open {
            return Err(Cause::SegmentNotSealed { segment: through, newest: open - 1 }.into());
        }
        let gone: Vec<u64> = self
            .state
            .segments
            .iter()
            .map(|(number, _)| number)
            .take_while(|number| *number <= through)
            .collect();
        let (mut events, mut bytes) = (0, 0);
        for number in &gone {
            let state = &mut *self.state;
            if let Some(segment) = state.segments.remove(*number, &mut state.ledger) {
                events += segment.events;
                bytes += segment.bytes;
                let head = &mut state.header.journal;
                head.trimmed = segment.last;
                head.trimmed_wall_ms = head.trimmed_wall_ms.max(segment.until_wall_ms);
            }
        }
        let segments = gone.len() as u64;
        if segments > 0 {
            self.state.tick();
            self.emit(What::JournalTrimmed { through, segments, events, bytes });
        }
        Ok(Answer::Trimmed { segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["0", "7", "1099511627776.0", "5.12"] {
            assert_eq!(text.parse::<EventId>().unwrap().to_string(), text);
        }
        for text in
            ["", ".", "1.", ".1", "+1", "1.+2", "1.2.3", "-1", " 1", "99999999999999999999", "1.4294967296"]
        {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
        assert!("5".parse::<EventId>().unwrap() > "5.7".parse().unwrap(), "behind all of its events");
    }
}
