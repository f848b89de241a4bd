//! Jobs of a prober: the addresses that it is to probe next, derived from the state alone.
//!
//! Every member derives the same jobs, and stores none of them: an agent that fails loses its subnets once it
//! is silent, or with the next term at the latest. Order: quarantines that are due, addresses of silent
//! nodes, addresses next in line, and a sweep of all allocated ones.

use crate::state::id::{AllocationId, NetworkId, PoolId, SubnetId};
use crate::state::row::{Neighbor, Quarantine, Subnet};
use crate::state::{Occupant, State};
use ipam_api::access::NodeKey;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::{HEARD_BY_MAX, NODE_GRACE_MS_MIN, PROBED_AHEAD_MAX, SILENT_ROUND_MS_MIN};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Silent nodes that are examined for one batch.
const SILENT_NODES_MAX: usize = 1_024;
/// Allocated addresses that are examined for one batch, to find those of silent nodes and answering ones.
const EXAMINED_MAX: usize = 4_096;
/// Addresses of one batch whose answers prove that the link works.
const LINK_PROOFS: usize = 4;

/// Position of a sweep over allocated addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sweep {
    pub subnet: SubnetId,
    /// Last address of the previous batch.
    pub after: Option<IpAddr>,
}

impl Sweep {
    /// Position before all subnets: a sweep begins.
    pub const START: Self = Self { subnet: SubnetId::MIN, after: None };
}

/// Jobs of one batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeJobs {
    pub addresses: BTreeSet<(NetworkId, IpAddr)>,
    /// Position of the next batch; none at the end of a sweep.
    pub next: Option<Sweep>,
}

impl ProbeJobs {
    fn has_room(&self, limit: usize) -> bool {
        self.addresses.len() < limit
    }
}

impl State {
    /// Returns true if a node probes a subnet now.
    #[must_use]
    pub fn has_probes(&self, node: &NodeKey) -> bool {
        let Some((_, report)) = self.report_of(node) else { return false };
        let seen = self.subnets_on_links_of(report);
        let is_prober = |(id, row): &(SubnetId, &Subnet)| self.is_probed_by(*id, row, node);
        seen.iter().any(is_prober)
            || self.suspects_for(node, &seen).next().is_some()
            || self.quarantines_for(node, &seen).next().is_some()
    }

    /// Returns true if a node is a prober of a subnet whose addresses are probed.
    fn is_probed_by(&self, id: SubnetId, row: &Subnet, node: &NodeKey) -> bool {
        self.is_probed(id) && self.is_prober(node, (id, row), self.prober_term())
    }

    /// Jobs of a node, at most `limit`. The agent starts each sweep at [`Sweep::START`]. Log time can't
    /// schedule sweeps: in an idle cluster it advances only with heartbeats.
    #[must_use]
    pub fn probe_jobs(&self, node: &NodeKey, sweep: Option<Sweep>, limit: usize) -> ProbeJobs {
        let mut jobs = ProbeJobs::default();
        let Some((_, report)) = self.report_of(node) else { return jobs };
        let seen = self.subnets_on_links_of(report);
        // Each kind leaves room for the following kinds.
        let quarantines = self.quarantines_for(node, &seen).take(limit.div_ceil(4));
        jobs.addresses.extend(quarantines.map(|row| (row.network, row.address)));
        self.add_suspects(&mut jobs, node, &seen, limit.div_ceil(2));
        let mut subnets = seen;
        subnets.retain(|(id, row)| self.is_probed_by(*id, row, node));
        let most_ahead = limit - limit / 4;
        for (id, row) in &subnets {
            for pool in self.pools_of(*id) {
                if !jobs.has_room(most_ahead) {
                    break;
                }
                if self.probing(pool).conflicts() {
                    self.add_ahead(&mut jobs, row.network, pool, most_ahead);
                }
            }
        }
        match sweep {
            None => self.add_unheard(&mut jobs, node, &subnets, limit),
            Some(sweep) => self.add_sweep(&mut jobs, &subnets, sweep, limit),
        }
        jobs
    }

    /// Quarantines that a node probes again: those that no other node has confirmed, and those that are due.
    fn quarantines_for<'a>(
        &'a self,
        node: &'a NodeKey,
        seen: &'a [(SubnetId, &'a Subnet)],
    ) -> impl Iterator<Item = &'a Quarantine> + use<'a> {
        let all = seen.iter().flat_map(|(id, subnet)| {
            let mut rows = self.quarantines_in(subnet.network, subnet.spec.cidr).peekable();
            let is_prober = rows.peek().is_some() && self.is_probed_by(*id, subnet, node);
            rows.map(move |row| (is_prober, row))
        });
        let due = all.take(EXAMINED_MAX).filter(|(is_prober, row)| {
            let is_news = row.confirmed_by.is_none() && row.reported_by != *node;
            let is_due = self.is_recheck_due(row) && self.may_judge(node, row);
            is_due && row.is_heard_by(node) || (is_due || is_news) && *is_prober
        });
        due.map(|(_, row)| row)
    }

    /// Adds addresses next in line that need a check.
    fn add_ahead(&self, jobs: &mut ProbeJobs, network: NetworkId, pool: PoolId, limit: usize) {
        if self.closed_reason(pool, &self.pools.named(pool).spec).is_some() {
            return;
        }
        for address in self.next_in_line(pool, PROBED_AHEAD_MAX) {
            if jobs.has_room(limit) && self.is_check_due(pool, number(address)) {
                jobs.addresses.insert((network, address));
            }
        }
    }

    /// Addresses that a pool would allocate next, in order.
    pub(crate) fn next_in_line(&self, pool: PoolId, most: usize) -> Vec<IpAddr> {
        let space = self.space_of(pool);
        let start = self.next_from(pool);
        let mut all = Vec::new();
        let mut from = start;
        let mut is_wrapped = start == 0;
        while all.len() < most {
            match space.free.lowest_from(from) {
                Some(next) if is_wrapped && start > 0 && next >= start => break,
                Some(next) => {
                    all.push(space.family.address(next));
                    let Some(behind) = next.checked_add(1) else { break };
                    from = behind;
                }
                None if is_wrapped => break,
                None => (from, is_wrapped) = (0, true),
            }
        }
        all
    }

    /// Next address of a pool for a replacement allocation: a checked address, if there is one. A closed pool
    /// has none.
    pub(crate) fn next_address(&self, pool: PoolId) -> Option<IpAddr> {
        if self.closed_reason(pool, &self.pools.named(pool).spec).is_some() {
            return None;
        }
        let checked = self.next_checked(pool, self.space_of(pool), |_| true);
        checked.or_else(|| self.next_in_line(pool, 1).first().copied())
    }

    /// Adds addresses of silent nodes that this node heard before, and some that answer, of the same subnet.
    fn add_suspects(&self, jobs: &mut ProbeJobs, node: &NodeKey, seen: &[(SubnetId, &Subnet)], limit: usize) {
        let mut subnets: BTreeMap<SubnetId, bool> = BTreeMap::new();
        for (id, subnet) in self.suspects_for(node, seen) {
            if !jobs.has_room(limit) {
                break;
            }
            let can_judge = *subnets.entry(subnet).or_insert_with(|| {
                let row = seen.iter().find(|(id, _)| *id == subnet).map(|(_, row)| *row);
                let answering = row.map(|row| self.answering(node, subnet, row)).unwrap_or_default();
                let has_room = jobs.has_room(limit.saturating_sub(answering.len()));
                let can_judge = has_room && !answering.is_empty();
                jobs.addresses.extend(answering.into_iter().filter(|_| can_judge));
                can_judge
            });
            if can_judge {
                let row = self.allocations.named(id);
                jobs.addresses.insert((row.network, row.address));
            }
        }
    }

    /// Allocations of silent nodes that this node heard before and whose next silent round is due.
    ///
    /// Each round starts with another silent node, so that nodes whose addresses can't be judged don't block
    /// the others.
    fn suspects_for<'a>(
        &'a self,
        node: &'a NodeKey,
        seen: &'a [(SubnetId, &'a Subnet)],
    ) -> impl Iterator<Item = (AllocationId, SubnetId)> + use<'a> {
        let silent = self.silent_nodes(NODE_GRACE_MS_MIN).map(|report| &report.node);
        let with_attachments = silent.filter(|node| self.attachments_on(node, None).next().is_some());
        let mut silent: Vec<&NodeKey> = with_attachments.take(SILENT_NODES_MAX).collect();
        let rounds = usize::try_from(self.log_time_ms() / SILENT_ROUND_MS_MIN).unwrap_or_default();
        let first = rounds.checked_rem(silent.len()).unwrap_or_default();
        silent.rotate_left(first);
        let attachments = silent.into_iter().flat_map(|node| self.attachments_on(node, None));
        let ids = attachments.flat_map(|(_, row)| row.allocations.iter().copied()).take(EXAMINED_MAX);
        ids.filter_map(|id| Some((id, self.due_suspect(id, node, seen)?)))
    }

    /// The subnet of a suspect address whose next silent round is due.
    fn due_suspect(
        &self,
        id: AllocationId,
        node: &NodeKey,
        seen: &[(SubnetId, &Subnet)],
    ) -> Option<SubnetId> {
        let row = self.allocations.named(id);
        let is_witnessed = |one: &&Neighbor| one.attachment == row.attachment && one.heard_by.contains(node);
        let neighbor = self.neighbors.get(id).filter(is_witnessed)?;
        let is_early = neighbor.silence.iter().any(|silence| {
            let next_ms = silence.last_ms.saturating_add(SILENT_ROUND_MS_MIN);
            silence.node == *node && next_ms > self.log_time_ms()
        });
        let subnet = self.pools.named(row.pool).subnet;
        (!is_early && seen.iter().any(|(id, _)| *id == subnet)).then_some(subnet)
    }

    /// The gateway, and addresses on other live nodes that this node heard: they prove that its link works.
    fn answering(&self, node: &NodeKey, id: SubnetId, row: &Subnet) -> Vec<(NetworkId, IpAddr)> {
        let occupied = self.occupied(row.network, AddressRange::of_cidr(row.spec.cidr)).take(EXAMINED_MAX);
        let answering = occupied.filter(|(_, occupant)| {
            let Occupant::Allocation(held) = occupant else { return false };
            let row = self.allocations.named(*held);
            let neighbor = self.neighbors.get(*held);
            let is_heard = neighbor.is_some_and(|one| one.heard_by.contains(node) && one.silence.is_empty());
            is_heard && self.proves_link(row, node) && self.pools.named(row.pool).subnet == id
        });
        let answering = answering.take(LINK_PROOFS).map(|(address, _)| (row.network, address));
        row.spec.gateway.map(|gateway| (row.network, gateway)).into_iter().chain(answering).collect()
    }

    /// Adds allocated addresses that this node has not heard yet: between two sweeps, the new ones.
    fn add_unheard(
        &self,
        jobs: &mut ProbeJobs,
        node: &NodeKey,
        subnets: &[(SubnetId, &Subnet)],
        limit: usize,
    ) {
        let all = subnets.iter().flat_map(|(_, row)| {
            let occupied = self.occupied(row.network, AddressRange::of_cidr(row.spec.cidr));
            occupied.take(EXAMINED_MAX).map(|(address, occupant)| (row.network, address, occupant))
        });
        for (network, address, occupant) in all {
            let Occupant::Allocation(id) = occupant else { continue };
            if !jobs.has_room(limit) {
                break;
            }
            let row = self.allocations.named(id);
            let is_heard = self.neighbors.get(id).is_some_and(|one| {
                one.attachment == row.attachment
                    && (one.heard_by.contains(node) || one.heard_by.len() >= HEARD_BY_MAX)
            });
            if !is_heard && self.is_elsewhere(row, node) && self.probing(row.pool).conflicts() {
                jobs.addresses.insert((network, address));
            }
        }
    }

    /// Adds allocated addresses from a position on.
    fn add_sweep(&self, jobs: &mut ProbeJobs, subnets: &[(SubnetId, &Subnet)], sweep: Sweep, limit: usize) {
        for (id, row) in subnets.iter().filter(|(id, _)| *id >= sweep.subnet) {
            let after = sweep.after.filter(|_| *id == sweep.subnet);
            let all = AddressRange::of_cidr(row.spec.cidr);
            let from = match after.map(number).map(|after| after.checked_add(1)) {
                None => all.first(),
                Some(Some(from)) if from <= all.last() => from.max(all.first()),
                Some(_) => continue,
            };
            let family = all.family();
            let Ok(rest) = AddressRange::new(family.address(from), all.last_address()) else { continue };
            let mut last = after;
            for (examined, (address, occupant)) in self.occupied(row.network, rest).enumerate() {
                if !jobs.has_room(limit) || examined >= EXAMINED_MAX {
                    jobs.next = Some(Sweep { subnet: *id, after: last });
                    return;
                }
                last = Some(address);
                if let Occupant::Allocation(held) = occupant
                    && self.probing(self.allocations.named(held).pool).conflicts()
                {
                    jobs.addresses.insert((row.network, address));
                }
            }
        }
    }
}
