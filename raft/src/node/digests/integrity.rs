//! The integrity of this member's state: whether it believes it, and what members say of theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::super::config::Timing;
use super::super::counters::Counters;
use super::awaited::Awaited;
use super::trust::Trust;
use crate::store::SharedState;
use crate::sync::held;
use crate::transport::{Report, Said};
use ipam_machine::level;

/// What is known about the state of this member and of the others.
pub(in super::super) struct Integrity {
    /// Whether this member believes its own state.
    pub(in super::super) trust: Trust,
    /// A snapshot that it has asked for.
    pub(in super::super) awaited: Awaited,
    /// What the members said of themselves when they were last asked.
    pub(in super::super) reports: Mutex<BTreeMap<u64, Said>>,
    pub(in super::super) state: SharedState,
    pub(in super::super) counters: Arc<Counters>,
    pub(in super::super) timing: Timing,
}

impl Integrity {
    /// What this member tells the others.
    pub(in super::super) fn report(&self) -> Report {
        Report { checkpoints: self.state.checkpoints(), waits: self.trust.waits(), said: self.said() }
    }

    /// What this member says of itself.
    pub(in super::super) fn said(&self) -> Said {
        Said {
            doubt: self.trust.why_not(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            level: level::known(),
        }
    }

    /// What a member said of itself when it was last asked.
    pub(in super::super) fn said_by(&self, id: u64) -> Option<Said> {
        held(&self.reports).get(&id).cloned()
    }
}
