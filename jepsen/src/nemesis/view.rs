//! View: the part of a system that a nemesis may use.

/// State of the system at the moment in which a nemesis chooses.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Names of all members, in order.
    pub members: Vec<String>,
    /// Names of members whose process runs.
    pub running: Vec<String>,
    /// Leader, if one is known.
    pub leader: Option<String>,
    /// Names of hosts with an agent, and of those where clients run.
    pub hosts: Vec<String>,
    /// Names of members without a fault: running, and not paused, cut off, slow or full.
    pub healthy: Vec<String>,
}

impl View {
    /// Number of members whose loss stops no cluster.
    #[must_use]
    pub fn minority(&self) -> usize {
        self.members.len().saturating_sub(1) / 2
    }

    /// Smallest number of members whose loss stops the cluster.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.len().saturating_sub(self.minority())
    }
}
