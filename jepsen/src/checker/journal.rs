//! Journal of a run by grant: the events that began and ended each allocation and each prefix.

use std::collections::BTreeMap;

use ipam_api::address::AddressRange;
use ipam_api::event::Event;

use super::block::block;
use crate::history::endpoint_name;

/// Event that begins an allocation.
pub const ALLOCATED: &str = "address.allocated";
/// Event that ends an allocation.
pub const RELEASED: &str = "address.released";
/// Event that begins a prefix.
pub const DELEGATED: &str = "prefix.delegated";
/// Event that ends a prefix.
pub const RETURNED: &str = "prefix.released";
/// Event that begins an epoch: the restore of a backup.
pub const EPOCH_BEGUN: &str = "epoch.begun";
const TRIMMED: &str = "journal.trimmed";
const RESTORED_FROM: &str = "restored from revision ";

/// Allocation or prefix from its begin to its end, as recorded in the journal.
#[derive(Debug, Clone)]
pub struct Lifetime<'a> {
    /// Id of the allocation or of the prefix.
    pub id: u64,
    /// Network.
    pub network: &'a str,
    /// Addresses of the allocation or of the prefix.
    pub block: AddressRange,
    /// Endpoint as `kind/realm/namespace/name`, or owner of a prefix as `realm/name`.
    pub holder: String,
    /// True for a prefix.
    pub is_prefix: bool,
    /// Event that began the lifetime.
    pub begun: &'a Event,
    /// Event that ended the lifetime.
    pub ended: Option<&'a Event>,
}

/// Restore of a backup. All changes between the two revisions are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restore {
    /// Revision of the backup.
    pub from: u64,
    /// First revision of the new epoch.
    pub begun: u64,
}

/// Journal with an index of grants.
#[derive(Debug, Default)]
pub struct Journal<'a> {
    /// Events in order.
    pub events: &'a [Event],
    /// Grants by id.
    pub lifetimes: BTreeMap<u64, Lifetime<'a>>,
    /// Restores in order.
    pub restores: Vec<Restore>,
    /// False if the journal is empty or lacks its first events.
    pub is_complete: bool,
}

impl<'a> Journal<'a> {
    /// Indexes a journal.
    #[must_use]
    pub fn of(events: &'a [Event]) -> Self {
        let mut journal = Self { events, is_complete: !events.is_empty(), ..Self::default() };
        for event in events {
            journal.take(event);
        }
        journal
    }

    fn take(&mut self, event: &'a Event) {
        match event.event_type.as_str() {
            ALLOCATED | DELEGATED => {
                if let Some(lifetime) = lifetime(event) {
                    self.lifetimes.entry(lifetime.id).or_insert(lifetime);
                }
            }
            RELEASED | RETURNED => {
                let known = id_of(event).and_then(|id| self.lifetimes.get_mut(&id));
                if let Some(known) = known.filter(|known| known.ended.is_none()) {
                    known.ended = Some(event);
                }
            }
            EPOCH_BEGUN => {
                let from = event.reason.as_deref().and_then(|reason| reason.strip_prefix(RESTORED_FROM));
                if let Some(from) = from.and_then(|from| from.parse().ok()) {
                    self.restores.push(Restore { from, begun: event.revision });
                }
            }
            TRIMMED => self.is_complete = false,
            _ => {}
        }
    }

    /// Returns true if a restore has undone the effects of this revision.
    #[must_use]
    pub fn is_lost(&self, revision: u64) -> bool {
        self.restores.iter().any(|restore| restore.from < revision && revision < restore.begun)
    }

    /// Returns the first restore after a revision that keeps its effects.
    #[must_use]
    pub fn restore_after(&self, revision: u64) -> Option<Restore> {
        self.restores.iter().copied().find(|restore| restore.begun > revision)
    }
}

/// Id of the grant that an event begins or ends.
#[must_use]
pub fn id_of(event: &Event) -> Option<u64> {
    event.allocation.or(event.prefix)
}

fn lifetime(event: &Event) -> Option<Lifetime<'_>> {
    let is_prefix = event.event_type == DELEGATED;
    let holder = match &event.endpoint {
        Some(endpoint) => endpoint_name(endpoint),
        None => event.owner.clone().unwrap_or_default(),
    };
    Some(Lifetime {
        id: id_of(event)?,
        network: event.network.as_ref()?.as_str(),
        block: block(&event.object, is_prefix)?,
        holder,
        is_prefix,
        begun: event,
        ended: None,
    })
}
