//! Reports of agents: each result changes the state according to the occupant of its address.
//!
//! The result is a claim of one node. So a node reports addresses of its links and its own allocations only,
//! and its unconfirmed quarantines are bounded.

use crate::apply::step::Step;
use crate::command::{Answer, ProbeResult, Refusal, ReportProbes};
use crate::state::id::{NetworkId, PoolId, QuarantineId, SubnetId};
use crate::state::row::{Allocation, Check, Network, Quarantine};
use crate::state::{Occupant, State};
use ipam_api::access::NodeKey;
use ipam_api::address::number;
use ipam_api::limits::PROBED_AHEAD_MAX;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Checks of one pool: those of the addresses next in line, and others that are still valid.
const CHECKS_PER_POOL_MAX: usize = 2 * PROBED_AHEAD_MAX;

/// Effect of one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The result changed the state.
    Recorded,
    /// A conflict above the bound of the node.
    Refused,
    /// The result changed nothing.
    Nothing,
}

impl Effect {
    pub(super) fn recorded(is_recorded: bool) -> Self {
        if is_recorded { Self::Recorded } else { Self::Nothing }
    }
}

/// One report.
pub(super) struct Report<'a> {
    pub(super) node: &'a NodeKey,
    /// Subnets whose link works: a station outside of the node answered.
    pub(super) alive: BTreeSet<SubnetId>,
}

impl State {
    /// The subnet whose link works, if an answering address proves that to a node.
    ///
    /// Containers of the node itself prove nothing: its own bridge delivers their answers without the wire.
    /// So the address is the gateway, or attached on another node.
    pub(super) fn proved_link(
        &self,
        node: &NodeKey,
        network: NetworkId,
        address: IpAddr,
    ) -> Option<SubnetId> {
        let (id, subnet) = self.subnet_at(network, address)?;
        let is_proof = match self.occupant(network, address) {
            Some(Occupant::Allocation(id)) => self.proves_link(self.allocations.named(id), node),
            _ => subnet.spec.gateway == Some(address),
        };
        (is_proof && self.is_on_link(node, &subnet.spec.network, address)).then_some(id)
    }

    /// Returns true if a node probes the subnet of an address, or did in the term before.
    pub(super) fn is_prober_at(&self, node: &NodeKey, network: NetworkId, address: IpAddr) -> bool {
        self.subnet_at(network, address).is_some_and(|of| self.is_prober_lately(node, of))
    }

    /// Returns true if an answer of an allocated address proves to a node that its link works: the address is
    /// on another node, and that node isn't silent, so that silent nodes prove nothing about each other.
    pub(super) fn proves_link(&self, row: &Allocation, node: &NodeKey) -> bool {
        row.node.is_some() && !self.is_suspect(row) && self.is_elsewhere(row, node)
    }
}

impl Step<'_> {
    pub(crate) fn report_probes(&mut self, request: &ReportProbes) -> Result<Answer, Refusal> {
        let node = &request.node;
        self.check_event_budget(node)?;
        let (events, mut recorded, mut refused) = (self.events.len(), 0, 0);
        let answered = request.results.iter().filter(|result| !result.macs.is_empty());
        let alive = answered.filter_map(|result| {
            let network = self.state.find::<Network>(&result.network)?;
            self.state.proved_link(node, network, result.address)
        });
        let report = Report { node, alive: alive.collect() };
        for result in &request.results {
            match self.take_result(&report, result) {
                Effect::Recorded => recorded += 1,
                Effect::Refused => refused += 1,
                Effect::Nothing => {}
            }
        }
        if recorded > 0 {
            self.state.tick();
        }
        let events = (self.events.len() - events) as u64;
        if events > 0 {
            self.spend_events(node, events);
        }
        Ok(Answer::Probed { recorded, refused })
    }

    fn take_result(&mut self, report: &Report<'_>, result: &ProbeResult) -> Effect {
        let Some(network) = self.state.find::<Network>(&result.network) else { return Effect::Nothing };
        let (node, address) = (report.node, result.address);
        if let Some(id) = result.allocation {
            return self.take_result_of_add(node, id, (network, address), &result.macs);
        }
        if !self.state.is_on_link(node, &result.network, address) {
            return Effect::Nothing;
        }
        match self.state.occupant(network, address) {
            Some(Occupant::Allocation(id)) => self.see(report, id, (network, address), &result.macs),
            Some(Occupant::Quarantine(id)) => {
                let is_prober = self.state.is_prober_at(node, network, address);
                self.probe_again(node, id, (is_prober, !result.macs.is_empty()))
            }
            // The last holder may still answer; the next ADD probes the address itself.
            Some(Occupant::Cooling(_)) => Effect::Nothing,
            None => self.take_result_of_free(node, (network, address), result),
        }
    }

    /// Result for an address without a holder.
    fn take_result_of_free(
        &mut self,
        node: &NodeKey,
        (network, address): (NetworkId, IpAddr),
        result: &ProbeResult,
    ) -> Effect {
        let Some(pool) = self.state.pool_at(network, address) else { return Effect::Nothing };
        let is_free = self.state.space_of(pool).free.is_free(number(address));
        // Only probers are trusted here: otherwise any node could check or quarantine any address.
        if !is_free
            || !self.state.probing(pool).conflicts()
            || !self.state.is_prober_at(node, network, address)
        {
            return Effect::Nothing;
        }
        match result.macs.first() {
            Some(_) if !self.may_quarantine(node) => Effect::Refused,
            Some(mac) => {
                self.quarantine((network, pool), address, *mac, node);
                Effect::Recorded
            }
            None => Effect::recorded(self.check_address(network, pool, address)),
        }
    }

    /// Records that a free address is unused. Returns false if the present check is valid for longer than
    /// half of its time, or if the pool has enough checks of free addresses.
    fn check_address(&mut self, network: NetworkId, pool: PoolId, address: IpAddr) -> bool {
        if !self.state.is_check_due(pool, number(address)) {
            return false;
        }
        let until_ms = self.state.log_time_ms().saturating_add(self.state.probing(pool).valid_ms());
        let space = self.state.space_of(pool);
        match space.checks.get(&number(address)).copied() {
            Some(id) => {
                let row = self.state.checks.named(id).clone();
                self.state.write(id, Check { until_ms, ..row });
            }
            None => {
                if space.checks.len() >= CHECKS_PER_POOL_MAX {
                    let Some(unusable) = self.state.unusable_check(pool) else { return false };
                    self.state.end_check(unusable);
                }
                let id = self.state.new_id();
                self.state.write(id, Check { address, network, pool, until_ms });
                self.state.space_mut(pool).checks.insert(number(address), id);
            }
        }
        true
    }

    /// Records a probe of a quarantined address. An answer to another agent confirms the quarantine. Silence
    /// ends it, if this agent can judge: it heard the host before, or the report was never confirmed, or no
    /// agent that heard the host is left.
    fn probe_again(
        &mut self,
        node: &NodeKey,
        id: QuarantineId,
        (is_prober, is_answered): (bool, bool),
    ) -> Effect {
        let row = self.state.quarantines.named(id).clone();
        let now_ms = self.state.log_time_ms();
        let is_due = self.state.is_recheck_due(&row);
        let is_other = row.reported_by != *node;
        let confirms = is_prober && is_other && row.confirmed_by.is_none();
        // Only probers and witnesses of the foreign host prolong or end a quarantine.
        if !is_prober && !row.is_heard_by(node) {
            return Effect::Nothing;
        }
        if is_answered {
            if !confirms && !is_due {
                return Effect::Nothing;
            }
            let confirmed_by = row.confirmed_by.clone().or_else(|| confirms.then(|| node.clone()));
            let heard_wall_ms = self.at.wall_ms;
            self.state.write(id, Quarantine { confirmed_by, heard_ms: now_ms, heard_wall_ms, ..row });
            return Effect::Recorded;
        }
        if confirms || (is_due && self.state.may_judge(node, &row)) {
            self.end_quarantine(id, Some(node));
            return Effect::Recorded;
        }
        Effect::Nothing
    }
}
