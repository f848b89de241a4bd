//! One command on its way through the state.

use super::At;
use super::command::cause::Constant;
use super::command::{Cause, Credential, Expect, Grant, Kind, Manager, Origin, Purpose, Refusal, Text};
use super::event::{Readiness, What};
use super::level::maker;
use super::model::{Meta, PoolState, Scarce};
use super::state::{Occupant, State};
use super::work::{Search, Serving, Work};
use ipam_api::RangeSet;
use ipam_api::name::ResourceName;

/// The state, the entry's time, the asker, and what has happened so far.
///
/// Every operation first looks (`&self`) and then changes (`&mut self`): once it has begun to change, it
/// can't refuse any more.
pub(super) struct Step<'a> {
    pub(super) state: &'a mut State,
    pub(super) at: At,
    pub(super) origin: &'a Origin,
    pub(super) credential: &'a Credential,
    pub(super) manager: &'a Manager,
    pub(super) rights: &'a Result<(Grant, Purpose), Refusal>,
    /// What the command has examined so far.
    pub(super) work: &'a Work,
    /// What was examined so far for requests that wait.
    pub(super) serving: &'a Serving,
    pub(super) events: Vec<What>,
}

impl<'a> Step<'a> {
    /// A search for addresses with the rights and on the account of this command.
    pub(super) fn search(&self) -> Result<Search<'a>, Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        Ok(Search { grant, work: self.work })
    }
}

impl Step<'_> {
    pub(super) fn emit(&mut self, what: What) {
        self.events.push(what);
    }

    /// The history of something that is new in `revision`.
    pub(super) fn new_meta(&self, revision: u64) -> Meta {
        let by = maker(self.state.header.level, &self.origin.principal);
        Meta {
            id: revision,
            revision,
            created_wall_ms: self.at.wall_ms,
            created_by: Text::clone(&by),
            updated_wall_ms: self.at.wall_ms,
            updated_by: by,
            updated_fields: Vec::new(),
        }
    }

    /// Takes note of whether a pool can give, and says so when that has changed.
    pub(super) fn refresh_readiness(&mut self, pool: u64) {
        self.state.refresh_head(&Scarce::Pool(pool));
        let Some(row) = self.state.pools.get(pool) else { return };
        let readiness = if row.intention.terminating {
            Readiness::Terminating
        } else if row.intention.disabled {
            Readiness::Disabled
        } else if row.intention.drains_to.is_some() {
            Readiness::Drained
        } else if !self.state.is_confirmed(pool) {
            Readiness::Unconfirmed
        } else if self.state.space(pool).is_some_and(|space| space.counts().free == 0) {
            Readiness::Exhausted
        } else {
            Readiness::Serving
        };
        let old = self.state.pool_states.get(pool).cloned().unwrap_or_default();
        if old.readiness == readiness && old.since_wall_ms != 0 {
            return;
        }
        let name = row.intention.name.clone();
        // Zero would mean that it was never noted.
        let since_wall_ms = self.at.wall_ms.max(1);
        let state = &mut *self.state;
        state.pool_states.put(pool, PoolState { readiness, since_wall_ms, ..old }, &mut state.ledger);
        self.emit(What::PoolReady { pool: name, readiness });
    }

    /// Forgets resting addresses of a pool: they leave it, or it goes.
    pub(super) fn drop_coolings(&mut self, pool: u64, ids: Vec<u64>) {
        let Some(name) = self.state.pools.get(pool).map(|row| row.intention.name.clone()) else { return };
        for id in ids {
            let Some(row) = self.state.end_cooling(id) else { continue };
            let network = self.state.name_of_network(row.network);
            self.emit(What::Cooled { network, address: row.address, pool: name.clone() });
        }
    }
}

impl State {
    /// Those of a pool's resting addresses that are in some ranges, the longest-free first. Costs what there is of them,
    /// and not what rests in the pool.
    pub(super) fn resting_in(&self, pool: u64, network: u64, ranges: &RangeSet) -> Vec<u64> {
        let resting = ranges.ranges().flat_map(|range| {
            let range = (network, range.first_address())..=(network, range.last_address());
            self.index.resting.range(range)
        });
        let ids = resting.filter_map(|(network, address)| match self.occupant(*network, *address)? {
            Occupant::Cooling(id) => Some(id),
            Occupant::Allocation(_) => None,
        });
        // What is being split off rests in another pool already.
        let mut ids: Vec<u64> =
            ids.filter(|id| self.coolings.get(*id).is_some_and(|row| row.pool == pool)).collect();
        ids.sort_unstable();
        ids
    }
}

/// Refuses unless a resource is as expected.
pub(super) fn check_expected(
    kind: Kind,
    name: impl Into<ResourceName>,
    meta: Option<&Meta>,
    expect: Expect,
) -> Result<(), Refusal> {
    let cause = match (expect, meta) {
        (Expect::Anything, _) | (Expect::Absent, None) => return Ok(()),
        (Expect::Revision(expected), Some(meta)) if expected == meta.revision => return Ok(()),
        (Expect::Absent, Some(meta)) => Cause::Exists { kind, name: name.into(), revision: meta.revision },
        (Expect::Revision(expected), None) => Cause::NothingToChange { kind, name: name.into(), expected },
        (Expect::Revision(expected), Some(meta)) => Cause::Changed {
            kind,
            name: name.into(),
            current: meta.revision,
            by: Text::clone(&meta.updated_by),
            fields: meta.updated_fields.clone(),
            expected,
        },
    };
    Err(cause.into())
}

pub(super) fn not_found(kind: Kind, name: impl Into<ResourceName>) -> Refusal {
    Cause::NotFound { kind, name: name.into() }.into()
}

pub(super) fn immutable(kind: Kind, name: impl Into<ResourceName>, value: Constant) -> Refusal {
    Cause::Immutable { kind, name: name.into(), value }.into()
}
