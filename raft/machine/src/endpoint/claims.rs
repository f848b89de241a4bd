//! Rows of waiting claims: writing, withdrawing and redirecting to other pools.

use crate::apply::step::Step;
use crate::command::{Allocate, Cause};
use crate::event::EventKind;
use crate::state::State;
use crate::state::id::{EndpointId, PoolId};
use crate::state::row::{Pool, WaitTarget, Waiting};
use crate::value::condition::WaitReason;
use ipam_api::limits::WAITING_POOLS_MAX;
use ipam_api::resource::EndpointKey;

impl State {
    /// Part of the awaited quotas that the endpoint itself would use by bringing its addresses along.
    fn brought_by(&self, endpoint: EndpointId) -> Vec<u32> {
        let Some(row) = self.endpoints.get(endpoint) else { return Vec::new() };
        let Some(waiting) = &row.waiting else { return Vec::new() };
        let brought = waiting.missing.iter().map(|(of, _)| match of {
            WaitTarget::Pool(_) | WaitTarget::Block(_) | WaitTarget::Open(_) => 0,
            WaitTarget::Quota(scope, family) => {
                u32::try_from(self.brought(row, scope, *family)).unwrap_or(u32::MAX)
            }
        });
        brought.collect()
    }
}

impl Step<'_> {
    /// Writes or removes the waiting claim of an endpoint.
    pub(crate) fn put_waiting(&mut self, endpoint: EndpointId, waiting: Option<Waiting>) {
        let Some(mut row) = self.state.endpoints.get(endpoint).cloned() else { return };
        let mut touched = Vec::new();
        if let Some(old) = &row.waiting {
            touched.extend(old.missing.iter().map(|(of, _)| of.clone()));
        }
        if let Some(new) = &waiting {
            touched.extend(new.missing.iter().map(|(of, _)| of.clone()));
        }
        row.waiting = waiting.map(Box::new);
        self.state.write(endpoint, row);
        for of in &touched {
            self.state.refresh_waiter(of);
        }
    }

    /// Changes an endpoint, and updates how much of each awaited quota its claim needs.
    pub(crate) fn with_its_needs(&mut self, endpoint: EndpointId, change: impl FnOnce(&mut Self)) {
        if self.state.index.waiting.is_empty() {
            return change(self);
        }
        let before = self.state.brought_by(endpoint);
        change(self);
        let after = self.state.brought_by(endpoint);
        if before != after
            && let Some(mut waiting) = self.state.waiting(endpoint).cloned()
        {
            for ((_, need), (before, after)) in waiting.missing.iter_mut().zip(before.iter().zip(&after)) {
                *need = need.saturating_sub(*before).saturating_add(*after);
            }
            self.put_waiting(endpoint, Some(waiting));
        }
    }

    /// Records the resources that a claim waits for, and reports a changed reason.
    pub(crate) fn note_waiting(
        &mut self,
        endpoint: EndpointId,
        missing: Vec<(WaitTarget, u32)>,
        why: WaitReason,
        cause: Box<Cause>,
    ) {
        let Some(old) = self.state.waiting(endpoint).cloned() else { return };
        // A change of the cause's counts alone isn't worth a write.
        if (&missing, why) == (&old.missing, old.why) {
            return;
        }
        let new = Waiting { missing, why, cause, ..old.clone() };
        self.state.tick();
        if new.why != old.why {
            self.emit(EventKind::Waits { endpoint: old.request.endpoint.clone(), why });
        }
        self.put_waiting(endpoint, Some(new));
    }

    /// Ends the waiting of an endpoint that holds something on an interface that it waited for.
    pub(crate) fn stop_waiting(&mut self, endpoint: EndpointId, request: &Allocate) {
        let Some(waiting) = self.state.waiting(endpoint) else { return };
        let names =
            |interfaces: &Allocate| interfaces.interfaces.iter().map(|one| one.name.clone()).collect();
        let (given, waited): (Vec<_>, Vec<_>) = (names(request), names(&waiting.request));
        if given.iter().any(|name| waited.contains(name)) {
            self.put_waiting(endpoint, None);
        }
    }

    /// Ends the waiting of all incarnations of an endpoint.
    pub(crate) fn withdraw(&mut self, key: &EndpointKey) {
        let ids: Vec<EndpointId> = self.state.incarnations(key).collect();
        for id in ids {
            if self.state.waiting(id).is_none() {
                continue;
            }
            self.state.tick();
            self.emit(EventKind::Withdrawn { endpoint: key.clone() });
            self.put_waiting(id, None);
            self.remove_if_empty(id);
        }
    }

    /// Adds the replacement of a drained pool as a target of the claims that wait for the drained pool.
    pub(crate) fn wait_for_stand_in(&mut self, drained: PoolId) {
        let to = self.state.pools.get(drained).and_then(|pool| pool.spec.drains_to.as_ref());
        let Some(to) = to.and_then(|to| self.state.find::<Pool>(to)) else { return };
        self.wait_for_both(drained, to);
    }

    /// Adds another pool as a target of the claims that wait for one pool.
    pub(crate) fn wait_for_both(&mut self, one: PoolId, other: PoolId) {
        for (endpoint, waiting) in self.state.waiting_for(one) {
            let mut missing = waiting.missing.clone();
            let need =
                missing.iter().find(|(of, _)| *of == WaitTarget::Pool(one)).map_or(1, |(_, need)| *need);
            let more = (WaitTarget::Pool(other), need);
            if missing.len() < WAITING_POOLS_MAX && !missing.contains(&more) {
                missing.push(more);
            }
            self.note_waiting(endpoint, missing, waiting.why, waiting.cause);
        }
    }

    /// Removes a deleted pool from the claims that wait for it.
    pub(crate) fn forget_waiting_for(&mut self, pool: PoolId) {
        for (endpoint, waiting) in self.state.waiting_for(pool) {
            let missing: Vec<(WaitTarget, u32)> =
                waiting.missing.iter().filter(|(of, _)| *of != WaitTarget::Pool(pool)).cloned().collect();
            let (why, cause) = if missing.is_empty() {
                (WaitReason::AllocationFailed, Box::new(Cause::AwaitedPoolsGone))
            } else {
                (waiting.why, waiting.cause)
            };
            self.note_waiting(endpoint, missing, why, cause);
        }
        self.state.refresh_waiter(&WaitTarget::Pool(pool));
    }
}
