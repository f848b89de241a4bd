//! STATUS: whether an ADD could be served.
//!
//! A runtime asks every few seconds and takes the node out of service on a bad answer. So one server that
//! is ready is enough, a server that hangs is passed over, and a full pool is no reason.

use std::time::Duration;

use ipam_api::client::Call;
use ipam_api::limits::BUDGET_MS_DEFAULT;

use crate::ask::Ask;
use crate::config::Network;
use crate::environment::Environment;
use crate::fail::{Failure, NOT_READY};

/// Asks until one is ready.
///
/// # Errors
/// Code 50 if none is; code 7 if none is named.
pub async fn status(environment: &Environment, network: &Network) -> Result<Vec<u8>, Failure> {
    let deadline = environment.deadline.min(Duration::from_millis(BUDGET_MS_DEFAULT));
    let ask = Ask::new(&network.reach(&environment.servers)?, environment.trace_parent.as_deref(), deadline)?;
    match ask.send(Call::get("/readyz")).await {
        Ok(_) => Ok(Vec::new()),
        Err(problem) => Err(Failure::from(problem).with_code(NOT_READY)),
    }
}
