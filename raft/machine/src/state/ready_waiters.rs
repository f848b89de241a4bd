//! Heads of waiting lines: for each resource the first claim that it could serve now.

use crate::command::{NamespaceSpec, PoolSpec};
use crate::space::Space;
use crate::state::State;
use crate::state::id::{EndpointId, Id, PoolId};
use crate::state::key::Waiter;
use crate::state::row::{Cooling, QuotaScope, WaitTarget, Waiting};
use crate::value::cause::Closed;
use ipam_api::Family;
use ipam_api::limits::INTERFACES_MAX;
use std::collections::BTreeSet;

impl State {
    /// Largest need that a resource could meet now.
    pub(crate) fn room(&self, of: &WaitTarget) -> u32 {
        match of {
            WaitTarget::Pool(pool) => self.room_of_pool(*pool),
            WaitTarget::Quota(scope, family) => self.room_of_quota(scope, *family),
            WaitTarget::Block(parent) => self.room_for_block(*parent),
            WaitTarget::Open(pool) => {
                let row = self.pools.get(*pool);
                u32::from(row.is_some_and(|row| self.closed_reason(*pool, &row.spec).is_none()))
            }
        }
    }

    /// Number of addresses that a pool could allocate now, up to the largest need of a claim.
    fn room_of_pool(&self, pool: PoolId) -> u32 {
        let most = INTERFACES_MAX as u128;
        let (Some(row), Some(space)) = (self.pools.get(pool), self.space(pool)) else { return 0 };
        let spec = &row.spec;
        if self.closed_reason(pool, spec).is_some() {
            return 0;
        }
        let free = space.counts().free.min(most);
        let spare = self.cooling_to_spare(spec, space).min(INTERFACES_MAX);
        let cooling = match spare {
            _ if free == most => 0,
            0 => 0,
            spare => self.all_cooling_offered(space).take(spare).count() as u128,
        };
        u32::try_from((free + cooling).min(most)).unwrap_or(0)
    }

    fn all_cooling_offered<'a>(&'a self, space: &'a Space) -> impl Iterator<Item = &'a Cooling> {
        let rows = space.cooling.iter().map(|id| self.coolings.named(*id));
        rows.filter(|row| space.offered.contains(ipam_api::address::number(row.address)))
    }

    /// Cooling address that a pool could allocate as the last resort.
    pub(crate) fn first_cooling_offered<'a>(&'a self, space: &'a Space) -> Option<&'a Cooling> {
        self.all_cooling_offered(space).next()
    }

    /// Reason of a pool that is closed for all requests.
    pub(crate) fn closed_reason(&self, pool: PoolId, spec: &PoolSpec) -> Option<Closed> {
        match () {
            () if spec.terminating => Some(Closed::Terminating),
            () if spec.disabled => Some(Closed::Disabled),
            () if spec.drains_to.is_some() => Some(Closed::Drained),
            () if !self.is_confirmed(pool) => Some(Closed::Unconfirmed),
            () => None,
        }
    }

    /// Recomputes the first claim that a resource could serve.
    pub(crate) fn refresh_waiter(&mut self, of: &WaitTarget) {
        if self.index.waiting_for.is_empty() && self.index.first_waiter_of.is_empty() {
            return;
        }
        let old = self.index.first_waiter_of.get(of).copied();
        if old.is_none() && self.orders_for(of).next().is_none() {
            return;
        }
        let room = self.room(of);
        // First claim of each need.
        let first_from = |need: u32| {
            let enough = (of.clone(), need, 0)..=(of.clone(), room, u64::MAX);
            let found = if need <= room { self.index.waiting_for.range(enough).next() } else { None };
            found.map(|(_, need, order)| (*need, *order))
        };
        let firsts = std::iter::successors(first_from(0), |(need, _)| first_from(need.saturating_add(1)));
        let new = firsts.map(|(_, order)| order).min();
        if old == new {
            return;
        }
        if let Some(order) = old {
            self.index.ready_waiters.remove(&(order, of.clone()));
            self.index.first_waiter_of.remove(of);
        }
        if let Some(order) = new {
            self.index.ready_waiters.insert((order, of.clone()));
            self.index.first_waiter_of.insert(of.clone(), order);
        }
    }

    /// Recomputes the first claim of each resource that claims wait for.
    pub(crate) fn refresh_all_waiters(&mut self) {
        let all: BTreeSet<WaitTarget> = self.index.waiting_for.iter().map(|(of, ..)| of.clone()).collect();
        for of in all.iter().chain(&self.index.first_waiter_of.keys().cloned().collect::<Vec<_>>()) {
            self.refresh_waiter(of);
        }
    }

    /// Recomputes the first claims of a namespace's quota, whose remainder has changed.
    pub(crate) fn refresh_waiters_of(&mut self, namespace: &NamespaceSpec) {
        let (realm, name) = (&namespace.realm, &namespace.name);
        let whole = QuotaScope::of_namespace(realm, name);
        let from = (WaitTarget::Quota(whole, Family::V4), 0, 0);
        let behind = self.index.waiting_for.range(from..).map(|(of, ..)| of);
        let is_of = |of: &&WaitTarget| matches!(of, WaitTarget::Quota(scope, _) if scope.is_of(realm, name));
        let all: BTreeSet<WaitTarget> = behind.take_while(is_of).cloned().collect();
        for of in &all {
            self.refresh_waiter(of);
        }
    }

    /// Recomputes the first claims of all prefixes of a pool. The pool began or ceased to offer cooling
    /// addresses.
    pub(crate) fn refresh_waiters_below(&mut self, pool: PoolId) {
        let (from, to) = (WaitTarget::Block(Id::MIN), WaitTarget::Block(Id::MAX));
        let blocks = self.index.waiting_for.range((from, 0, 0)..=(to, u32::MAX, u64::MAX));
        let is_below = |of: &&WaitTarget| {
            matches!(of, WaitTarget::Block(parent)
                if self.prefixes.get(parent.prefix()).is_some_and(|row| row.pool == pool))
        };
        let all: BTreeSet<WaitTarget> = blocks.map(|(of, ..)| of).filter(is_below).cloned().collect();
        for of in &all {
            self.refresh_waiter(of);
        }
    }

    /// Places of the claims that wait for a resource, smallest need first.
    fn orders_for(&self, of: &WaitTarget) -> impl Iterator<Item = u64> + use<'_> {
        let range = (of.clone(), 0, 0)..=(of.clone(), u32::MAX, u64::MAX);
        self.index.waiting_for.range(range).map(|(_, _, order)| *order)
    }

    /// Claims that wait for a resource, smallest need first.
    pub(crate) fn waiters_for(&self, of: &WaitTarget) -> impl Iterator<Item = Waiter> + use<'_> {
        self.orders_for(of).filter_map(|order| self.index.waiting.get(&order).copied())
    }

    /// Claims of endpoints that wait for a pool, smallest need first.
    pub(crate) fn waiting_for(&self, pool: PoolId) -> Vec<(EndpointId, Waiting)> {
        let endpoints = self.waiters_for(&WaitTarget::Pool(pool)).filter_map(|waiter| match waiter {
            Waiter::Endpoint(endpoint) => Some(endpoint),
            Waiter::Prefix(_) => None,
        });
        endpoints.filter_map(|endpoint| Some((endpoint, self.waiting(endpoint)?.clone()))).collect()
    }
}
