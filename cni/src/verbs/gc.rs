//! GC: reports the runtime's list of valid attachments to the node's agent, which releases the others.
//!
//! The list is the knowledge of *one* runtime of *one* node; releasing everything else would release the
//! addresses of every other runtime. Only the node's agent knows the runtime of each attachment. Without an
//! agent nothing is released.

use ipam_api::agent::{Collected, GC_PATH, GcRequest};
use ipam_api::client::Call;

use crate::ask::{Ask, runtime};
use crate::config::Network;
use crate::environment::Environment;
use crate::fail::Failure;

/// Sends the list to the agent. Without a list, nothing is released.
///
/// # Errors
/// Code 7 for a malformed list; code 11 if the agent can't be reached.
pub async fn gc(environment: &Environment, network: &Network) -> Result<Vec<u8>, Failure> {
    let Some(valid) = network.valid_attachments()? else {
        crate::warn("GC releases nothing: the runtime gave no list of valid attachments");
        return Ok(Vec::new());
    };
    let runtime = runtime(network)?.unwrap_or_default();
    let request = GcRequest { config: network.name.clone(), runtime, valid };
    let ask = Ask::new(environment, network)?;
    let Some(answer) = ask.send_to_agent(Call::post(GC_PATH).json(&request)?.repeatable()).await? else {
        crate::warn("GC releases nothing: the configuration names no agent (ipam.socket)");
        return Ok(Vec::new());
    };
    let Collected { orphans, pending } = answer.read()?;
    if pending > 0 {
        crate::warn(&format!("GC: the agent still has to release {pending} of {orphans} attachments"));
    }
    Ok(Vec::new())
}
