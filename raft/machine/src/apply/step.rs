//! One command on its way through the state.

use crate::apply::work::{Search, Serving, Work};
use crate::command::{Credential, Grant, Manager, Origin, Purpose, Refusal, Text};
use crate::event::EventKind;
use crate::space::Space;
use crate::state::id::{CoolingId, NetworkId, PoolId};
use crate::state::row::{Cooling, Meta, PoolState, WaitTarget};
use crate::state::{Occupant, State};
use crate::value::condition::Readiness;
use crate::value::level::FIRST_LEVEL;
use crate::value::{At, RareList};
use ipam_api::RangeSet;
use ipam_api::address::number;
use std::net::IpAddr;

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
    /// Returns a search with the rights and the work budget of this command.
    pub(crate) fn search(&self) -> Result<Search<'a>, Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        Ok(Search { grant, work: self.work })
    }
}

impl Step<'_> {
    pub(crate) fn emit(&mut self, what: EventKind) {
        self.events.push(what);
    }

    /// Returns the metadata of a resource that is created in `revision`.
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
            updated_fields: RareList::default(),
        }
    }

    /// Records the readiness of a pool, and reports a change of it.
    pub(crate) fn refresh_readiness(&mut self, pool: PoolId) {
        for of in [WaitTarget::Pool(pool), WaitTarget::Block(pool.into()), WaitTarget::Open(pool)] {
            self.state.refresh_waiter(&of);
        }
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
        // Zero would mean that the readiness was never recorded.
        let since_wall_ms = self.at.wall_ms.max(1);
        let state = &mut *self.state;
        state.write(pool, PoolState { readiness, since_wall_ms, ..old });
        self.emit(EventKind::PoolReady { pool: name, readiness });
    }

    /// Starts the cooling of a freed address.
    pub(crate) fn cool(
        &mut self,
        id: CoolingId,
        network: NetworkId,
        pool: PoolId,
        address: IpAddr,
        cooling_ms: u64,
    ) {
        let until_ms = self.state.log_time_ms().saturating_add(cooling_ms);
        self.state.write(id, Cooling { address, network, pool, until_ms });
        let space = self.state.space_mut(pool);
        space.cooling.insert(id);
        space.occupy(number(address));
    }

    /// Frees cooling and quarantined addresses of a pool that leave it or are deleted with it.
    pub(crate) fn drop_unheld(&mut self, pool: PoolId, unheld: Vec<Occupant>) {
        let pool = self.state.pools.named(pool).spec.name.clone();
        for occupant in unheld {
            match occupant {
                Occupant::Cooling(id) => {
                    let row = self.state.end_cooling(id);
                    let network = self.state.name_of_network(row.network);
                    self.emit(EventKind::Cooled { network, address: row.address, pool: pool.clone() });
                }
                Occupant::Quarantine(id) => {
                    let row = self.state.end_quarantine(id);
                    let network = self.state.name_of_network(row.network);
                    let (address, pool) = (row.address, pool.clone());
                    self.emit(EventKind::QuarantineEnded { network, address, pool, by: None });
                }
                Occupant::Allocation(_) => {}
            }
        }
    }
}

impl State {
    /// Cooling addresses that a pool may allocate as the last resort, the longest-free first.
    pub(crate) fn cooling_offered<'a>(
        &'a self,
        space: &'a Space,
        work: &'a Work,
    ) -> impl Iterator<Item = IpAddr> + 'a {
        let rows = space.cooling.iter().take_while(|_| work.take(1));
        let addresses = rows.filter_map(|id| self.coolings.get(*id)).map(|row| row.address);
        addresses.filter(|address| space.offered.contains(number(*address)))
    }

    /// Cooling and quarantined addresses of a pool in some ranges, the cooling ones first, oldest first. The
    /// cost depends on their number, not on that of the pool's others.
    pub(crate) fn unheld_in(&self, pool: PoolId, network: NetworkId, ranges: &RangeSet) -> Vec<Occupant> {
        let unheld = ranges.ranges().flat_map(|range| {
            let range = (network, range.first_address())..=(network, range.last_address());
            self.index.unheld.range(range)
        });
        let (mut cooling, mut quarantined) = (Vec::new(), Vec::new());
        for (network, address) in unheld {
            // After a split, addresses may already belong to another pool.
            match self.occupant(*network, *address) {
                Some(Occupant::Cooling(id)) if self.coolings.named(id).pool == pool => cooling.push(id),
                Some(Occupant::Quarantine(id)) if self.quarantines.named(id).pool == pool => {
                    quarantined.push(id);
                }
                _ => {}
            }
        }
        cooling.sort_unstable();
        quarantined.sort_unstable();
        let cooling = cooling.into_iter().map(Occupant::Cooling);
        cooling.chain(quarantined.into_iter().map(Occupant::Quarantine)).collect()
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
