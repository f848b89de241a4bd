//! Queries of the journal, and their answers.

use std::io;
use std::net::IpAddr;

use ipam_api::name::Name;
use ipam_api::resource::EndpointKey;
use ipam_api::{Code, Problem};

use super::block::key;
use ipam_machine::{Event, EventId};

/// A filter of events; absent fields match all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// First words of event names, such as `pool`; all if empty.
    pub kinds: Vec<String>,
    /// Pool of the event or of its address.
    pub pool: Option<Name>,
    /// Network of the event or of its address.
    pub network: Option<Name>,
    /// The address that they are about.
    pub address: Option<IpAddr>,
    /// The endpoint that they are about.
    pub endpoint: Option<EndpointKey>,
    /// Principal of the request.
    pub principal: Option<String>,
    /// Not older than this wall time, in milliseconds.
    pub since_ms: Option<u64>,
    /// Not newer than this wall time, in milliseconds.
    pub until_ms: Option<u64>,
}

impl EventFilter {
    /// True if an event is wanted.
    #[must_use]
    pub fn wants(&self, event: &Event) -> bool {
        fn fits<T: PartialEq + ?Sized>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none_or(|wanted| found == Some(wanted))
        }
        let what = &event.kind;
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == what.kind()))
            && fits(self.address.as_ref(), what.address().as_ref())
            && fits(self.pool.as_ref(), what.pool().as_ref())
            && fits(self.network.as_ref(), what.network().as_ref())
            && fits(self.endpoint.as_ref(), what.endpoint())
            && fits(self.principal.as_deref(), Some(&event.by.principal))
            && self.since_ms.is_none_or(|since_ms| event.wall_ms >= since_ms)
            && self.until_ms.is_none_or(|until_ms| event.wall_ms <= until_ms)
    }

    /// The number under which the index has what is rarest among what is wanted.
    pub(super) fn key(&self) -> Option<u64> {
        if let Some(address) = self.address {
            return Some(key("address", &address.to_string()));
        }
        if let Some(endpoint) = &self.endpoint {
            return Some(key("endpoint", &endpoint.to_string()));
        }
        let pool = self.pool.as_ref().map(|pool| key("pool", pool.as_str()));
        pool.or_else(|| self.principal.as_ref().map(|principal| key("principal", principal)))
    }
}

/// A query for a page of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Position after which (before which, if reversed) the page begins. By default the oldest (newest) end.
    pub after: Option<EventId>,
    /// The newest first.
    pub reverse: bool,
    /// Events of the page at most.
    pub limit: usize,
    /// The wanted events.
    pub filter: EventFilter,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// The place to go on from, if there may be more. A page may be short, or empty, and yet not the last.
    pub next: Option<EventId>,
    /// The oldest event that is kept, if any is.
    pub oldest: Option<EventId>,
    /// Wall time from which on all events are kept, in milliseconds; none if none were trimmed.
    pub complete_since_ms: Option<u64>,
    /// The revision up to which the page knows everything.
    pub revision: u64,
}

/// The reason for which the journal doesn't answer.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The wanted events are no longer kept.
    #[error("events before {oldest} are no longer kept")]
    Compacted {
        /// The oldest event that is.
        oldest: EventId,
    },
    /// This member has it not yet.
    #[error(
        "this member is still fetching events {} to {} from the others; ask another member, or repeat", .from, .until
    )]
    Missing {
        /// From here.
        from: EventId,
        /// To here.
        until: EventId,
    },
    /// This member's copy isn't as it was written.
    #[error(
        "this member's copy of events {from} to {until} is damaged ({what}) and is being replaced; ask another"
    )]
    Damaged {
        /// From here.
        from: EventId,
        /// To here.
        until: EventId,
        /// The sign of the damage.
        what: io::Error,
    },
    /// The system refuses to read this member's copy.
    #[error("this member can't read events {from} to {until} ({what}); ask another member, or repeat")]
    Unreadable {
        /// From here.
        from: EventId,
        /// To here.
        until: EventId,
        /// Error of the system.
        what: io::Error,
    },
    /// This member stops.
    #[error("this member is stopping")]
    Stopped,
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        let detail = error.to_string();
        match error {
            JournalError::Compacted { oldest } => Self::new(Code::RevisionCompacted, detail)
                .help(format!("Begin again from a list, or with after={}.", before(oldest))),
            JournalError::Missing { .. } | JournalError::Damaged { .. } | JournalError::Unreadable { .. } => {
                Self::new(Code::RevisionNotReached, detail)
            }
            JournalError::Stopped => Self::new(Code::ShuttingDown, detail),
        }
    }
}

/// The place just before an event.
fn before(id: EventId) -> EventId {
    match id.number {
        0 => EventId::end_of(id.revision.saturating_sub(1)),
        number => EventId { number: number - 1, ..id },
    }
}
