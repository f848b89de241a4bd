//! Definition of a workload.

use anyhow::Result;
use futures::future::BoxFuture;

use super::{Server, Session};
use crate::history::Function;

/// Clients of one kind with the resources that they use.
///
/// All workloads of a run share one cluster. To avoid conflicts, each uses networks, subnets, pools,
/// namespaces and endpoints whose names begin with its own name.
pub trait Workload: Send + Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// Purpose in one sentence.
    fn about(&self) -> &'static str;

    /// Number of sessions that run at the same time.
    fn sessions(&self) -> usize;

    /// Functions: each must succeed while faults are active, or the run is invalid.
    fn functions(&self) -> &'static [Function];

    /// Returns true if the sessions need a [`super::Node`].
    fn needs_node(&self) -> bool {
        false
    }

    /// Returns true if agents or the cluster end grants after the last operation, within a bound of I8.
    fn is_cleaned_up(&self) -> bool {
        self.needs_node()
    }

    /// Creates the resources, before any fault.
    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>>;

    /// Runs one session until [`Session::phase`] is [`super::Phase::Over`].
    fn run(&self, session: Session) -> BoxFuture<'_, ()>;
}
