//! Bench: the live system of a run, as the driver needs it besides its faults.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::future::BoxFuture;
use ipam_api::client::{Client, Options};
use tokio::runtime::Runtime;

use crate::checker::Exit;
use crate::nemesis::System;
use crate::workload::Node;

/// Member as clients on a host reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reachable {
    /// Name of the member.
    pub(super) name: String,
    /// URL for clients.
    pub(super) url: String,
}

/// Live system of a run.
pub(super) trait Bench: System {
    /// The present members as clients on this host reach them, in order.
    fn members(&self, host: &str) -> Vec<Reachable>;

    /// Names of the present members.
    fn names(&self) -> Vec<String>;

    /// Credentials of clients.
    fn options(&self) -> Options;

    /// Client of a member that no fault of the network affects.
    fn control(&self, member: &str) -> Result<Client>;

    /// Runtime whose threads are on this host.
    fn runtime(&self, host: &str) -> Result<Runtime>;

    /// The hosts with agent and plugin.
    fn nodes(&self) -> Vec<Arc<dyn Node>>;

    /// Waits until all members are ready.
    fn ready(&mut self, within: Duration) -> BoxFuture<'_, Result<()>>;

    /// Ends of processes until now, in nanoseconds since the run began.
    fn exits(&mut self, now_ns: u64) -> BoxFuture<'_, Vec<Exit>>;
}
