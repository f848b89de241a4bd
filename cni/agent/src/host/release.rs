//! Release of all addresses of the host's own interfaces.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use ipam_api::brand::DEFAULT;
use ipam_api::client::{Call, push_encoded};
use ipam_api::problem::Code;
use ipam_api::request::Released;

use super::kernel::Kernel;
use super::netlink::Netlink;
use super::rendering::write;
use super::session::Session;
use crate::boot;
use crate::config::Config;
use crate::identity::connect;
use crate::journal::JournalFile;

/// Time limit of the request.
const REQUEST: Duration = Duration::from_secs(30);

/// Releases the addresses in the cluster, and removes what the agent has added. Returns a summary.
///
/// # Errors
/// The reason; what was not released stays configured.
pub(super) async fn release(config: &Config) -> Result<String, String> {
    let Some(host) = config.host.clone() else {
        return Err("the configuration has no [[interface]], so there is nothing to release".to_owned());
    };
    // A running agent would ask for the addresses again.
    let _lock = JournalFile::open(&config.state_dir).map_err(|error| error.to_string())?;
    let boot_id = boot::id().map_err(|error| error.to_string())?;
    let kernel = Netlink::open().map_err(|error| error.to_string())?;
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", config.state_dir.display());
    let session = Session::open(host, kernel, &config.state_dir, &boot_id, Path::new("/"), &config.node);
    let mut session = session.map_err(|error| failed(&error))?;
    let cluster = connect(config).await.map_err(|problem| problem.to_string())?;
    let mut path = format!("/v1/endpoints/host/{}/{DEFAULT}/", config.node.realm);
    push_encoded(&mut path, config.node.name.as_str());
    // The freed addresses cool, so that no other host gets them before they are removed here.
    let count = match cluster.send(Call::delete(path).repeatable().within(REQUEST)).await {
        Ok(answer) => answer.read::<Released>().map_err(|problem| problem.to_string())?.addresses.len(),
        Err(problem) if problem.code == Code::NotFound => 0,
        Err(problem) => return Err(problem.to_string()),
    };
    clear(&mut session).await?;
    Ok(format!("{count} addresses are released"))
}

/// Removes what the agent has added to the kernel, its files and its journal.
///
/// # Errors
/// The reason why something is left.
pub(super) async fn clear<K: Kernel>(session: &mut Session<K>) -> Result<(), String> {
    let directory = session.config.directory.clone();
    write(&directory, &[], &session.journal.rendered)?;
    session.note_rendered(BTreeSet::new()).map_err(|error| error.to_string())?;
    session.adopt(Vec::new(), BTreeSet::new()).await.map_err(|error| error.to_string())?;
    session.forget().map_err(|error| error.to_string())
}
