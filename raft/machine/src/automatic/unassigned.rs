//! Unassigned addresses of a subnet: no pool contains or excludes them, and hosts may have them.

use crate::apply::work::Work;
use crate::state::State;
use crate::state::id::SubnetId;
use crate::value::shape::edges;
use ipam_api::address::AddressRange;
use ipam_api::limits::RANGES_MAX;
use ipam_api::{Family, RangeSet};
use std::ops::ControlFlow;

impl State {
    /// Lowest unassigned addresses of a subnet, at most `count`, in as many ranges as a pool may have.
    /// Addresses planned for another pool of the same request don't count.
    pub(crate) fn unassigned(
        &self,
        subnet: SubnetId,
        count: u128,
        planned: &RangeSet,
        work: &Work,
    ) -> RangeSet {
        let mut all: Vec<AddressRange> = Vec::new();
        let (family, mut missing) = (planned.family(), count);
        let _ = self.visit_unassigned(subnet, planned, work, |first, last| {
            let last = last.min(first.saturating_add(missing.saturating_sub(1)));
            let follows = all.last().is_some_and(|range| range.last().checked_add(1) == Some(first));
            if missing == 0 || (all.len() >= RANGES_MAX && !follows) {
                return ControlFlow::Break(());
            }
            let begin = if follows { all.pop().map_or(first, |range| range.first()) } else { first };
            all.extend(AddressRange::new(family.address(begin), family.address(last)));
            missing -= last - first + 1;
            ControlFlow::Continue(())
        });
        RangeSet::new(family, &all)
    }

    /// Visits each stretch of spare addresses, the lowest first.
    fn visit_unassigned(
        &self,
        subnet: SubnetId,
        planned: &RangeSet,
        work: &Work,
        mut visit: impl FnMut(u128, u128) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (Some(row), Some(unassigned)) = (self.subnets.get(subnet), self.index.unassigned.get(&subnet))
        else {
            return ControlFlow::Continue(());
        };
        let cidr = AddressRange::of_cidr(row.spec.cidr);
        let (network, family) = (row.network, cidr.family());
        let never = self.never_unassigned(subnet, family).union(planned);
        let reserved = self.index.reserved.get(&(network, family));
        let mut next = Some(cidr.first());
        // The loop doesn't step from owner to owner: there may be many of them before the next spare address.
        while let Some(at) = next.and_then(|at| unassigned.lowest_from(at)).filter(|at| *at <= cidr.last()) {
            if !work.take(1) {
                break;
            }
            let (_, to) = self.owner_from(network, family, at);
            let (left_out, left_out_to) = never.stretch(at);
            let (kept, kept_to) = reserved.map_or((false, u128::MAX), |set| set.stretch(at));
            let (is_gateway, gateway_to) = self.gateway_stretch(network, family, at);
            let to = to.min(left_out_to).min(kept_to).min(gateway_to).min(cidr.last());
            if !left_out && !kept && !is_gateway {
                visit(at, to)?;
            }
            next = to.checked_add(1);
        }
        ControlFlow::Continue(())
    }

    /// Addresses that hosts can't use, that the subnet's rules forbid, or that pools exclude.
    fn never_unassigned(&self, subnet: SubnetId, family: Family) -> RangeSet {
        let row = self.subnets.named(subnet);
        let whole = RangeSet::new(family, &[AddressRange::of_cidr(row.spec.cidr)]);
        let Some(rules) = &row.spec.automatic else { return whole };
        let forbidden = whole.minus(&rules.allowed(row.spec.cidr));
        let special = row.spec.gateway.into_iter().chain(edges(row.spec.cidr));
        let special: Vec<AddressRange> = special.map(AddressRange::single).collect();
        RangeSet::new(family, &special).union(&forbidden).union(&self.excluded_in(subnet, family))
    }
}
