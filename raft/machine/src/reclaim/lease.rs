//! Leases: allocations that end by log time unless they are renewed.
//!
//! The log alone decides the end. Log time stands still without a leader, so an outage of the cluster ends no
//! lease, and a new leader needs no estimate. Allocations that were made together end together.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Leases, Refusal, Renew, Renewed};
use crate::event::Reason;
use crate::seeded::SeededBug;
use crate::state::State;
use crate::state::id::AllocationId;
use crate::state::row::{Allocation, Lease};

impl Step<'_> {
    /// Returns a lease that begins now.
    pub(crate) fn new_lease(&self, ttl_ms: u64) -> Lease {
        let local_ms = if SeededBug::LocalLease.is_on() { crate::seeded::local_number() } else { 0 };
        Lease {
            ttl_ms,
            until_ms: self.state.log_time_ms().saturating_add(ttl_ms).saturating_add(local_ms),
            until_wall_ms: self.at.wall_ms.saturating_add(ttl_ms),
        }
    }

    pub(crate) fn renew(&mut self, request: &Renew) -> Result<Answer, Refusal> {
        let ids = self.state.leases(&request.which)?;
        self.renew_all(&ids, request.ttl_ms);
        let renewed = |id: &AllocationId| {
            let row = self.state.allocations.get(*id)?;
            Some(Renewed { allocation: *id, address: row.address, lease: self.state.lease_of(row)? })
        };
        Ok(Answer::renewed(ids.iter().filter_map(renewed).collect()))
    }

    /// Renews leases from now on. Renewals have no event: the history records only the ends of leases.
    pub(crate) fn renew_all(&mut self, ids: &[AllocationId], ttl_ms: Option<u64>) {
        let mut changed = false;
        for id in ids {
            let Some(row) = self.state.allocations.get(*id) else { continue };
            let Some(old) = &row.lease else { continue };
            let lease = self.new_lease(ttl_ms.unwrap_or(old.ttl_ms));
            // A repetition at the same log time changes nothing; the wall clock is a label and doesn't count.
            if (old.ttl_ms, old.until_ms) == (lease.ttl_ms, lease.until_ms) {
                continue;
            }
            if SeededBug::DampedRenewal.is_on() && old.until_ms > self.state.log_time_ms() + 1_000 {
                continue;
            }
            if !changed {
                changed = true;
                self.state.tick();
            }
            let Some(mut row) = self.state.allocations.get(*id).cloned() else { continue };
            row.lease = Some(Box::new(lease));
            self.state.rewrite_allocation(*id, row);
        }
    }

    /// Ends an expired lease with all other expired leases of its endpoint. A machine doesn't keep one family
    /// without the other. Returns the number of ended leases.
    pub(super) fn end_leases(&mut self, id: AllocationId) -> u64 {
        let now = self.state.ended_until_ms();
        let has_ended =
            |row: &Allocation| self.state.lease_of(row).is_some_and(|lease| lease.until_ms <= now);
        let endpoint = self.state.allocations.get(id).and_then(|row| self.state.endpoints.get(row.endpoint));
        let ids =
            endpoint.map_or_else(Vec::new, |row| self.state.filter_allocations(&row.allocations, has_ended));
        self.release_all(&ids, Reason::LeaseEnded).len() as u64
    }
}

impl State {
    /// Selected leases, oldest first.
    fn leases(&self, which: &Leases) -> Result<Vec<AllocationId>, Refusal> {
        let ids = match which {
            Leases::Allocation(id) if self.allocations.get(*id).is_none() => {
                return Err(Cause::LeaseGone { allocation: id.get() }.into());
            }
            Leases::Allocation(id) => vec![*id],
            Leases::Endpoint(key) if self.incarnations(key).next().is_none() => {
                return Err(Cause::LeasesGone { endpoint: key.clone() }.into());
            }
            Leases::Endpoint(key) => {
                let rows = self.incarnations(key).filter_map(|id| self.endpoints.get(id));
                rows.flat_map(|row| row.allocations.iter().copied()).collect()
            }
        };
        let leases = self.filter_allocations(&ids, |row| row.lease.is_some());
        if leases.is_empty() {
            return Err(Cause::NotLeased { which: which.clone() }.into());
        }
        Ok(leases)
    }
}
