//! Automatic pools as rows: creation, growth, and shrinking as far as addresses are free.

use crate::apply::step::Step;
use crate::apply::work::Work;
use crate::command::{Metadata, PoolSpec};
use crate::state::State;
use crate::state::id::{PoolId, SubnetId};
use crate::state::row::{Automatic, AutomaticStanding, Pool};
use crate::value::shape::ranges;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::{COOLING_MS_DEFAULT, NAME_CHARS_MAX, RANGES_MAX};
use ipam_api::name::Name;
use ipam_api::{Family, RangeSet};
use std::net::IpAddr;

impl Step<'_> {
    pub(super) fn make_pool(&mut self, subnet: SubnetId, automatic: Automatic, reclaim: bool, of: &RangeSet) {
        let subnet_row = self.state.subnets.named(subnet).clone();
        let id = self.state.new_id();
        let spec = PoolSpec {
            name: self.state.automatic_name(&automatic, of.family()),
            subnet: subnet_row.spec.name.clone(),
            ranges: of.ranges().collect(),
            cooling_ms: COOLING_MS_DEFAULT,
            reclaim: Some(reclaim),
            // A requester whose labels permit the subnet may use pools that are cut from it.
            metadata: Metadata { labels: subnet_row.spec.metadata.labels.clone(), ..Metadata::default() },
            ..PoolSpec::default()
        };
        self.write_new_pool(id, spec, subnet, Some(Box::new(automatic)));
    }

    /// Adapts a pool to its application's request: adds the addresses of `more`, removes those of `less`.
    pub(super) fn use_pool(
        &mut self,
        id: PoolId,
        automatic: Automatic,
        reclaim: bool,
        (more, less): (&RangeSet, &RangeSet),
    ) {
        let mut pool = self.state.pools.named(id).clone();
        pool.automatic = Some(Box::new(automatic));
        if !more.is_empty() || !less.is_empty() {
            let whole = RangeSet::new(more.family(), &pool.spec.ranges);
            pool.spec.ranges = whole.union(more).minus(less).ranges().collect();
        }
        (pool.spec.reclaim, pool.spec.terminating) = (Some(reclaim), false);
        self.rewrite_if_otherwise(id, pool, false);
    }

    /// Removes free addresses of a pool above its desired size.
    pub(super) fn trim_pool(&mut self, id: PoolId) {
        let pool = self.state.pools.named(id);
        let Some(automatic) = pool.automatic.as_deref() else { return };
        let less = self.state.too_many(id, automatic.wanted(), self.work);
        if !less.is_empty() {
            let (automatic, reclaim) = (automatic.clone(), pool.spec.reclaim.unwrap_or(true));
            self.use_pool(id, automatic, reclaim, (&RangeSet::empty(less.family()), &less));
        }
    }

    /// Marks a pool that its application has left: it is deleted once it is empty.
    pub(super) fn leave_pool(&mut self, id: PoolId, standing: AutomaticStanding) {
        let mut pool = self.state.pools.named(id).clone();
        let Some(automatic) = pool.automatic.as_deref_mut() else { return };
        automatic.standing = standing;
        pool.spec.terminating = true;
        self.rewrite_if_otherwise(id, pool, false);
        self.remove_if_drained(id);
    }

    /// Returns a freed address to its subnet if the pool is above its desired size.
    pub(crate) fn shed(&mut self, id: PoolId, address: IpAddr, by_itself: bool) {
        let row = self.state.pools.named(id);
        let Some(automatic) = row.automatic.as_deref().filter(|_| !row.spec.terminating) else { return };
        let space = self.state.space_of(id);
        if space.usable() <= automatic.wanted() || !space.free.is_free(number(address)) {
            return;
        }
        let mut pool = row.clone();
        let family = Family::of(address);
        let less = RangeSet::new(family, &[AddressRange::single(address)]);
        let left = RangeSet::new(family, &pool.spec.ranges).minus(&less);
        if left.ranges().count() > RANGES_MAX {
            // The pool would have too many ranges: the address stays until there are fewer, or until the next
            // request or scaling.
            return;
        }
        pool.spec.ranges = left.ranges().collect();
        self.rewrite_if_otherwise(id, pool, by_itself);
    }

    /// Writes the row of an automatic pool if it has changed.
    pub(super) fn rewrite_if_otherwise(&mut self, id: PoolId, pool: Pool, by_itself: bool) {
        let old = self.state.pools.named(id);
        if pool.spec != old.spec {
            self.rewrite_pool(id, pool, by_itself);
        } else if pool.automatic != old.automatic {
            self.state.tick();
            self.state.write(id, pool);
        }
    }
}

impl State {
    /// Free addresses of a pool above its desired size, highest first. The rest then lies close together, in
    /// no more ranges than a pool may have.
    pub(super) fn too_many(&self, id: PoolId, wanted: u128, work: &Work) -> RangeSet {
        let (Some(pool), Some(space)) = (self.pools.get(id), self.space(id)) else {
            return RangeSet::empty(Family::V4);
        };
        let subnet = self.subnets.named(pool.subnet);
        let mut missing = space.usable().saturating_sub(wanted);
        let occupied = space.usable() - space.counts().free;
        // Ranges above the budget stay until addresses of them are released.
        if missing == 0 || space.counts().free == 0 || !work.has_left(occupied) {
            return RangeSet::empty(space.family);
        }
        let whole = ranges(&pool.spec, subnet.spec.cidr);
        let occupied: Vec<AddressRange> = whole
            .ranges()
            .flat_map(|range| self.occupied(subnet.network, range))
            .take_while(|_| work.take(1))
            .map(|(address, _)| AddressRange::single(address))
            .collect();
        let free = space.offered.minus(&RangeSet::new(space.family, &occupied));
        let mut highest: Vec<AddressRange> = free.ranges().collect();
        highest.reverse();
        let mut taken = Vec::new();
        // Each removed address leaves one more range at most.
        let ranges_max = RANGES_MAX.saturating_sub(pool.spec.ranges.len());
        for range in highest {
            if missing == 0 || taken.len() >= ranges_max {
                break;
            }
            let first = range.first().max(range.last().saturating_sub(missing - 1));
            missing -= range.last() - first + 1;
            taken.extend(AddressRange::new(space.family.address(first), range.last_address()));
        }
        RangeSet::new(space.family, &taken)
    }

    /// Unused name of a pool: its application, and a number.
    fn automatic_name(&self, automatic: &Automatic, family: Family) -> Name {
        let plain = |text: &str| -> String {
            let plain = |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '-' };
            text.bytes().map(plain).map(|char| char.to_ascii_lowercase()).collect()
        };
        let version = if family == Family::V4 { 4 } else { 6 };
        let (application, interface) =
            (plain(automatic.controller.name.as_str()), plain(automatic.interface.as_str()));
        let mut number = self.header.counter;
        loop {
            let end = format!("-{interface}-{number}");
            let room = NAME_CHARS_MAX.saturating_sub("auto4-".len() + end.len());
            let cut: String = application.chars().take(room).collect();
            match Name::new(&format!("auto{version}-{cut}{end}")) {
                Ok(name) if self.find::<Pool>(&name).is_some() => number += 1,
                Ok(name) => return name,
                // Letters, digits and dashes between letters and digits always form a valid name.
                Err(_) => return Name::lowest(),
            }
        }
    }
}
