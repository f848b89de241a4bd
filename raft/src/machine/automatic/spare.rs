//! Addresses of a subnet that are nobody's: no pool has them or leaves them out, and hosts may have them.

use std::ops::ControlFlow;
use std::sync::Arc;

use ipam_api::address::{AddressRange, number};
use ipam_api::limits::RANGES_MAX;
use ipam_api::{Family, RangeSet};
use ipnet::IpNet;

use crate::machine::free_set::FreeSet;
use crate::machine::gateway::gateway_key;
use crate::machine::index::Index;
use crate::machine::model::{Pool, Subnet};
use crate::machine::shape::{edges, owned};
use crate::machine::state::State;
use crate::machine::work::Work;

/// A subnet of which no pool owns anything.
pub(in crate::machine) fn all_spare(cidr: IpNet) -> FreeSet {
    let whole = AddressRange::of_cidr(cidr);
    let mut all = FreeSet::nothing_free(number(cidr.network()), cidr.max_prefix_len() - cidr.prefix_len());
    all.give(whole.first(), whole.last());
    all
}

impl Index {
    /// A pool owns its addresses from now on.
    pub(in crate::machine) fn own(&mut self, id: u64, pool: &Pool, subnet: &Subnet) {
        let mut spare = self.spare.get_mut(&pool.subnet).map(Arc::make_mut);
        for range in owned(&pool.intention, subnet.intention.cidr).ranges() {
            self.owners.insert((subnet.network, range.family(), range.first()), (range.last(), id));
            if let Some(spare) = &mut spare {
                spare.take(range.first(), range.last());
            }
        }
        if !pool.intention.exclude.is_empty() {
            self.excluding.insert((pool.subnet, id));
        }
        self.gateways.extend(gateway_key(id, &pool.intention, subnet));
    }

    /// A pool owns nothing any more.
    pub(in crate::machine) fn disown(&mut self, id: u64, pool: &Pool, subnet: &Subnet) {
        let mut spare = self.spare.get_mut(&pool.subnet).map(Arc::make_mut);
        for range in owned(&pool.intention, subnet.intention.cidr).ranges() {
            self.owners.remove(&(subnet.network, range.family(), range.first()));
            if let Some(spare) = &mut spare {
                spare.give(range.first(), range.last());
            }
        }
        self.excluding.remove(&(pool.subnet, id));
        if let Some(key) = gateway_key(id, &pool.intention, subnet) {
            self.gateways.remove(&key);
        }
    }
}

impl State {
    /// The lowest spare addresses of a subnet, so many or as many as there are, in as many ranges as a pool may have.
    /// Those that are planned for another pool of the same request are spare no more.
    pub(super) fn spare(&self, subnet: u64, count: u128, planned: &RangeSet, work: &Work) -> RangeSet {
        let mut all: Vec<AddressRange> = Vec::new();
        let (family, mut missing) = (planned.family(), count);
        let _ = self.visit_spare(subnet, planned, work, |first, last| {
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

    /// Each stretch of spare addresses, the lowest first.
    fn visit_spare(
        &self,
        subnet: u64,
        planned: &RangeSet,
        work: &Work,
        mut visit: impl FnMut(u128, u128) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (Some(row), Some(spare)) = (self.subnets.get(subnet), self.index.spare.get(&subnet)) else {
            return ControlFlow::Continue(());
        };
        let cidr = AddressRange::of_cidr(row.intention.cidr);
        let (network, family) = (row.network, cidr.family());
        let never = self.never_spare(subnet, family).union(planned);
        let reserved = self.index.reserved.get(&(network, family));
        let mut next = Some(cidr.first());
        // Not from one owner to the next: there may be many before anything is spare.
        while let Some(at) = next.and_then(|at| spare.lowest_from(at)).filter(|at| *at <= cidr.last()) {
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

    /// What of a subnet hosts don't have, and what pools that people made leave out on purpose.
    fn never_spare(&self, subnet: u64, family: Family) -> RangeSet {
        let Some(row) = self.subnets.get(subnet) else { return RangeSet::empty(family) };
        let special = row.intention.gateway.into_iter().chain(edges(row.intention.cidr));
        let special: Vec<AddressRange> = special.map(AddressRange::single).collect();
        RangeSet::new(family, &special).union(&self.excluded_in(subnet, family))
    }
}
