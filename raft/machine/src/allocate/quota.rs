//! Quotas of a request: the refusal above a limit, and the missing quota of a waiting request.

use crate::allocate::candidates::Candidate;
use crate::allocate::choosing::Choosing;
use crate::allocate::pick::Pick;
use crate::command::Refusal;
use crate::state::id::AllocationId;
use crate::state::row::{QuotaScope, WaitTarget};
use crate::state::scopes::Bound;
use ipam_api::Family;

pub use crate::state::key::QuotaUsage;

impl<'a> Choosing<'a> {
    /// First quota that a request would exceed, with the requested number.
    fn exceeded(self, picks: &[Pick], left: &[AllocationId]) -> Option<(Bound, u64)> {
        let (request, row) = (self.request, self.row);
        if picks.is_empty() {
            return None;
        }
        let quota = self.state.quota_of(&request.endpoint.realm, &request.endpoint.namespace)?;
        let before = row.and_then(|row| row.controller.as_deref());
        let controller = request.stickiness.controller.as_ref().or(before);
        for scope in QuotaScope::all_of(&request.endpoint, controller) {
            for family in Family::BOTH {
                let is_new =
                    |pick: &&Pick| Family::of(pick.address) == family && self.state.counts_given(pick.pool);
                let asked = picks.iter().filter(is_new).count() as u64;
                if asked == 0 {
                    continue;
                }
                let Some(mut bound) = self.state.bound(quota, scope.clone(), family) else { continue };
                // An endpoint that changes its application takes its addresses along.
                bound.used += row.map_or(0, |row| self.state.brought(row, &scope, family));
                if (bound.used + asked).saturating_sub(self.state.given_to(left, family)) > bound.limit {
                    return Some((bound, asked));
                }
            }
        }
        None
    }

    /// Refuses allocations above a quota.
    pub(super) fn check_quota(self, picks: &[Pick], left: &[AllocationId]) -> Result<(), Refusal> {
        self.exceeded(picks, left).map_or(Ok(()), |(bound, asked)| Err(bound.refusal(asked)))
    }

    /// Missing quota of a waiting request whose pools could serve all of it.
    pub(super) fn missing_of_quota(self, picks: &[Pick]) -> Vec<(WaitTarget, u32)> {
        let exceeded = self.exceeded(picks, &[]);
        let lacking = exceeded.map(|(Bound { scope, family, .. }, asked)| {
            let brought = self.row.map_or(0, |row| self.state.brought(row, &scope, family));
            (WaitTarget::Quota(scope, family), u32::try_from(asked + brought).unwrap_or(u32::MAX))
        });
        lacking.into_iter().collect()
    }

    /// Refusal for an automatic pool that a quota keeps below its size.
    pub(super) fn stunted(self, candidate: Candidate<'_>, family: Family) -> Option<Refusal> {
        let automatic = candidate.pool.automatic.as_deref()?;
        let lacking = automatic.wanted().checked_sub(self.state.space(candidate.id)?.usable())?;
        let mut used_up =
            self.state.bounds(&automatic.application(), family).filter(|bound| bound.room() == 0);
        let bound = used_up.next().filter(|_| lacking > 0)?;
        Some(bound.refusal(u64::try_from(lacking).unwrap_or(u64::MAX)))
    }
}
