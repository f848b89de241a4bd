//! Automatic pools as rows: they are made, grow, shrink as far as addresses are free, and give back the rest later.

use std::net::IpAddr;

use ipam_api::address::{AddressRange, number};
use ipam_api::limits::{COOLING_MS_DEFAULT, NAME_CHARS_MAX, RANGES_MAX};
use ipam_api::name::Name;
use ipam_api::resource::{ScaleDown, Strategy};
use ipam_api::{Family, RangeSet};

use crate::apply::step::Step;
use crate::apply::work::Work;
use crate::command::{Kind, PoolIntention, Remarks, Stored, Takers, Text};
use crate::event::What;
use crate::event::field_change::changes;
use crate::space::Space;
use crate::state::State;
use crate::state::id::{PoolId, SubnetId};
use crate::state::row::{Automatic, AutomaticStanding, Meta, Pool};
use crate::value::shape::ranges;

impl Space {
    /// Addresses that the pool gives, or has given.
    pub(crate) fn usable(&self) -> u128 {
        let counts = self.counts();
        counts.allocated + counts.cooling + counts.quarantined + counts.free
    }
}

impl Step<'_> {
    pub(crate) fn make_pool(&mut self, subnet: SubnetId, automatic: Automatic, reclaim: bool, of: &RangeSet) {
        let subnet_row = self.state.subnets.named(subnet).clone();
        let id = self.state.new_id();
        let intention = PoolIntention {
            name: self.state.automatic_name(&automatic, of.family()),
            subnet: subnet_row.intention.name.clone(),
            network: None,
            ranges: of.ranges().collect(),
            exclude: Vec::new(),
            strategy: Strategy::default(),
            cooling_ms: COOLING_MS_DEFAULT,
            strict_cooling: false,
            allow_edges: false,
            gateway: None,
            routes: Vec::new(),
            default: false,
            takers: Takers::default(),
            scale_down: ScaleDown::default(),
            disabled: false,
            terminating: false,
            drains_to: None,
            reclaim: Some(reclaim),
            // Whoever may take from the subnet by its labels may take from what is cut from it.
            remarks: Remarks { labels: subnet_row.intention.remarks.labels.clone(), ..Remarks::default() },
        };
        let name = intention.name.clone();
        let row = Pool { meta: self.new_meta(id), intention, subnet, automatic: Some(Box::new(automatic)) };
        self.state.index_pool(id, &row, &subnet_row);
        self.state.write(id, row);
        self.emit(What::Created { kind: Kind::Pool, name: (&name).into() });
        self.refresh_readiness(id);
    }

    /// Brings a pool to what its application now says, with `more` addresses and without those of `less`.
    pub(crate) fn use_pool(
        &mut self,
        id: PoolId,
        automatic: Automatic,
        reclaim: bool,
        (more, less): (&RangeSet, &RangeSet),
    ) {
        let Some(old) = self.state.pools.get(id).cloned() else { return };
        let mut intention = old.intention.clone();
        if !more.is_empty() || !less.is_empty() {
            let whole = RangeSet::new(more.family(), &intention.ranges);
            intention.ranges = whole.union(more).minus(less).ranges().collect();
        }
        (intention.reclaim, intention.terminating) = (Some(reclaim), false);
        self.rewrite(id, &old, intention, automatic, false);
    }

    /// Takes the addresses away that a pool has beyond what its application asks for, as far as they are free.
    pub(crate) fn trim_pool(&mut self, id: PoolId) {
        let Some(pool) = self.state.pools.get(id) else { return };
        let Some(automatic) = pool.automatic.as_deref() else { return };
        let less = self.state.too_many(id, automatic.wanted(), self.work);
        if !less.is_empty() {
            let (automatic, reclaim) = (automatic.clone(), pool.intention.reclaim.unwrap_or(true));
            self.use_pool(id, automatic, reclaim, (&RangeSet::empty(less.family()), &less));
        }
    }

    /// An application takes no more from a pool: it goes once it is empty.
    pub(crate) fn leave_pool(&mut self, id: PoolId, standing: AutomaticStanding) {
        let Some(old) = self.state.pools.get(id).cloned() else { return };
        let Some(automatic) = old.automatic.as_deref() else { return };
        let automatic = Automatic { standing, ..automatic.clone() };
        let intention = PoolIntention { terminating: true, ..old.intention.clone() };
        self.rewrite(id, &old, intention, automatic, false);
        self.remove_if_drained(id);
    }

    /// An address that became free goes back to its subnet, if its pool has more than its application asks for.
    pub(crate) fn shed(&mut self, id: PoolId, address: IpAddr, by_itself: bool) {
        let row = self.state.pools.named(id);
        let Some(automatic) = row.automatic.as_deref().filter(|_| !row.intention.terminating) else { return };
        let Some(space) = self.state.space(id) else { return };
        if space.usable() <= automatic.wanted() || !space.free.is_free(number(address)) {
            return;
        }
        let (old, automatic) = (row.clone(), automatic.clone());
        let family = Family::of(address);
        let less = RangeSet::new(family, &[AddressRange::single(address)]);
        let left = RangeSet::new(family, &old.intention.ranges).minus(&less);
        if left.ranges().count() > RANGES_MAX {
            // More pieces than a pool may have: it stays until there are fewer, and its application is scaled or asks.
            return;
        }
        let intention = PoolIntention { ranges: left.ranges().collect(), ..old.intention.clone() };
        self.rewrite(id, &old, intention, automatic, by_itself);
    }

    /// Writes an automatic pool's row as it now is, if that is otherwise. What happens by itself nobody has done.
    pub(crate) fn rewrite(
        &mut self,
        id: PoolId,
        old: &Pool,
        intention: PoolIntention,
        automatic: Automatic,
        by_itself: bool,
    ) {
        let automatic = Some(Box::new(automatic));
        if intention == old.intention {
            if automatic != old.automatic {
                self.state.tick();
                let row = Pool { automatic, ..old.clone() };
                self.state.write(id, row);
            }
            return;
        }
        let subnet = self.state.subnets.named(old.subnet).clone();
        let name = intention.name.clone();
        let changes = changes(&old.intention, &intention);
        self.change(Kind::Pool, &name, &old.meta, changes, |step, meta| {
            let meta = match by_itself {
                true => Meta { updated_by: Text::clone(&old.meta.updated_by), ..meta },
                false => meta,
            };
            let row = Pool { meta, intention, subnet: old.subnet, automatic };
            step.reindex_pool(id, old, row.clone(), &subnet);
            Stored::Pool(row)
        });
    }
}

impl State {
    /// The free addresses that a pool has beyond what is wanted of it.
    pub(crate) fn too_many(&self, id: PoolId, wanted: u128, work: &Work) -> RangeSet {
        let (Some(pool), Some(space)) = (self.pools.get(id), self.space(id)) else {
            return RangeSet::empty(Family::V4);
        };
        self.highest_free((id, pool), space.usable().saturating_sub(wanted), work)
    }

    /// So many of a pool's free addresses, the highest ones: what is left lies close together, and in no more ranges
    /// than a pool may have.
    fn highest_free(&self, (id, pool): (PoolId, &Pool), count: u128, work: &Work) -> RangeSet {
        let (Some(space), Some(subnet)) = (self.space(id), self.subnets.get(pool.subnet)) else {
            return RangeSet::empty(Family::V4);
        };
        let occupied = space.usable() - space.counts().free;
        // What is too much to look at stays until addresses of it are released.
        if count == 0 || space.counts().free == 0 || !work.has_left(occupied) {
            return RangeSet::empty(space.family);
        }
        let whole = ranges(&pool.intention, subnet.intention.cidr);
        let occupied: Vec<AddressRange> = whole
            .ranges()
            .flat_map(|range| self.occupied(subnet.network, range))
            .take_while(|_| work.take(1))
            .map(|(address, _)| AddressRange::single(address))
            .collect();
        let free = space.offered.minus(&RangeSet::new(space.family, &occupied));
        let mut highest: Vec<AddressRange> = free.ranges().collect();
        highest.reverse();
        let mut missing = count;
        let mut taken = Vec::new();
        // Each that goes leaves one more at most.
        let ranges_max = RANGES_MAX.saturating_sub(pool.intention.ranges.len());
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

    /// A name that no pool has: whose it is, and the number of its making.
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
                // Letters, digits and dashes between letters and digits are always a name.
                Err(_) => return Name::lowest(),
            }
        }
    }
}
