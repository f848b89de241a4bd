//! Operations of the daemon that the front end uses.

use std::future::Future;
use std::sync::Arc;

use ipam_api::Problem;
use ipam_api::client::{Answer, Call};
use tokio::sync::watch::Receiver;

/// Authenticated caller of a gRPC request. The daemon puts it into the extensions of each request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller(pub Arc<str>);

/// Member that answers the requests of the front end.
pub trait Servers: Clone + Send + Sync + 'static {
    /// Sends a request of the REST API for a caller.
    fn send(&self, caller: &Caller, call: Call) -> impl Future<Output = Result<Answer, Problem>> + Send;

    /// Number that changes after each conduit that this member has seen: a prefix that is cut from a pool,
    /// or a request for one that waits.
    fn conduits(&self) -> Receiver<u64>;

    /// True while this member reaches a leader.
    fn has_leader(&self) -> Receiver<bool>;
}
