//! One command on its way through the state.

use crate::apply::work::{Search, Serving, Work};
use crate::command::{Credential, Grant, Manager, Origin, Purpose, Refusal, Text};
use crate::event::EventKind;
use crate::state::id::{CoolingId, NetworkId, PoolId};
use crate::state::row::{Meta, PoolState, WaitTarget};
use crate::state::{Occupant, State};
use crate::value::At;
use crate::value::condition::Readiness;
use crate::value::level::FIRST_LEVEL;
use ipam_api::RangeSet;

/// State, time of the entry, caller, and the events so far.
///
/// Every operation first reads (`&self`) and then writes (`&mut self`): after its first write it can't refuse
/// any more.
pub(crate) struct Step<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) at: At,
    pub(crate) origin: &'a Origin,
    pub(crate) credential: &'a Credential,
    pub(crate) manager: &'a Manager,
    pub(crate) rights: &'a Result<(Grant, Purpose), Refusal>,
    /// Work of the command so far.
    pub(crate) work: &'a Work,
    /// Work so far for requests that wait.
    pub(crate) serving: &'a Serving,
    pub(crate) events: Vec<EventKind>,
}

impl<'a> Step<'a> {
    /// A search for addresses with the rights and on the account of this command.
    pub(crate) fn search(&self) -> Result<Search<'a>, Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        Ok(Search { grant, work: self.work })
    }
}

impl Step<'_> {
    pub(crate) fn emit(&mut self, what: EventKind) {
        self.events.push(what);
    }

    /// The history of something that is new in `revision`.
    pub(crate) fn new_meta(&self, revision: impl Into<u64>) -> Meta {
        let revision = revision.into();
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

    /// Records the readiness of a pool, and reports a change of it.
    pub(crate) fn refresh_readiness(&mut self, pool: PoolId) {
        self.state.refresh_waiter(&WaitTarget::Pool(pool));
        let row = self.state.pools.named(pool);
        let readiness = match self.state.closed_reason(pool, &row.spec) {
            Some(closed) => closed.into(),
            None if self.state.space_of(pool).counts().free == 0 => Readiness::Exhausted,
            None => Readiness::Serving,
        };
        let old = self.state.pool_states.get(pool).cloned().unwrap_or_default();
        if old.readiness == readiness && old.since_wall_ms != 0 {
            return;
        }
        let name = row.spec.name.clone();
        // Zero would mean that it was never noted.
        let since_wall_ms = self.at.wall_ms.max(1);
        let state = &mut *self.state;
        state.write(pool, PoolState { readiness, since_wall_ms, ..old });
        self.emit(EventKind::PoolReady { pool: name, readiness });
    }

    /// Removes cooling addresses of a pool that leave it or are deleted with it.
    pub(crate) fn drop_coolings(&mut self, pool: PoolId, ids: Vec<CoolingId>) {
        let name = self.state.pools.named(pool).spec.name.clone();
        for id in ids {
            let row = self.state.end_cooling(id);
            let network = self.state.name_of_network(row.network);
            self.emit(EventKind::Cooled { network, address: row.address, pool: name.clone() });
        }
    }
}

impl State {
    /// Cooling addresses of a pool in some ranges, oldest first. The cost depends on their number, not on
    /// that of the pool's others.
    pub(crate) fn cooling_in(&self, pool: PoolId, network: NetworkId, ranges: &RangeSet) -> Vec<CoolingId> {
        let cooling = ranges.ranges().flat_map(|range| {
            let range = (network, range.first_address())..=(network, range.last_address());
            self.index.cooling.range(range)
        });
        let ids = cooling.filter_map(|(network, address)| match self.occupant(*network, *address)? {
            Occupant::Cooling(id) => Some(id),
            Occupant::Allocation(_) => None,
        });
        // Cooling addresses of a split are in another pool already.
        let mut ids: Vec<CoolingId> = ids.filter(|id| self.coolings.named(*id).pool == pool).collect();
        ids.sort_unstable();
        ids
    }
}

/// Creator of a resource. The next feature level has another rule, for tests only: so a rolling upgrade can
/// be tested before a real one exists.
fn maker(level: u32, principal: &Text) -> Text {
    if cfg!(feature = "testing") && level > FIRST_LEVEL {
        return Text::identifier(format!("{principal}@{level}"));
    }
    Text::clone(principal)
}
