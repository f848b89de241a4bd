//! The metrics of a member: their registration, their values, and the text for scrapers.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use ipam_api::Code;
use ipam_api::limits::NODE_GRACE_MS_DEFAULT;
use ipam_api::name::InterfaceName;
use ipam_machine::State;
use ipam_machine::command::GivenInterface;
use ipam_raft::durations::BUCKETS_US;
use ipam_raft::node::{Node, PeerTls, Role};
use ipam_raft::progress::Progress;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::catalogue::{Catalogue, Described};
use super::elections::Elections;
use super::labels::{
    AllocationLabels, BuildLabels, CodeLabels, Labels as _, PartLabels, PeerLabels, RouteLabels, RouteOnly,
    ShownLabels, TaskLabels,
};
use super::number::{Number, raise};
use super::queue::Queue;
use super::shown::{Pools, Seconds};
use crate::http::connection::tls::ClientTls;

type RouteSeconds = Family<RouteOnly, Histogram, fn() -> Histogram>;
/// Counters that handlers increment, and gauges that are read at each scrape.
pub struct Metrics {
    catalogue: Catalogue,
    /// Held while the text is written, so that two scrapers don't mix their values.
    encoding: Mutex<()>,
    per_pool: bool,
    requests: Family<RouteLabels, Counter>,
    request_seconds: RouteSeconds,
    refusals: Family<CodeLabels, Counter>,
    allocations: Family<AllocationLabels, Counter>,
    task_success: Family<TaskLabels, Number>,
    backup_success: Number,
    is_leader: Gauge,
    term: Number,
    elections: Elections,
    peer_lag: Family<PeerLabels, Number>,
    queue: Queue,
    commit_seconds: Seconds,
    fsync_seconds: Seconds,
    apply_seconds: Seconds,
    oldest_revision: Number,
    oldest_seconds: Number,
    journal_bytes: Family<PartLabels, Number>,
    journal_segments: Family<PartLabels, Number>,
    certificate_expiry: Family<ShownLabels, Number>,
    certificates: Certificates,
    rows_rebuilt: Counter,
    snapshots_built: Counter,
    snapshots_failed: Counter,
    snapshots_installed: Counter,
    state_quarantined: Gauge,
    state_divergences: Counter,
    states_rebuilt: Counter,
    start_rows: Number,
    quarantined: Number,
    colliding: Number,
    silent_nodes: Number,
    task_reclaimed: Family<TaskLabels, Counter>,
    pools: Pools,
    disk_free_bytes: Number,
    disk_needed_bytes: Number,
}

/// Certificates that this member presents.
#[derive(Debug, Default)]
pub struct Certificates {
    pub clients: Option<ClientTls>,
    /// TLS with other members.
    pub members: Option<PeerTls>,
    /// TLS with clients of Meridio.
    pub meridio: Option<ClientTls>,
}

impl Metrics {
    /// Creates all metrics at zero. Pools have series only if `per_pool` is true.
    #[must_use]
    pub fn new(per_pool: bool) -> Self {
        let mut all = Catalogue::default();
        let build: Family<BuildLabels, Gauge> =
            all.by("build_info", "Version of ipamd, as a label; the value is 1");
        build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        let seconds = || Histogram::new(BUCKETS_US.map(|bound| Duration::from_micros(bound).as_secs_f64()));
        Self {
            encoding: Mutex::default(),
            per_pool,
            certificates: Certificates::default(),
            is_leader: all.plain("raft_is_leader", "1 if this member is the leader, else 0"),
            term: all.plain("raft_term", "Raft term"),
            elections: Elections::new(&mut all),
            peer_lag: all
                .by("raft_peer_lag_entries", "Log entries that a peer is behind, as reported by the leader"),
            commit_seconds: all.plain(
                "raft_commit_seconds",
                "Seconds from the proposal of a log entry to its outcome, on the leader",
            ),
            fsync_seconds: all.plain("log_fsync_seconds", "Seconds of an fsync of a group of log entries"),
            apply_seconds: all.plain("apply_seconds", "Seconds to apply a batch of log entries"),
            queue: Queue::new(&mut all),
            requests: all.by("http_requests", "HTTP requests by route and status code"),
            request_seconds: all.add(
                "http_request_seconds",
                RouteOnly::NAMES,
                "Seconds to answer an HTTP request",
                Family::new_with_constructor(seconds),
            ),
            allocations: all.by("allocations", "Addresses allocated through this member"),
            refusals: all.by("refusals", "Rejected requests by problem code"),
            oldest_revision: all.plain("events_oldest_revision", "Revision of the oldest retained event"),
            oldest_seconds: all.plain(
                "events_oldest_timestamp_seconds",
                "Unix time at which the oldest retained journal segment begins; 0 without events",
            ),
            journal_bytes: all
                .by("journal_bytes", "Uncompressed bytes of the retained journal, by sealed and open part"),
            journal_segments: all
                .by("journal_segments", "Retained journal segments, by sealed and open part"),
            certificate_expiry: all.by(
                "certificate_expiry_timestamp_seconds",
                "Unix time at which this member's certificate expires; absent without TLS",
            ),
            rows_rebuilt: all
                .plain("rows_rebuilt", "Row stores rebuilt at startup because they could not be trusted"),
            snapshots_built: all.plain("raft_snapshots_built", "Snapshots built by this member"),
            snapshots_failed: all
                .plain("raft_snapshots_failed", "Failed snapshots; the log is not truncated meanwhile"),
            snapshots_installed: all.plain(
                "raft_snapshots_installed",
                "Snapshots received from a leader because the log no longer had the missing entries",
            ),
            state_quarantined: all.plain(
                "state_quarantined",
                "1 if this member serves no requests because its state diverged or may have diverged, else 0",
            ),
            state_divergences: all.plain(
                "state_divergences",
                "Checkpoints at which a majority of the members had another state than this one",
            ),
            states_rebuilt: all.plain("states_rebuilt", "States rebuilt by this member while running"),
            start_rows: all
                .plain("start_rows", "Rows of the state read by a startup in progress; 0 afterwards"),
            quarantined: all.plain(
                "addresses_quarantined",
                "Addresses that foreign hosts use and that are not allocated",
            ),
            colliding: all.plain("addresses_colliding", "Allocated addresses for which two stations answer"),
            silent_nodes: all
                .plain("nodes_silent", "Nodes without a heartbeat for longer than the default grace"),
            task_reclaimed: all
                .by("task_reclaimed", "Addresses and records that a task of this member freed"),
            task_success: all.by(
                "task_last_success_timestamp_seconds",
                "Unix time of the last successful run of a task on this member",
            ),
            backup_success: all.plain(
                "backup_last_success_timestamp_seconds",
                "Unix time of the last complete backup written by this member; 0 if none",
            ),
            disk_free_bytes: all
                .plain("disk_free_bytes", "Free bytes of the file system of the data directory"),
            disk_needed_bytes: all.plain("disk_needed_bytes", "Free bytes below which writes are rejected"),
            pools: all.pools(),
            catalogue: all,
        }
    }

    /// Sets the certificates whose expiry is reported.
    #[must_use]
    pub fn with(self, certificates: Certificates) -> Self {
        Self { certificates, ..self }
    }

    /// The catalogue, complete without any traffic.
    #[must_use]
    pub fn catalogue(&self) -> &[Described] {
        &self.catalogue.described
    }

    /// Counts a response. `route` is the matched template, never the request's path.
    pub fn answered(&self, route: &str, code: u16, took: Duration) {
        self.requests.get_or_create(&RouteLabels { route: route.to_owned(), code }).inc();
        self.request_seconds
            .get_or_create(&RouteOnly { route: route.to_owned() })
            .observe(took.as_secs_f64());
    }

    /// Counts a refused request.
    pub fn refused(&self, code: Code) {
        self.refusals.get_or_create(&CodeLabels { code: code.entry().code }).inc();
    }

    /// Counts the allocations of an answer. With an attachment, counts only those of its interface `own`,
    /// because other interfaces count with their own attachments.
    pub fn allocated(&self, own: Option<&InterfaceName>, interfaces: &[GivenInterface], repeated: bool) {
        let counted = interfaces.iter().filter(|interface| own.is_none_or(|own| interface.name == *own));
        for given in counted.flat_map(|interface| &interface.addresses) {
            self.allocated_many(ipam_api::Family::of(given.address.addr()), repeated, 1);
        }
    }

    /// Counts allocations of a family.
    pub fn allocated_many(&self, family: ipam_api::Family, repeated: bool, count: u64) {
        let outcome = if repeated { "repeated" } else { "given" };
        let family = match family {
            ipam_api::Family::V4 => "ipv4",
            ipam_api::Family::V6 => "ipv6",
        };
        self.allocations.get_or_create(&AllocationLabels { family, outcome }).inc_by(count);
    }

    /// Records that a task ran and completed everything that was due.
    pub fn succeeded(&self, task: &'static str) {
        self.task_success.get_or_create(&TaskLabels { task }).set(now_seconds());
    }

    /// Counts addresses or records that a task freed.
    pub fn reclaimed(&self, task: &'static str, count: u64) {
        self.task_reclaimed.get_or_create(&TaskLabels { task }).inc_by(count);
    }

    /// Records the time of a complete backup.
    pub fn backed_up(&self) {
        self.backup_success.set(now_seconds());
    }

    /// Encodes the metrics during a start: all at zero except for the progress of the start.
    ///
    /// # Errors
    /// As [`Metrics::encode`].
    pub fn encode_start(&self, progress: &Progress) -> Result<String, std::fmt::Error> {
        let _alone = self.encoding.lock().unwrap_or_else(PoisonError::into_inner);
        self.start_rows.set(progress.rows());
        let mut text = String::new();
        let written = encode(&mut text, &self.catalogue.registry);
        self.start_rows.set(0);
        written.map(|()| text)
    }

    /// Encodes the metrics for a scraper. Slow with many pools, so not for an async thread.
    ///
    /// # Errors
    /// If a value can't be encoded, which does not happen with these metrics.
    pub fn encode(&self, node: &Node) -> Result<String, std::fmt::Error> {
        let _alone = self.encoding.lock().unwrap_or_else(PoisonError::into_inner);
        let status = node.status();
        let counters = node.metrics();
        let (state, _) = node.stale();
        self.is_leader.set(i64::from(status.role == Role::Leader));
        self.term.set(status.term);
        self.disk_free_bytes.set(status.disk.free_bytes);
        self.disk_needed_bytes.set(status.disk.needed_bytes);
        self.peer_lag.clear();
        for member in status.members.into_iter().filter(|member| Some(member.id) != status.member_id) {
            if let Some(behind) = member.behind {
                self.peer_lag.get_or_create(&PeerLabels { peer: member.name }).set(behind);
            }
        }
        self.queue.set(&counters);
        self.commit_seconds.set(counters.commit);
        self.fsync_seconds.set(counters.fsync);
        self.apply_seconds.set(counters.apply);
        self.oldest_revision.set(state.oldest_event().revision);
        self.set_journal(&state);
        self.set_certificates();
        self.elections.set(&counters);
        raise(&self.rows_rebuilt, counters.rows_rebuilt);
        raise(&self.snapshots_built, counters.snapshots_built);
        raise(&self.snapshots_failed, counters.snapshots_failed);
        raise(&self.snapshots_installed, counters.snapshots_installed);
        self.state_quarantined.set(i64::from(node.check_trust().is_err()));
        raise(&self.state_divergences, counters.divergences);
        raise(&self.states_rebuilt, counters.states_rebuilt);
        self.quarantined.set(state.quarantines.len() as u64);
        self.colliding.set(state.collisions() as u64);
        self.silent_nodes.set(state.silent_nodes(NODE_GRACE_MS_DEFAULT).count() as u64);
        self.pools.set(self.per_pool.then_some(state));
        let mut text = String::new();
        let written = encode(&mut text, &self.catalogue.registry);
        self.pools.set(None);
        written.map(|()| text)
    }
}

/// Seconds since 1970.
fn now_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Metrics {
    fn set_journal(&self, state: &State) {
        let open = &state.header().journal.open;
        let sealed_bytes = state.segments.iter().map(|(_, segment)| segment.bytes).sum();
        let sealed = state.segments.len() as u64;
        for (part, bytes, segments) in
            [("sealed", sealed_bytes, sealed), ("open", open.bytes, u64::from(open.frames > 0))]
        {
            self.journal_bytes.get_or_create(&PartLabels { part }).set(bytes);
            self.journal_segments.get_or_create(&PartLabels { part }).set(segments);
        }
        let oldest = state.segments.first().map_or(open, |(_, segment)| segment);
        self.oldest_seconds.set(oldest.from_wall_ms / 1000);
    }

    fn set_certificates(&self) {
        let Certificates { clients, members, meridio } = &self.certificates;
        for (shown_to, expires_at_s) in [
            ("clients", clients.as_ref().and_then(ClientTls::expires_at_s)),
            ("members", members.as_ref().and_then(PeerTls::expires_at_s)),
            ("meridio", meridio.as_ref().and_then(ClientTls::expires_at_s)),
        ] {
            if let Some(at_s) = expires_at_s {
                self.certificate_expiry.get_or_create(&ShownLabels { shown_to }).set(at_s);
            }
        }
    }
}
