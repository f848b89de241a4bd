//! Journal: events as frames of a hash chain.

mod record;

pub use self::record::*;
pub use crate::event::By;
pub use crate::value::event_id::EventId;
pub use crate::value::row::{Chain, JournalHead, Journaled, Segment};
