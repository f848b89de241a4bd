//! Verdict on the addresses of one workload: Spiderpool's table of pod states, with corrections.
//!
//! A verdict needs facts: without evidence the workload keeps its addresses. The uid that the facts are about
//! is the uid of the incarnation, so a newer workload of the same name is never judged by them.

use ipam_api::limits::WORKLOAD_OBSERVATION_MS_MAX;
use ipam_api::time::Timestamp;
use ipam_api::workload::WorkloadReason as Reason;
use ipam_api::workload::{Workload, WorkloadGone, WorkloadNodeState, WorkloadPhase};

/// Facts about a workload.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Report of the orchestrator.
    pub observed: &'a Workload,
    /// Facts of the replicated state about the same uid.
    pub known: Known,
}

/// Facts of the replicated state about an incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// True if the endpoint is sticky, and its controller or its policy keeps the addresses.
    pub is_wanted: bool,
    /// True if several attachments hold an address: a live migration, and the uid names only one side.
    pub is_shared: bool,
    /// Evidence about the node of the workload.
    pub node: NodeEvidence,
}

/// Evidence of the replicated state about the node of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeEvidence {
    /// No evidence.
    None,
    /// An address of the workload is on another node than the observed one.
    Elsewhere,
    /// The agent of the node was heard lately.
    Heard,
    /// The node is silent to the servers, and probes have found the addresses of the workload silent.
    Silent,
}

/// Switches of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// True if addresses of workloads that terminate or have finished on a ready node are reclaimed.
    pub terminating_on_ready_node: bool,
    /// True if addresses of workloads that terminate or have finished on a node that isn't ready are freed.
    pub terminating_on_gone_node: bool,
    /// True if addresses of workloads that run but report no addresses are reclaimed.
    pub running_without_addresses: bool,
    /// Additional grace after the end of a workload and after the end of its own grace.
    pub delay_ms: u64,
}

/// The defaults of Spiderpool.
impl Default for Switches {
    fn default() -> Self {
        Self {
            terminating_on_ready_node: true,
            terminating_on_gone_node: true,
            running_without_addresses: false,
            delay_ms: 0,
        }
    }
}

/// Verdict on the addresses of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The workload keeps its addresses.
    Keep(Reason),
    /// The workload keeps its addresses until a time.
    Later {
        /// Reason.
        reason: Reason,
        /// Time from which on the addresses are reclaimed.
        due_at: Timestamp,
    },
    /// The workload no longer exists, and its sticky endpoint keeps the addresses without an attachment.
    Detach(Reason),
    /// The addresses are released.
    Reclaim(Reason),
}

/// Judges the addresses of a workload.
#[must_use]
pub fn verdict(facts: Facts<'_>, switches: Switches, now: Timestamp) -> Verdict {
    let observed = facts.observed;
    if observed.host_network {
        return Verdict::Keep(Reason::HostNetwork);
    }
    let judged = match observed.gone {
        // A forced deletion precedes the end of the containers. The agent reports that end.
        WorkloadGone::Deleted | WorkloadGone::Absent if facts.known.node == NodeEvidence::Heard => {
            Verdict::Keep(Reason::NodeHeard)
        }
        WorkloadGone::Deleted => Verdict::Reclaim(Reason::Deleted),
        WorkloadGone::Absent => Verdict::Reclaim(Reason::Absent),
        WorkloadGone::None => Judge { facts, switches, now }.of_present(),
    };
    match judged {
        Verdict::Keep(_) => judged,
        _ if facts.known.is_shared => Verdict::Keep(Reason::Migrating),
        // An address that stays attached would survive a later scale-down.
        _ if facts.known.is_wanted && observed.gone != WorkloadGone::None => {
            Verdict::Detach(Reason::StickyWanted)
        }
        _ if facts.known.is_wanted => Verdict::Keep(Reason::StickyWanted),
        // A deleted uid never reappears. Other observations may be outdated, and deadlines need synchronised
        // clocks.
        Verdict::Reclaim(_) if observed.gone == WorkloadGone::None && is_stale(observed, now) => {
            Verdict::Keep(Reason::ObservationStale)
        }
        _ => judged,
    }
}

fn is_stale(observed: &Workload, now: Timestamp) -> bool {
    observed.observed_at.0.abs_diff(now.0) > WORKLOAD_OBSERVATION_MS_MAX
}

/// Node of a workload on which addresses may be reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Ready,
    Silent,
    Gone,
}

struct Judge<'a> {
    facts: Facts<'a>,
    switches: Switches,
    now: Timestamp,
}

impl Judge<'_> {
    /// Judges a workload that may still exist.
    fn of_present(&self) -> Verdict {
        let observed = self.facts.observed;
        match (observed.phase, observed.finished_at, observed.deletion_due_at) {
            (WorkloadPhase::Succeeded | WorkloadPhase::Failed, Some(finished_at), _) => {
                self.finished(finished_at)
            }
            (WorkloadPhase::Pending, _, due_at) => match (due_at, self.place()) {
                (Some(due_at), Ok(Place::Gone)) => self.terminating(due_at),
                _ => Verdict::Keep(Reason::Pending),
            },
            (_, _, Some(due_at)) => self.terminating(due_at),
            (WorkloadPhase::Succeeded | WorkloadPhase::Failed, None, None) => {
                Verdict::Keep(Reason::EndUnknown)
            }
            (WorkloadPhase::Running, _, None) if observed.has_addresses => Verdict::Keep(Reason::Running),
            (WorkloadPhase::Running, _, None) => {
                self.switched(self.switches.running_without_addresses, Reason::RunningWithoutAddresses)
            }
            (WorkloadPhase::Unknown, _, None) => Verdict::Keep(Reason::NoEvidence),
        }
    }

    /// Judges a workload whose containers have all ended, so that its own grace period is over.
    fn finished(&self, finished_at: Timestamp) -> Verdict {
        let due_at = self.after_delay(finished_at);
        if self.now < due_at {
            return Verdict::Later { reason: Reason::Finished, due_at };
        }
        match self.place() {
            Ok(Place::Ready) => self.switched(self.switches.terminating_on_ready_node, Reason::Finished),
            // The node has reported the end of the containers before it was lost.
            Ok(_) | Err(Reason::NodeNotReady | Reason::NodeHeard) => {
                self.switched(self.switches.terminating_on_gone_node, Reason::Finished)
            }
            Err(reason) => Verdict::Keep(reason),
        }
    }

    /// Judges a workload that terminates. Reported addresses don't matter, since they disappear before the
    /// containers end.
    fn terminating(&self, deletion_due_at: Timestamp) -> Verdict {
        let due_at = self.after_delay(deletion_due_at);
        if self.now < due_at {
            return Verdict::Later { reason: Reason::Terminating, due_at };
        }
        let Switches { terminating_on_ready_node, terminating_on_gone_node, .. } = self.switches;
        match self.place() {
            Ok(Place::Ready) => self.switched(terminating_on_ready_node, Reason::TerminatingOnReadyNode),
            Ok(Place::Silent) => self.switched(terminating_on_gone_node, Reason::TerminatingOnSilentNode),
            Ok(Place::Gone) => self.switched(terminating_on_gone_node, Reason::TerminatingOnGoneNode),
            Err(reason) => Verdict::Keep(reason),
        }
    }

    /// Node of the workload, or the reason for which nothing may be concluded from it.
    fn place(&self) -> Result<Place, Reason> {
        let observed = self.facts.observed;
        let Some(node) = &observed.node else { return Err(Reason::NodeUnknown) };
        match (self.facts.known.node, node.state) {
            (NodeEvidence::Elsewhere, _) => Err(Reason::NodeElsewhere),
            // A node that does not report the phase is not ready for the pod.
            (_, WorkloadNodeState::Ready) if observed.phase != WorkloadPhase::Unknown => Ok(Place::Ready),
            (NodeEvidence::Silent, WorkloadNodeState::Ready | WorkloadNodeState::NotReady) => {
                Ok(Place::Silent)
            }
            (_, WorkloadNodeState::Ready | WorkloadNodeState::NotReady) => Err(Reason::NodeNotReady),
            (NodeEvidence::Heard, WorkloadNodeState::Gone | WorkloadNodeState::OutOfService) => {
                Err(Reason::NodeHeard)
            }
            (_, WorkloadNodeState::Gone | WorkloadNodeState::OutOfService) => Ok(Place::Gone),
        }
    }

    fn after_delay(&self, time: Timestamp) -> Timestamp {
        Timestamp(time.0.saturating_add(self.switches.delay_ms))
    }

    fn switched(&self, is_on: bool, reason: Reason) -> Verdict {
        if is_on { Verdict::Reclaim(reason) } else { Verdict::Keep(Reason::SwitchedOff) }
    }
}
