//! `ipam-agent attachments`: attachments in the journal of this node, with or without a running agent.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ipam_api::agent::{ATTACHMENTS_PATH, NodeAttachments};
use ipam_api::client::{Call, Client};
use ipam_api::problem::exit;
use tokio::net::UnixStream;

use crate::config::{Config, Flags};
use crate::journal::JournalFile;
use crate::output::{Output, run_with_config};
use crate::socket::node_attachments;

/// Time limit of the running agent's answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Flags of the command.
#[derive(Debug, Args)]
#[command(after_help = "The running agent is asked; without one the journal is read.
The package ipam-agent is not removed while there are attachments: their DELs would fail.

Exit code: 7 if there are attachments, 0 if there are none.

Examples:
  ipam-agent attachments
  ipam-agent attachments -o json")]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    run_with_config(&arguments.flags, async |config| {
        let found = attachments(config).await.map_err(|why| (exit::REFUSED, why))?;
        arguments.output.print(&found, shown);
        Ok(if found.total == 0 { exit::DONE } else { exit::FOUND })
    })
}

async fn attachments(config: &Config) -> Result<NodeAttachments, String> {
    if UnixStream::connect(&config.socket).await.is_ok() {
        let failed = |problem| format!("{}: {problem}", config.socket.display());
        let client = Client::over_socket(&config.socket).map_err(failed)?;
        return client.call(Call::get(ATTACHMENTS_PATH).within(ANSWER)).await.map_err(failed);
    }
    if !config.state_dir.exists() {
        return Ok(NodeAttachments { total: 0, attachments: Vec::new() });
    }
    let (_, journal) = JournalFile::open(&config.state_dir).map_err(|error| error.to_string())?;
    Ok(node_attachments(&journal))
}

fn shown(found: &NodeAttachments) -> String {
    let mut text = String::new();
    for attachment in &found.attachments {
        let deleting = if attachment.deleting { "  DEL is not delivered yet" } else { "" };
        let endpoint =
            attachment.endpoint.as_ref().map(|endpoint| format!("  {endpoint}")).unwrap_or_default();
        let (config, container) = (&attachment.config, &attachment.container_id);
        let _ = writeln!(text, "{config}  {container}  {}{endpoint}{deleting}", attachment.interface);
    }
    let named = u64::try_from(found.attachments.len()).unwrap_or(u64::MAX);
    if found.total > named {
        let _ = writeln!(text, "and {} more", found.total.saturating_sub(named));
    }
    if found.total == 0 {
        text.push_str("no attachments\n");
    }
    text
}
