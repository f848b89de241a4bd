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
    /// Address of the event.
    pub address: Option<IpAddr>,
    /// Endpoint of the event.
    pub endpoint: Option<EndpointKey>,
    /// Principal of the request.
    pub principal: Option<String>,
    /// Earliest wall time of an event, in milliseconds.
    pub since_ms: Option<u64>,
    /// Latest wall time of an event, in milliseconds.
    pub until_ms: Option<u64>,
}

impl EventFilter {
    /// Returns true if an event matches the filter.
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

    /// Returns the index key of the most selective field of the filter, if any field is indexed.
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
    /// True for the newest events first.
    pub reverse: bool,
    /// Maximum number of events in the page.
    pub limit: usize,
    /// Filter of the events.
    pub filter: EventFilter,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Position from which the next page continues, if there may be more events. A page may be short or even
    /// empty without being the last one.
    pub next: Option<EventId>,
    /// The oldest event that is still kept, if any.
    pub oldest: Option<EventId>,
    /// Wall time from which on all events are kept, in milliseconds; none if none were trimmed.
    pub complete_since_ms: Option<u64>,
    /// Revision up to which the page is complete.
    pub revision: u64,
}

/// Reason why the journal doesn't answer a query.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The requested events are no longer kept.
    #[error("events before {oldest} are no longer kept")]
    Compacted {
        /// The oldest event that is still kept.
        oldest: EventId,
    },
    /// This member doesn't have the segment yet.
    #[error(
        "this member is still fetching events {} to {} from the others; ask another member, or repeat", .from, .until
    )]
    Missing {
        /// First event of the segment.
        from: EventId,
        /// Last event of the segment.
        until: EventId,
    },
    /// This member's copy of the segment is damaged.
    #[error(
        "this member's copy of events {from} to {until} is damaged ({what}) and is being replaced; ask another"
    )]
    Damaged {
        /// First event of the segment.
        from: EventId,
        /// Last event of the segment.
        until: EventId,
        /// The sign of the damage.
        what: io::Error,
    },
    /// The system refuses to read this member's copy.
    #[error("this member can't read events {from} to {until} ({what}); ask another member, or repeat")]
    Unreadable {
        /// First event of the segment.
        from: EventId,
        /// Last event of the segment.
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
