//! Time that a proposal took, by phase.

use std::time::Duration;

/// Time of a proposal by phase, as measured by the member that accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalTiming {
    /// The accepting member leads.
    Here {
        /// Time in the queue, until the proposal is appended to the log.
        queue: Duration,
        /// Time from there until a majority has the entry and it can be applied.
        log: Duration,
        /// Time to apply the commands of the entry.
        apply: Duration,
    },
    /// The proposal was forwarded to the leader; the time includes the answer.
    Forwarded(Duration),
}
