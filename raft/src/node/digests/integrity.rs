//! Integrity of the state: this member's trust in its own state, and the reports of all members.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::super::config::Timing;
use super::super::counters::Counters;
use super::awaited::Awaited;
use super::trust::Trust;
use crate::store::SharedState;
use crate::sync::held;
use crate::transport::{PeerReport, Report};
use ipam_machine::level;

/// Knowledge about the state of this member and of the others.
pub(in super::super) struct Integrity {
    /// Trust of this member in its own state.
    pub(in super::super) trust: Trust,
    /// Requested snapshot.
    pub(in super::super) awaited: Awaited,
    /// Last reports of the members about themselves.
    pub(in super::super) reports: Mutex<BTreeMap<u64, PeerReport>>,
    pub(in super::super) state: SharedState,
    pub(in super::super) counters: Arc<Counters>,
    pub(in super::super) timing: Timing,
}

impl Integrity {
    /// The report of this member to the others.
    pub(in super::super) fn report(&self) -> Report {
        Report {
            checkpoints: self.state.checkpoints(),
            waits: self.trust.waits(),
            peer_report: self.peer_report(),
        }
    }

    /// Returns this member's report about its quarantine, program version and level.
    pub(in super::super) fn peer_report(&self) -> PeerReport {
        PeerReport {
            quarantine: self.trust.quarantine_reason(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            level: level::known(),
        }
    }

    /// Last report of a member about itself.
    pub(in super::super) fn report_of(&self, id: u64) -> Option<PeerReport> {
        held(&self.reports).get(&id).cloned()
    }
}
