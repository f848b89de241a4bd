//! The time of a proposal, by its parts.

use std::time::Duration;

/// The time of a proposal by its parts, as the member knows it that took it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalTiming {
    /// This member leads.
    Here {
        /// Until it was on its way into the log.
        queue: Duration,
        /// Until a majority had it and it was to be applied.
        log: Duration,
        /// Until the commands of its entry were applied.
        apply: Duration,
    },
    /// It was passed on to the member that leads, and back.
    Forwarded(Duration),
}
