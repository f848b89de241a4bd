//! STATUS: readiness for an ADD.
//!
//! A runtime calls it every few seconds and takes the node out of service on a failure. So one ready server
//! is enough, a stalled server is skipped, and an exhausted pool is no failure.

use std::time::Duration;

use ipam_api::client::Call;
use ipam_api::limits::STATUS_MS_MAX;

use crate::ask::Ask;
use crate::config::Network;
use crate::environment::Environment;
use crate::fail::{Failure, NOT_READY};

/// Tries the servers until one is ready.
///
/// # Errors
/// Code 50 if none is ready; code 7 if none is configured.
pub async fn status(environment: &Environment, network: &Network) -> Result<Vec<u8>, Failure> {
    let deadline = environment.deadline.min(Duration::from_millis(STATUS_MS_MAX));
    let ask = Ask::new(&Environment { deadline, ..environment.clone() }, network)?;
    match ask.send(Call::get("/readyz")).await {
        Ok(_) => Ok(Vec::new()),
        Err(problem) => Err(Failure::from(problem).with_code(NOT_READY)),
    }
}
