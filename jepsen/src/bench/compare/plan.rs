//! Sizes and durations of a comparison.

use std::time::Duration;

use crate::bench::load::Times;

/// Sizes and durations.
#[derive(Debug, Clone, Copy)]
pub(in crate::bench) struct Plan {
    /// Alternating rounds of most measurements.
    pub(in crate::bench) rounds: usize,
    /// Durations of most loads.
    pub(in crate::bench) times: Times,
    /// Durations of the bulk load.
    pub(in crate::bench) bulk: Times,
    /// Durations of single allocations beside background work of a large state.
    pub(in crate::bench) listen: Times,
    /// Addresses of a large state.
    pub(in crate::bench) held: u64,
    /// ADDs of each plugin in a round.
    pub(in crate::bench) adds: usize,
    /// Attachments of a node with many.
    pub(in crate::bench) attachments: usize,
    /// Time of an agent and of a leader at rest.
    pub(in crate::bench) rest: Duration,
    /// Agents that send heartbeats.
    pub(in crate::bench) agents: usize,
}

impl Plan {
    /// Returns the sizes that the acceptance criteria require.
    pub(in crate::bench) fn full() -> Self {
        let seconds = Duration::from_secs;
        Self {
            rounds: 5,
            times: Times { warm_up: seconds(1), measured: seconds(5) },
            bulk: Times { warm_up: seconds(1), measured: seconds(30) },
            listen: Times { warm_up: seconds(1), measured: seconds(30) },
            held: 1_000_000,
            adds: 200,
            attachments: 2000,
            rest: seconds(60),
            agents: 1000,
        }
    }

    /// Returns small sizes, which only show that the comparison works.
    pub(in crate::bench) fn quick() -> Self {
        let milliseconds = Duration::from_millis;
        let times = Times { warm_up: milliseconds(200), measured: milliseconds(1000) };
        Self {
            rounds: 1,
            times,
            bulk: times,
            listen: times,
            held: 10_000,
            adds: 20,
            attachments: 50,
            rest: milliseconds(2000),
            agents: 50,
        }
    }
}
