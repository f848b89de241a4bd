//! Reclaim of attached allocations whose node no longer exists, or is silent to servers and probers.
//!
//! Each allocation is named by its id, and everything is checked again on the state that the command meets.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Reclaim, ReclaimReason, Refusal};
use crate::event::Reason;
use crate::seeded::SeededBug;
use crate::state::State;
use crate::state::id::{AllocationId, AttachmentId, Id};
use crate::state::row::NodeReport;
use ipam_api::access::NodeKey;
use ipam_api::limits::{PROBER_SILENCE_MS_MAX, SILENT_ROUNDS};
use ipam_api::resource::Lifecycle;
use std::net::IpAddr;

impl ReclaimReason {
    fn of_event(self) -> Reason {
        match self {
            Self::NodeGone => Reason::NodeGone,
            Self::NodeSilent { .. } => Reason::NodeSilent,
        }
    }
}

impl Step<'_> {
    pub(crate) fn reclaim(&mut self, request: &Reclaim) -> Result<Answer, Refusal> {
        let Reclaim { node, reason, allocations } = request;
        if let (ReclaimReason::NodeGone, Some((_, report))) = (reason, self.state.report_of(node)) {
            let heard_ms_ago = self.state.log_time_ms().saturating_sub(report.heard_ms);
            if heard_ms_ago <= PROBER_SILENCE_MS_MAX {
                return Err(Cause::NodeAlive { node: node.clone(), heard_ms_ago }.into());
            }
        }
        let (mut addresses, mut stale) = (Vec::new(), 0);
        for id in allocations {
            match self.state.is_reclaimable(*id, node, *reason) {
                true => addresses.extend(self.leave_node(*id, node, reason.of_event())),
                false => stale += 1,
            }
        }
        Ok(Answer::reclaimed(addresses, stale))
    }

    /// Removes the attachments of a node from an allocation. Frees it if none is left, unless it is kept.
    fn leave_node(&mut self, id: AllocationId, node: &NodeKey, reason: Reason) -> Vec<IpAddr> {
        let row = self.state.allocations.named(id).clone();
        let mut addresses = Vec::new();
        let attachments: Vec<AttachmentId> = self.state.attachments_on_node(&row, node).collect();
        for attachment in attachments {
            match self.state.outlives(id) {
                Some(outlives) => self.detach(id, attachment, outlives),
                None => addresses.extend(self.release_all(&[id], reason)),
            }
        }
        addresses.extend(self.release_preallocated(row.endpoint));
        addresses
    }
}

impl State {
    /// Returns true if an allocation is attached on a node and may be reclaimed for a reason.
    #[must_use]
    pub fn is_reclaimable(&self, id: AllocationId, node: &NodeKey, reason: ReclaimReason) -> bool {
        let Some(row) = self.allocations.get(id) else { return false };
        if row.lifecycle != Lifecycle::Attached || !self.is_attached_on(row, node) {
            return false;
        }
        match reason {
            ReclaimReason::NodeGone => true,
            ReclaimReason::NodeSilent { grace_ms } => {
                let (witnesses, rounds) = self.silence_of(id, node);
                self.is_silent(node, grace_ms) && is_proof(witnesses, rounds)
            }
        }
    }

    /// Number of live nodes on the link that heard an address before, and of silent rounds. All of these
    /// nodes have observed each of these rounds. Without a witness the silence proves nothing.
    fn silence_of(&self, id: AllocationId, node: &NodeKey) -> (usize, u32) {
        let row = self.allocations.named(id);
        // An attachment that was never heard may be behind a firewall, or routed.
        let neighbor = self.neighbors.get(id).filter(|neighbor| neighbor.attachment == row.attachment);
        let Some(neighbor) = neighbor else { return (0, 0) };
        let network = self.name_of_network(row.network);
        let is_witness = |other: &&NodeKey| {
            *other != node
                && !self.is_silent(other, PROBER_SILENCE_MS_MAX)
                && self.is_on_link(other, &network, row.address)
        };
        let now_ms = self.log_time_ms();
        let since_ms = self.report_of(node).map_or(0, |(_, report)| report.heard_ms);
        let rounds_of = |witness: &NodeKey| {
            let of = neighbor.silence.iter().find(|silence| silence.node == *witness);
            let fresh = of.filter(|of| of.is_recent(now_ms) && of.last_ms >= since_ms);
            fresh.map_or(0, |silence| silence.rounds)
        };
        let rounds: Vec<u32> = neighbor.heard_by.iter().filter(is_witness).map(rounds_of).collect();
        (rounds.len(), rounds.into_iter().min().unwrap_or(0))
    }

    /// Attached allocations of silent nodes after a place, the longest silent node first.
    pub fn suspects(&self, grace_ms: u64, after: Option<SuspectPlace>) -> impl Iterator<Item = Suspect<'_>> {
        let nodes = self.silent_nodes_from(grace_ms, after.map(|place| place.node));
        let rows = nodes.flat_map(move |(node, report)| {
            // The attachment at the position may have further allocations.
            let before = after
                .filter(|place| place.node == node)
                .map(|place| place.attachment.get().saturating_sub(1));
            let rows = self.attachments_on(&report.node, before.map(Id::new));
            rows.flat_map(move |(attachment, row)| {
                let place = move |id: &AllocationId| SuspectPlace { node, attachment, allocation: *id };
                row.allocations.iter().map(place).map(move |place| (place, report))
            })
        });
        rows.filter(move |(place, _)| after.is_none_or(|after| after < *place)).filter_map(
            |(place, report)| {
                let allocation = place.allocation;
                if self.allocations.named(allocation).lifecycle != Lifecycle::Attached {
                    return None;
                }
                let (witnesses, rounds) = self.silence_of(allocation, &report.node);
                Some(Suspect {
                    place,
                    report,
                    allocation,
                    witnesses,
                    rounds,
                    is_due: is_proof(witnesses, rounds),
                })
            },
        )
    }
}

/// Returns true if witnesses have found an address silent for enough rounds.
fn is_proof(witnesses: usize, rounds: u32) -> bool {
    SeededBug::HastyReclaim.is_on() || witnesses > 0 && rounds >= SILENT_ROUNDS
}

/// Position of a suspect in the order of all suspects. The position is constant while the node is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuspectPlace {
    /// Log time of the newest heartbeat of the node, and the number of its report.
    pub node: (u64, u64),
    pub attachment: AttachmentId,
    pub allocation: AllocationId,
}

/// Attached allocation of a silent node, with its evidence.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    pub place: SuspectPlace,
    pub report: &'a NodeReport,
    pub allocation: AllocationId,
    /// Number of live nodes that heard the address before.
    pub witnesses: usize,
    /// Number of silent rounds that all of these nodes have observed.
    pub rounds: u32,
    /// True if the allocation may be reclaimed.
    pub is_due: bool,
}
