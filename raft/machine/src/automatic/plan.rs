//! Plan of a request's automatic pools: those to create, and the changes of existing ones.
//!
//! The plan is made on the present state. Its changes are applied together with the allocation, or not at
//! all.

use crate::access::{fits, not_labelled};
use crate::apply::step::Step;
use crate::apply::work::{Search, Work};
use crate::command::{Allocate, AutomaticPool, Cause, InterfaceRequest, Kind, Refusal};
use crate::resource::described::check_room;
use crate::state::State;
use crate::state::id::{AllocationId, PoolId, SubnetId};
use crate::state::key::Application;
use crate::state::row::{Automatic, AutomaticStanding, Pool};
use crate::value::cause::NamedController;
use ipam_api::limits::RANGES_MAX;
use ipam_api::name::{InterfaceName, Name};
use ipam_api::{Family, RangeSet};
use std::collections::BTreeMap;

/// Change of one pool.
#[derive(Debug)]
enum Making {
    /// Creates a pool in this subnet with these ranges.
    Make { subnet: SubnetId, automatic: Automatic, reclaim: bool, ranges: RangeSet },
    /// Changes an existing pool, and adds these addresses.
    Use { pool: PoolId, automatic: Automatic, reclaim: bool, more: RangeSet },
    /// Leaves a pool, because the application now uses another subnet.
    Leave { pool: PoolId },
}

/// Plan of a request so far.
struct Draft<'a> {
    state: &'a State,
    search: Search<'a>,
    application: Application<'a>,
    said: AutomaticPool,
    makings: Vec<Making>,
    /// Addresses planned for pools of this request, by subnet.
    planned: BTreeMap<SubnetId, RangeSet>,
    /// Remaining addresses of its pools by family; unlimited if absent.
    room: BTreeMap<Family, u64>,
}

impl Step<'_> {
    /// Creates and changes the automatic pools of the request's application: all of them, or none.
    pub(crate) fn with_automatic_pools<T>(
        &mut self,
        request: &Allocate,
        then: impl FnOnce(&mut Step<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if request.automatic_pool.is_none() {
            return then(self);
        }
        let search = self.search()?;
        let makings = Draft::plan(self.state, request, search);
        search.work.check()?;
        let makings = makings?;
        if makings.is_empty() {
            return then(self);
        }
        self.on_draft(|step| {
            let used = step.make_pools(makings);
            let answer = then(step)?;
            // Computed last: addresses that the request itself takes aren't unassigned.
            used.into_iter().for_each(|id| step.trim_pool(id));
            Ok(answer)
        })
    }

    /// Resizes the pools of a repeated request. It neither creates nor leaves pools, and is never refused.
    pub(crate) fn resize_pools(&mut self, request: &Allocate, given: &[AllocationId]) {
        let Ok(search) = self.search() else { return };
        let makings = Draft::plan_again(self.state, request, given, search);
        if !search.work.is_exceeded() {
            let used = self.make_pools(makings);
            used.into_iter().for_each(|id| self.trim_pool(id));
        }
    }

    /// State with the automatic pools of a request's application; nothing if the present state has them.
    pub(crate) fn with_pools_of(
        &self,
        request: &Allocate,
        search: Search<'_>,
    ) -> Result<Option<State>, Refusal> {
        let makings = Draft::plan(self.state, request, search)?;
        if makings.is_empty() {
            return Ok(None);
        }
        let mut draft = self.state.clone();
        self.on(&mut draft).make_pools(makings);
        Ok(Some(draft))
    }

    /// Carries out the plan. Returns the used pools, which may have surplus addresses.
    fn make_pools(&mut self, makings: Vec<Making>) -> Vec<PoolId> {
        let mut used = Vec::new();
        for making in makings {
            match making {
                Making::Make { subnet, automatic, reclaim, ranges } => {
                    self.make_pool(subnet, automatic, reclaim, &ranges);
                }
                Making::Use { pool, automatic, reclaim, more } => {
                    let none = RangeSet::empty(more.family());
                    self.use_pool(pool, automatic, reclaim, (&more, &none));
                    used.push(pool);
                }
                Making::Leave { pool } => self.leave_pool(pool, AutomaticStanding::Elsewhere),
            }
        }
        used
    }
}

impl<'a> Draft<'a> {
    /// Plans the changes of a request's pools; none if they need no change.
    fn plan(state: &'a State, request: &'a Allocate, search: Search<'a>) -> Result<Vec<Making>, Refusal> {
        let Some(mut draft) = Self::of(state, request, search) else { return Ok(Vec::new()) };
        for (interface, family) in places(request) {
            draft.plan_for(interface, family)?;
        }
        Ok(draft.makings)
    }

    fn of(state: &'a State, request: &'a Allocate, search: Search<'a>) -> Option<Self> {
        let (said, application) = (request.automatic_pool?, Application::of(request)?);
        let rooms =
            Family::BOTH.into_iter().map(|family| (family, state.room_for_pools(&application, family)));
        let room = rooms.filter_map(|(family, room)| Some((family, room?))).collect();
        let (makings, planned) = (Vec::new(), BTreeMap::new());
        Some(Self { state, search, application, said, makings, planned, room })
    }

    /// Plans a repeated request's changes to the pools that gave it addresses, within its rights.
    fn plan_again(
        state: &'a State,
        request: &'a Allocate,
        given: &[AllocationId],
        search: Search<'a>,
    ) -> Vec<Making> {
        let Some(mut draft) = Self::of(state, request, search) else { return Vec::new() };
        let gave = |id| given.iter().any(|one| state.allocations.named(*one).pool == id);
        let key = draft.application.key();
        for (interface, family) in places(request) {
            let Ok(Some(subnet)) = state.subnet_of_family(family, interface) else { continue };
            if let Some((id, pool, automatic)) = state.present_pool(&key, &interface.name, family, subnet)
                && gave(id)
                && !pool.spec.terminating
                && automatic.standing == AutomaticStanding::Present
                && automatic.controller.may_be(draft.application.controller)
                && state.permit_pool(search.grant, id).is_ok()
            {
                draft.plan_use((id, pool, automatic));
            }
        }
        draft.makings
    }

    fn plan_for(&mut self, interface: &InterfaceRequest, family: Family) -> Result<(), Refusal> {
        let (state, search) = (self.state, self.search);
        let Some(subnet) = state.subnet_of_family(family, interface)? else { return Ok(()) };
        let key = self.application.key();
        let present = state.present_pool(&key, &interface.name, family, subnet);
        let present_id = present.map(|(id, ..)| id);
        let pools = state.pools_of_interface(&key, &interface.name, family);
        for (id, pool, _) in pools.take_while(|_| search.work.take(1)) {
            if Some(id) != present_id && !pool.spec.terminating && state.may_decide(id, pool, search) {
                state.permit_pool(search.grant, id)?;
                self.makings.push(Making::Leave { pool: id });
                if let Some(room) = self.room.get_mut(&family) {
                    *room = room.saturating_add(state.freed_by_leaving(id, pool));
                }
            }
        }
        match present {
            Some((id, pool, old)) => {
                state.permit_pool(search.grant, id)?;
                self.plan_use((id, pool, old));
            }
            None => self.plan_make(&interface.name, (family, subnet))?,
        }
        Ok(())
    }

    fn plan_use(&mut self, (id, pool, old): (PoolId, &Pool, &Automatic)) {
        let (state, search) = (self.state, self.search);
        let AutomaticPool { size, replicas, mut reclaim } = self.said;
        let mut automatic = old.clone();
        let uid = self.application.controller.uid.clone();
        automatic.controller.uid = uid.or(automatic.controller.uid);
        (automatic.size, automatic.replicas) = (size, replicas);
        automatic.standing = AutomaticStanding::Present;
        let is_as_said = automatic == *old && pool.spec.reclaim == Some(reclaim);
        if !is_as_said && !state.may_decide(id, pool, search) {
            reclaim = pool.spec.reclaim.unwrap_or(true);
            automatic.controller.uid.clone_from(&old.controller.uid);
            if automatic.wanted() < old.wanted() {
                (automatic.size, automatic.replicas) = (old.size, old.replicas);
            }
        }
        let space = state.space_of(id);
        let (has, wanted) = (space.usable(), automatic.wanted());
        let family = space.family;
        let planned = self.planned.entry(pool.subnet).or_insert_with(|| RangeSet::empty(family));
        let room = self.room.get_mut(&family);
        let more = state.growth(pool, (has, wanted), planned, room.as_deref().copied(), search.work);
        *planned = planned.union(&more);
        take_from(room, &more);
        let may_shrink = pool.spec.ranges.len() < RANGES_MAX;
        let shrinks = has > wanted && space.counts().free > 0 && may_shrink;
        let is_so = *old == automatic
            && pool.spec.reclaim == Some(reclaim)
            && !pool.spec.terminating
            && more.is_empty()
            && !shrinks;
        if !is_so {
            self.makings.push(Making::Use { pool: id, automatic, reclaim, more });
        }
    }

    fn plan_make(
        &mut self,
        interface: &InterfaceName,
        (family, subnet): (Family, SubnetId),
    ) -> Result<(), Refusal> {
        let (state, search) = (self.state, self.search);
        // The pool has the labels of its subnet, also when a kept address leaves it unused.
        if let Some(row) = state.subnets.get(subnet)
            && !fits(search.grant, &row.spec.metadata)
        {
            return Err(not_labelled(search.grant, Kind::Subnet, &row.spec.name));
        }
        let AutomaticPool { size, replicas, reclaim } = self.said;
        let Application { realm, namespace, controller } = self.application;
        let is_new = |making: &&Making| matches!(making, Making::Make { .. });
        let planned_pools = self.makings.iter().filter(is_new).count();
        check_room(state.pools.len() + planned_pools, Kind::Pool)?;
        let automatic = Automatic {
            realm: realm.clone(),
            namespace: namespace.clone(),
            controller: controller.clone(),
            interface: interface.clone(),
            size,
            replicas,
            standing: AutomaticStanding::Present,
            created_by: search.grant.node.clone(),
        };
        let wanted = automatic.wanted();
        state.check_may_make((subnet, wanted), self.said, (search.grant, planned_pools))?;
        let room = self.room.get_mut(&family);
        if let Some(room) = room.as_deref() {
            state.check_pool_quota(&self.application, family, wanted, *room)?;
        }
        let planned = self.planned.entry(subnet).or_insert_with(|| RangeSet::empty(family));
        let ranges = state.unassigned(subnet, wanted, planned, search.work);
        if ranges.size() < wanted {
            return Err(self.too_few(&automatic, family, subnet, ranges.size()));
        }
        *planned = planned.union(&ranges);
        take_from(room, &ranges);
        self.makings.push(Making::Make { subnet, automatic, reclaim, ranges });
        Ok(())
    }

    fn too_few(&self, automatic: &Automatic, family: Family, subnet: SubnetId, left: u128) -> Refusal {
        let subnet = self.state.subnets.get(subnet);
        Refusal::from(Cause::TooFewSpare {
            interface: automatic.interface.clone(),
            family,
            controller: NamedController::of(&automatic.controller),
            wanted: automatic.wanted(),
            subnet: subnet.map_or_else(Name::default_name, |row| row.spec.name.clone()),
            left,
        })
    }
}

impl State {
    /// Addresses to add to a pool: its missing ones, limited by the subnet and by the quota's `room`.
    pub(super) fn growth(
        &self,
        pool: &Pool,
        (has, wanted): (u128, u128),
        planned: &RangeSet,
        room: Option<u64>,
        work: &Work,
    ) -> RangeSet {
        // After a restore the unassigned addresses of a subnet are unknown.
        if has >= wanted || self.unconfirmed().is_some() {
            return RangeSet::empty(planned.family());
        }
        let wanted = wanted.min(self.max_size_in(pool.subnet));
        let missing = wanted.saturating_sub(has);
        let missing = room.map_or(missing, |room| missing.min(room.into()));
        let unassigned = self.unassigned(pool.subnet, missing, planned, work);
        let own = RangeSet::new(unassigned.family(), &pool.spec.ranges);
        let fits = |more: &RangeSet| own.union(more).ranges().count() <= RANGES_MAX;
        if fits(&unassigned) {
            return unassigned;
        }
        // At least the addresses at its own ranges. Each is inserted in order.
        let in_a_pool = RANGES_MAX as u64;
        unassigned.ranges().take_while(|_| work.take(in_a_pool)).fold(
            RangeSet::empty(unassigned.family()),
            |some, range| {
                let more = some.union(&RangeSet::new(unassigned.family(), &[range]));
                if fits(&more) { more } else { some }
            },
        )
    }
}

/// Interfaces that name subnets, with each family that they take.
fn places(request: &Allocate) -> impl Iterator<Item = (&InterfaceRequest, Family)> {
    let named = request.interfaces.iter().filter(|interface| !interface.subnets.is_empty());
    let families = |interface| Family::BOTH.into_iter().map(move |family| (interface, family));
    named.flat_map(families).filter(|(interface, family)| interface.takes(*family))
}

/// Subtracts added addresses from the remaining quota.
fn take_from(room: Option<&mut u64>, more: &RangeSet) {
    if let Some(room) = room {
        *room = room.saturating_sub(u64::try_from(more.size()).unwrap_or(u64::MAX));
    }
}
