//! DEL: releases an attachment's addresses. A missing attachment is a success.
//!
//! A failure stops the main plugin's own clean-up, and the workload is never removed. Hence DEL fails only if
//! an address would be lost otherwise: when no server can be reached.

use ipam_api::client::Call;
use ipam_api::request::{ReleaseAttachmentRequest, Released, Started};

use super::attachment;
use crate::ask::Ask;
use crate::config::Network;
use crate::environment::Environment;
use crate::fail::{Failure, TRY_LATER};

/// Releases the attachment.
///
/// # Errors
/// Code 11 if no server could be reached; else the code of the refusal.
pub async fn del(
    environment: &Environment,
    network: &Network,
    started: Option<Started>,
) -> Result<Vec<u8>, Failure> {
    let home = match network.home() {
        Ok(home) => home,
        Err(failure) => {
            // No ADD can have succeeded with this configuration.
            crate::warn(&format!("DEL has nothing to release: {failure}"));
            return Ok(Vec::new());
        }
    };
    let attachment = attachment(&home, network, environment.container()?);
    let ask = network
        .reach(&environment.servers)
        .and_then(|reach| Ask::new(&reach, environment.trace_parent.as_deref(), environment.deadline))
        .map_err(|failure| failure.with_code(TRY_LATER))?;
    let request = ReleaseAttachmentRequest { attachment, started };
    let call = Call::post("/v1/attachments/release").json(&request)?.repeatable();
    let released: Released = ask.call(call).await?;
    if released.late {
        crate::warn("DEL came too late and released nothing: the attachment's ADD began after it");
    }
    Ok(Vec::new())
}
