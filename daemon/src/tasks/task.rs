//! The tasks, with their names, purposes and intervals.

use std::time::Duration;

/// Interval of a round of the driver.
pub(super) const ROUND: Duration = Duration::from_secs(1);
/// Interval of the full scan.
const SCAN: Duration = Duration::from_secs(600);

/// Task of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    Expire,
    SilentNodes,
    Journal,
    Level,
    Scan,
}

impl Task {
    /// All tasks, in the order of a round.
    pub(super) const ALL: [Self; 5] =
        [Self::Expire, Self::SilentNodes, Self::Journal, Self::Level, Self::Scan];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Expire => "expire",
            Self::SilentNodes => "silent-nodes",
            Self::Journal => "journal",
            Self::Level => "level",
            Self::Scan => "scan",
        }
    }

    pub(super) fn purpose(self) -> &'static str {
        match self {
            Self::Expire => {
                "Ends leases, prefixes, cooling, checks, tombstones and stored answers by log time."
            }
            Self::SilentNodes => "Frees addresses of nodes that are silent on the servers and on the wire.",
            Self::Journal => "Seals old segments of the journal, and deletes those beyond the limits.",
            Self::Level => "Raises the feature level once all members support the next one.",
            Self::Scan => "Looks for records that the rules should have deleted, and deletes them.",
        }
    }

    pub(super) fn interval(self) -> Duration {
        match self {
            Self::Scan => SCAN,
            Self::Expire | Self::SilentNodes | Self::Journal | Self::Level => ROUND,
        }
    }
}
