//! Metrics of the queue of proposals.

use ipam_raft::node::NodeMetrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::catalogue::Catalogue;
use super::labels::ReasonLabels;
use super::number::{Number, raise};
use super::shown::Seconds;

#[derive(Debug, Clone)]
pub(super) struct Queue {
    waiting: Number,
    seconds: Seconds,
    dropped: Family<ReasonLabels, Counter>,
}

impl Queue {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            waiting: catalogue.plain("proposals_waiting", "Proposals waiting for the log"),
            seconds: catalogue.plain(
                "proposals_queue_seconds",
                "Seconds that a proposal waited for a log entry, on the leader",
            ),
            dropped: catalogue.by(
                "proposals_dropped",
                "Proposals that did not enter the log: over the share of their requester, too late to be \
                 served, or abandoned by their caller or deadline while they waited",
            ),
        }
    }

    pub(super) fn set(&self, counters: &NodeMetrics) {
        self.waiting.set(counters.proposals_waiting);
        self.seconds.set(counters.queued);
        for (reason, count) in [
            ("share", counters.proposals_over_share),
            ("wait", counters.proposals_too_late),
            ("abandoned", counters.proposals_abandoned),
        ] {
            raise(&self.dropped.get_or_create(&ReasonLabels { reason }), count);
        }
    }
}
