//! What dashboards read. Names are a contract; buckets begin at 100 µs.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ipam_api::Code;
use ipam_raft::machine::command::GivenInterface;
use ipam_raft::node::{Node, Role};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of latency buckets, in seconds.
const BUCKETS: [f64; 16] =
    [0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteOnly {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AllocationLabels {
    family: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    pool: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

type Seconds = Family<RouteOnly, Histogram, fn() -> Histogram>;

/// Counters that handlers move, and gauges that are read when somebody asks.
pub struct Metrics {
    registry: Registry,
    requests: Family<RouteLabels, Counter>,
    request_seconds: Seconds,
    refusals: Family<CodeLabels, Counter>,
    allocations: Family<AllocationLabels, Counter>,
    is_leader: Gauge,
    term: Gauge<u64, AtomicU64>,
    revision: Gauge<u64, AtomicU64>,
    proposals_waiting: Gauge<u64, AtomicU64>,
    commands: Counter<u64, ValueOf>,
    batches: Counter<u64, ValueOf>,
    commit_seconds: Counter<f64, SecondsOf>,
    commits: Counter<u64, ValueOf>,
    pool_addresses: Family<PoolLabels, Gauge<u64, AtomicU64>>,
}

/// A counter whose value is kept elsewhere and set when somebody asks.
type ValueOf = AtomicU64;
type SecondsOf = AtomicU64;

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics, at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("ipamd"),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            refusals: Family::default(),
            allocations: Family::default(),
            is_leader: Gauge::default(),
            term: Gauge::default(),
            revision: Gauge::default(),
            proposals_waiting: Gauge::default(),
            commands: Counter::default(),
            batches: Counter::default(),
            commit_seconds: Counter::default(),
            commits: Counter::default(),
            pool_addresses: Family::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        let build = Family::<BuildLabels, Gauge>::default();
        build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("build_info", "The version that runs", build);
        registry.register("http_requests", "Requests answered", self.requests.clone());
        registry.register("http_request_seconds", "Time to answer a request", self.request_seconds.clone());
        registry.register("refusals", "Requests refused, by code", self.refusals.clone());
        registry.register("allocations", "Addresses given through this member", self.allocations.clone());
        registry.register("raft_is_leader", "Whether this member leads", self.is_leader.clone());
        registry.register("raft_term", "The Raft term", self.term.clone());
        registry.register("revision", "The revision of this member's state", self.revision.clone());
        registry.register(
            "proposals_waiting",
            "Proposals that wait for the log",
            self.proposals_waiting.clone(),
        );
        registry.register(
            "raft_commands",
            "Commands that this member proposed as leader",
            self.commands.clone(),
        );
        registry.register("raft_entries", "Log entries that carried them", self.batches.clone());
        registry.register(
            "raft_commit_seconds_sum",
            "Time from proposal to commit, in sum",
            self.commit_seconds.clone(),
        );
        registry.register("raft_commits", "Entries that it sums", self.commits.clone());
        registry.register("pool_addresses", "Addresses of each pool by state", self.pool_addresses.clone());
    }

    /// A request was answered.
    pub fn answered(&self, route: &str, code: u16, took: Duration) {
        self.requests.get_or_create(&RouteLabels { route: route.to_owned(), code }).inc();
        self.request_seconds
            .get_or_create(&RouteOnly { route: route.to_owned() })
            .observe(took.as_secs_f64());
    }

    /// A request was refused.
    pub fn refused(&self, code: Code) {
        self.refusals.get_or_create(&CodeLabels { code: code.entry().code }).inc();
    }

    /// Addresses were given.
    pub fn allocated(&self, interfaces: &[GivenInterface], repeated: bool) {
        let outcome = if repeated { "repeated" } else { "given" };
        for given in interfaces.iter().flat_map(|interface| &interface.addresses) {
            let family = if given.address.addr().is_ipv4() { "ipv4" } else { "ipv6" };
            self.allocations.get_or_create(&AllocationLabels { family, outcome }).inc();
        }
    }

    /// The text that a scraper reads.
    ///
    /// # Errors
    /// If a value can't be written, which none of ours can't.
    pub fn encode(&self, node: &Node) -> Result<String, std::fmt::Error> {
        let status = node.status();
        let counters = node.metrics();
        let (state, _) = node.stale();
        self.is_leader.set(i64::from(status.role == Role::Leader));
        self.term.set(status.term);
        self.revision.set(state.revision());
        self.proposals_waiting.set(counters.proposals_waiting);
        raise(&self.commands, counters.commands);
        raise(&self.batches, counters.batches);
        raise(&self.commits, counters.commits);
        let seconds = Duration::from_nanos(counters.commit_nanoseconds).as_secs_f64();
        self.commit_seconds.inc_by((seconds - self.commit_seconds.get()).max(0.0));
        self.pool_addresses.clear();
        for (id, pool) in state.pools.iter() {
            let Some(counts) = state.space(id).map(|space| space.counts()) else { continue };
            for (word, count) in [
                ("allocated", counts.allocated),
                ("cooling", counts.cooling),
                ("quarantined", counts.quarantined),
                ("reserved", counts.reserved),
                ("excluded", counts.excluded),
                ("free", counts.free),
            ] {
                let labels = PoolLabels { pool: pool.intention.name.to_string(), state: word };
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                self.pool_addresses.get_or_create(&labels).set(count);
            }
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Brings a counter up to a value that is kept elsewhere.
fn raise(counter: &Counter<u64, ValueOf>, value: u64) {
    counter.inc_by(value.saturating_sub(counter.get()));
}
