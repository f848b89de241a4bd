//! Bench: the live or simulated system of a run, as the driver uses it besides its faults.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::future::BoxFuture;
use ipam_api::client::Client;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::checker::Exit;
use crate::nemesis::System;
use crate::workload::Node;

/// Member as clients on a host reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reachable {
    /// Name of the member.
    pub(crate) name: String,
    /// URL for clients.
    pub(crate) url: String,
}

/// Place where the clients on one host run: a runtime with threads on that host, or that of the driver.
pub(crate) struct Spawner(pub(crate) Option<Runtime>);

impl Spawner {
    /// Starts a task.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.0 {
            Some(runtime) => runtime.spawn(task),
            None => tokio::spawn(task),
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // The drop of a runtime may block, which an asynchronous context doesn't permit.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Live or simulated system of a run.
pub(crate) trait Bench: System {
    /// The present members as clients on this host reach them, in order.
    fn members(&self, host: &str) -> Vec<Reachable>;

    /// Names of the present members.
    fn names(&self) -> Vec<String>;

    /// Client of these members, with the credentials of clients.
    fn client(&self, urls: &[&str]) -> Result<Client>;

    /// Client of a member that no fault of the network affects.
    fn control(&self, member: &str) -> Result<Client>;

    /// Place of the clients on this host.
    fn spawner(&self, host: &str) -> Result<Spawner>;

    /// The hosts with agent and plugin.
    fn nodes(&self) -> Vec<Arc<dyn Node>>;

    /// Waits until all members are ready.
    fn ready(&mut self, within: Duration) -> BoxFuture<'_, Result<()>>;

    /// Ends of processes since the last call. `now_ns` is the time since the run began.
    fn exits(&mut self, now_ns: u64) -> BoxFuture<'_, Vec<Exit>>;
}
