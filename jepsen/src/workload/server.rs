//! Server: the system under test, as a client sees it.

use futures::future::BoxFuture;
use ipam_api::Problem;
use ipam_api::client::{Answer, Call, Client};

/// Accepts requests: a real client, or a simulated one.
pub trait Server: Send + Sync {
    /// Sends a request, with the repetitions of `ipam_api::client::Client`.
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Problem>>;
}

impl Server for Client {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Problem>> {
        Box::pin(Client::send(self, call))
    }
}
