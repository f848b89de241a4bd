//! State shared by all handlers.

use std::ops::Deref;
use std::sync::Arc;

use ipam_api::limits::{EVENT_STREAMS_MAX, EVENT_STREAMS_PER_CALLER_MAX, REQUESTS_IN_FLIGHT_PER_CALLER_MAX};
use ipam_raft::node::Node;
use ipam_raft::retry_after::RetryAfter;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::in_flight::InFlight;
use super::snapshots::Kept;
use super::trial::Trials;
use crate::access::Access;
use crate::metrics::Metrics;
use crate::tasks::{GcSettings, Statuses};

/// State shared by all handlers. Cloning is cheap, and each request holds several clones.
#[derive(Clone)]
pub struct App(Arc<Shared>);

/// The member, counters and limits.
pub struct Shared {
    pub(in crate::http) node: Node,
    pub(in crate::http) metrics: Arc<Metrics>,
    pub(in crate::http) access: Access,
    /// Start of the ticks that batch heartbeats.
    pub(in crate::http) started: Instant,
    pub(super) in_flight: InFlight,
    /// Pauses of callers with too many requests in progress.
    pub(super) retry_after: Arc<RetryAfter>,
    pub(in crate::http) trials: Trials,
    /// States that lists are read from, kept for later pages.
    pub(in crate::http) lists: Kept,
    /// Limit of concurrent event streams.
    pub(in crate::http) streams: Arc<Semaphore>,
    /// Streams of events by caller.
    pub(in crate::http) streams_of: InFlight,
    /// Held while a backup is written, so that only one runs at a time.
    pub(in crate::http) backing_up: Arc<Mutex<()>>,
    /// Settings of garbage collection.
    pub(in crate::http) gc: GcSettings,
    /// Status of the leader's tasks on this member.
    pub(in crate::http) tasks: Arc<Statuses>,
}

impl App {
    /// Creates the shared state of a member's handlers.
    #[must_use]
    pub fn new(
        node: Node,
        metrics: Arc<Metrics>,
        access: Access,
        (gc, tasks): (GcSettings, Arc<Statuses>),
    ) -> Self {
        Self(Arc::new(Shared {
            node,
            metrics,
            access,
            started: Instant::now(),
            in_flight: InFlight::new(REQUESTS_IN_FLIGHT_PER_CALLER_MAX),
            retry_after: Arc::default(),
            trials: Trials::default(),
            lists: Kept::default(),
            streams: Arc::new(Semaphore::new(EVENT_STREAMS_MAX)),
            streams_of: InFlight::new(EVENT_STREAMS_PER_CALLER_MAX),
            backing_up: Arc::default(),
            gc,
            tasks,
        }))
    }
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
