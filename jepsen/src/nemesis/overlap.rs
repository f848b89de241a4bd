//! Overlap: pairs of faults that may be active at the same time.

use std::mem::discriminant;

use super::{Fault, Kind};

impl Fault {
    /// True for a fault that destroys data or changes the set of members: no other fault may be active.
    ///
    /// The documented guarantees cover the loss of a minority, and one such loss at a time.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        matches!(
            self.kind,
            Kind::Corrupt { .. }
                | Kind::Wipe { .. }
                | Kind::Membership { .. }
                | Kind::Restore
                | Kind::Restart { .. }
                | Kind::Upgrade { .. }
                | Kind::TransferLeader { .. }
        )
    }

    /// True if this fault may begin while the other one is active.
    #[must_use]
    pub fn may_overlap(&self, other: &Self) -> bool {
        let is_same = discriminant(&self.kind) == discriminant(&other.kind);
        // The agents of a lost host are lost already.
        let takes_node = |fault: &Self| matches!(fault.kind, Kind::Agents { .. } | Kind::Nodes { .. });
        // A frozen file system can be neither filled nor shut down.
        let takes_disk = |fault: &Self| {
            matches!(fault.kind, Kind::StalledDisk { .. } | Kind::FullDisk { .. } | Kind::Power { .. })
        };
        // The servers choose the addresses of a foreign station, and may not answer under another fault.
        let asks_servers = matches!(self.kind, Kind::ForeignStation { .. });
        !(is_same
            || asks_servers
            || self.is_exclusive()
            || other.is_exclusive()
            || takes_node(self) && takes_node(other)
            || takes_disk(self) && takes_disk(other))
    }
}
