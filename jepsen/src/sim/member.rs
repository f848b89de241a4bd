//! Member: the daemon's own node, handlers and tasks, on a simulated host.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::body::Body;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use ipam_api::Name;
use ipam_api::client::Client;
use ipam_api::limits::NODE_GRACE_MS_MIN;
use ipam_raft::StoreError;
use ipam_raft::node::{
    DiskLimits, Failure, InitialMember, Node, NodeConfig, PeerPort, SnapshotPolicy, StartError,
};
use ipam_raft::simulation::pausable;
use ipamd::access::{Access, AccessConfig};
use ipamd::http::request::{App, Peer};
use ipamd::http::router::router;
use ipamd::metrics::Metrics;
use ipamd::serve::LEAVE;
use ipamd::tasks::journal::JournalLimits;
use ipamd::tasks::{self, GcSettings, Statuses};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::machines::{self, Machine};
use super::network::{CLIENTS, Listener, PEERS, url};
use crate::cluster::Cause;

/// Limits that the journal of a short run never reaches.
const JOURNAL: JournalLimits = JournalLimits { keep_bytes: 64 << 20, keep_days: 400 };

/// Snapshots are small and frequent, so that members lack entries of the log.
const SNAPSHOTS: SnapshotPolicy = SnapshotPolicy {
    every_entries: 300,
    every_bytes: 1 << 20,
    keep_entries: 50,
    keep_bytes: 1 << 20,
    bytes_per_second: 1 << 20,
};

/// Grace of leases as in live runs: with the default of 30 s, hardly any lease would end under faults.
const LEASE_GRACE_MS: u64 = 2_000;

/// End of a member's process by itself, or by a signal to end gracefully.
#[derive(Debug)]
pub(super) struct End {
    /// Cause; none if it was signalled.
    pub(super) cause: Option<Cause>,
    /// Reason in words.
    pub(super) why: String,
}

impl End {
    /// End by a cause.
    pub(super) fn new(cause: Cause, why: impl ToString) -> Self {
        Self { cause: Some(cause), why: why.to_string() }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Some(cause) => write!(f, "{cause:?}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// Runs the member until it ends by itself.
pub(super) async fn run(machine: &Machine) -> End {
    let stop = machines::begin(&machine.name);
    pausable(serve(machine, &stop)).await.unwrap_or_else(|error| End::new(Cause::Other, format!("{error:#}")))
}

async fn serve(machine: &Machine, stop: &Notify) -> Result<End> {
    let name = |name: &str| Name::new(name).context("a name of a member");
    let initial = |member: &String| {
        anyhow::Ok(InitialMember { name: name(member)?, peer_address: format!("{member}:{PEERS}") })
    };
    let peers = PeerPort::Simulated(Box::new(Listener::bind(PEERS).await?));
    let clients = Listener::bind(CLIENTS).await?;
    let known = machine.others.iter().chain([&machine.name]);
    let mut config = NodeConfig::new(
        machine.dir.clone(),
        name(&machine.name)?,
        peers,
        format!("{}:{PEERS}", machine.name),
        url(&machine.name),
        known.map(initial).collect::<Result<_>>()?,
    );
    config.joins = machine.joins;
    config.snapshots = SNAPSHOTS;
    config.timing.lease_grace_ms = LEASE_GRACE_MS;
    // A ballast file would only use memory of this machine.
    config.disk = DiskLimits { ballast_bytes: 0, ..DiskLimits::default() };
    let node = match Node::start(config).await {
        Ok(node) => node,
        Err(StartError::Store(error @ (StoreError::Damaged { .. } | StoreError::Broken(_)))) => {
            return Ok(End::new(Cause::Damage, error));
        }
        Err(StartError::Store(error @ StoreError::Io { .. })) => return Ok(End::new(Cause::Disk, error)),
        Err(error) => return Err(error.into()),
    };
    let (metrics, statuses) = (Arc::new(Metrics::new(false)), Arc::new(Statuses::default()));
    let access = Access::new(AccessConfig { open: true, ..AccessConfig::default() })?;
    // The shortest grace: simulated runs are short.
    let gc = GcSettings { node_grace_ms: NODE_GRACE_MS_MIN, ..GcSettings::default() };
    let app = App::new(node.clone(), Arc::clone(&metrics), access, (gc, Arc::clone(&statuses)));
    let router = router(app);
    tokio::spawn(pausable(tasks::run(node.clone(), (JOURNAL, gc), statuses, metrics)));
    if machine.joins {
        tokio::spawn(pausable(join(node.clone(), machine.clone())));
    }
    let serving = async {
        loop {
            let (stream, address) = clients.accept().await?;
            let router = router.clone();
            let service = tower::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(Peer::Tcp { address, certificate: None });
                tower::ServiceExt::oneshot(router.clone(), request.map(Body::new))
            });
            let service = TowerToHyperService::new(service);
            let mut http = http1::Builder::new();
            http.auto_date_header(false);
            tokio::spawn(pausable(http.serve_connection(TokioIo::new(stream), service)));
        }
    };
    // The member answers requests until it has given up its leadership.
    let stopping = async {
        stop.notified().await;
        node.shutdown(Instant::now() + LEAVE).await;
    };
    tokio::select! {
        biased;
        failure = node.failed() => {
            let cause = match &failure {
                Failure::Disk(_) => Cause::Disk,
                Failure::Broken(_) => Cause::Damage,
                Failure::Removed(_) => Cause::Removal,
                Failure::Other(_) => Cause::Other,
            };
            Ok(End::new(cause, failure))
        }
        () = stopping => Ok(End { cause: None, why: "stopped".to_owned() }),
        served = serving => served,
    }
}

async fn join(node: Node, machine: Machine) {
    let urls: Vec<String> = machine.others.iter().map(|other| url(other)).collect();
    ipamd::join::through(&node, "its members", || Client::new(&urls)).await;
}
