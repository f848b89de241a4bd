//! Requests of the commands to the node's agent.

use std::path::Path;
use std::time::Duration;

use ipam_api::agent::{ATTACHMENTS_PATH, NodeAttachments};
use ipam_api::client::{Call, Client};
use ipam_api::problem::Problem;
use tokio::net::UnixStream;

/// Time limit of one request.
const ANSWER: Duration = Duration::from_secs(3);
/// Pause between two checks of the socket.
const PAUSE: Duration = Duration::from_millis(200);

/// Waits until an agent accepts connections, without a limit: on a new node it waits for the members itself.
pub(super) async fn wait_for(socket: &Path) {
    while UnixStream::connect(socket).await.is_err() {
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks the agent if it can serve an ADD.
///
/// # Errors
/// The reason, with a remedy.
pub(super) async fn ready(socket: &Path) -> Result<(), Problem> {
    Client::over_socket(socket)?.send(Call::get("/readyz").within(ANSWER)).await.map(drop)
}

/// Attachments of the node.
///
/// # Errors
/// The reason, with a remedy.
pub(super) async fn attachments(socket: &Path) -> Result<NodeAttachments, Problem> {
    Client::over_socket(socket)?.call(Call::get(ATTACHMENTS_PATH).within(ANSWER)).await
}
