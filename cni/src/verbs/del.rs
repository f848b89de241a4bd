//! DEL: releases an attachment's addresses. A missing attachment is a success.
//!
//! A failure stops the main plugin's own clean-up, and the workload is never removed. Hence DEL fails only if
//! an address would be lost otherwise: when no server can be reached.

use ipam_api::client::Call;
use ipam_api::limits::TEXT_CHARS_MAX;
use ipam_api::request::{AttachmentKey, ReleaseAttachmentRequest, Released, Started};
use ipam_api::resource::EndpointKey;

use super::attachment;
use crate::arguments::Arguments;
use crate::ask::Ask;
use crate::config::{Home, Network};
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
    let ask = Ask::new(environment, network).map_err(|failure| failure.with_code(TRY_LATER))?;
    let (endpoint, uid) = endpoint(environment, network, &home, &attachment).unzip();
    let uid = uid.flatten().filter(|uid| is_acceptable(uid));
    let request = ReleaseAttachmentRequest { attachment, started, endpoint, uid };
    let call = Call::post("/v1/attachments/release").json(&request)?.repeatable();
    let released: Released = ask.call(call).await?;
    if released.late {
        crate::warn("DEL came too late and released nothing: the attachment's ADD began after it");
    }
    Ok(Vec::new())
}

/// The endpoint of the ADD, and its incarnation. None if the arguments or the controller are malformed: no
/// ADD can have succeeded with them, and a DEL does.
fn endpoint(
    environment: &Environment,
    network: &Network,
    home: &Home,
    attachment: &AttachmentKey,
) -> Option<(EndpointKey, Option<String>)> {
    let arguments = Arguments::parse(&environment.arguments).ok()?;
    let controller = network.controller().ok()?;
    Some(arguments.endpoint(&home.realm, &home.node, &attachment.container_id, controller.as_ref()))
}

/// Returns true if servers accept a uid. With any other, they refused the ADD and would refuse the DEL.
fn is_acceptable(uid: &str) -> bool {
    uid.chars().count() <= TEXT_CHARS_MAX && !uid.chars().any(char::is_control)
}
