//! Journal: every event in log order, as frames of a hash chain, cut into segments at log positions.
//!
//! The state carries the chain's newest value and one row per sealed segment, never the frames: frames are
//! handed to the store once. So digest and snapshot authenticate a history that they don't contain. Events
//! carry no secrets, and no hashes of secrets, because the history stays readable for ever.

use crate::event::{By, Event, EventKind};
use crate::state::table::encode_onto;
use crate::value::event_id::EventId;
use crate::value::row::Chain;
use serde::Deserialize;

/// Version of a frame's encoding; its first byte.
const FRAME_VERSION: u8 = 1;
/// Room for most events, and for the origin that a frame has once.
const EVENT_BYTES_USUAL: usize = 128;

/// Events of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    pub(crate) revision: u64,
    pub(crate) wall_ms: u64,
    pub(crate) by: By,
    /// Number of leading events that were due, and not caused by the caller.
    pub(crate) due: u32,
    pub(crate) whats: Vec<EventKind>,
}

impl Happened {
    /// Encodes some of the events as one frame; `first_number` is the number of the first event.
    pub(crate) fn encode(&self, first_number: u32, whats: &[EventKind]) -> Vec<u8> {
        let Self { revision, wall_ms, by, due, whats: _ } = self;
        // The fields of a [`Frame`], which are encoded like the struct.
        let frame = (revision, first_number, wall_ms, by, due, whats);
        let mut bytes = Vec::with_capacity((whats.len() + 1) * EVENT_BYTES_USUAL);
        bytes.push(FRAME_VERSION);
        encode_onto(bytes, &frame)
    }

    /// Converts the changes to events.
    #[must_use]
    pub fn into_events(self) -> Vec<Event> {
        let Self { revision, wall_ms, by, due, whats } = self;
        Frame { revision, first_number: 0, wall_ms, by, due, whats }.into_events()
    }
}

/// Events of one command in the journal: all of them, or as many as one frame may have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Frame {
    revision: u64,
    first_number: u32,
    wall_ms: u64,
    by: By,
    due: u32,
    whats: Vec<EventKind>,
}

impl Frame {
    /// Reads a frame.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, body) = bytes.split_first()?;
        (*version == FRAME_VERSION).then(|| postcard::from_bytes(body).ok()).flatten()
    }

    #[must_use]
    pub fn first(&self) -> EventId {
        EventId { revision: self.revision, number: self.first_number }
    }

    /// Events, in order.
    #[must_use]
    pub fn whats(&self) -> &[EventKind] {
        &self.whats
    }

    /// Principal of the request.
    #[must_use]
    pub fn by(&self) -> &By {
        &self.by
    }

    #[must_use]
    pub fn into_events(self) -> Vec<Event> {
        let Self { revision, first_number, wall_ms, by, due, whats } = self;
        let time = (first_number < due).then(|| by.of_time());
        let event = |(number, kind)| {
            let by = time.as_ref().filter(|_| number < due).unwrap_or(&by).clone();
            Event { revision, number, wall_ms, by, kind }
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
