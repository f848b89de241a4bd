//! `ipam-agent inventory`: differences between the journal of the running agent and the cluster.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ipam_api::agent::{INVENTORY_PATH, InventoryChange, InventoryDifference, InventoryReport};
use ipam_api::client::{Call, Client};
use ipam_api::problem::{Code, Problem, exit};

use crate::config::{Config, Flags};
use crate::output::{Output, run_with_config};

/// Time limit of the comparison: the agent pages through its attachments in the cluster.
const COMPARE: Duration = Duration::from_secs(30);

/// Flags of the command.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --take-newer nothing is changed. The agent itself takes the newer side after two \
        heartbeats that differ.

Exit code: 7 if the two differ and nothing was taken, otherwise 0.

Examples:
  ipam-agent inventory                  both sides of each difference, and the newer one
  ipam-agent inventory --take-newer     change the journal now
  ipam-agent inventory -o json"
)]
pub struct Arguments {
    /// Take the newer side of each difference over into the journal
    #[arg(long)]
    take_newer: bool,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    let takes = arguments.take_newer;
    run_with_config(&arguments.flags, async |config| {
        let report = request(config, takes).await.map_err(|problem| {
            let why = format!("{}: {}\n  {}", config.socket.display(), problem.detail, problem.help);
            (problem.exit_code(), why)
        })?;
        arguments.output.print(&report, |report| shown(report, takes));
        Ok(if report.differences.is_empty() || takes { exit::DONE } else { exit::FOUND })
    })
}

async fn request(config: &Config, takes: bool) -> Result<InventoryReport, Problem> {
    // Checked first, since the client would keep trying until an agent starts.
    tokio::net::UnixStream::connect(&config.socket).await.map_err(|error| {
        Problem::new(Code::Unreachable, format!("no agent answers: {error}"))
            .help("Start it: systemctl start ipam-agent.")
    })?;
    let call = if takes { Call::post(INVENTORY_PATH) } else { Call::get(INVENTORY_PATH) };
    Client::over_socket(&config.socket)?.call(call.within(COMPARE)).await
}

fn shown(report: &InventoryReport, was_taken: bool) -> String {
    let mut text = String::new();
    for difference in &report.differences {
        let InventoryDifference { config, container_id, interface, endpoint, .. } = difference;
        let of = endpoint.as_ref().map(|endpoint| format!("   {endpoint}")).unwrap_or_default();
        let _ = writeln!(text, "{config}/{container_id}/{interface}{of}");
        let _ = writeln!(text, "    journal   {}", side(difference.journal.as_deref()));
        let _ = writeln!(text, "    cluster   {}", side(difference.cluster.as_deref()));
        let _ = writeln!(text, "    {}", sentence(difference.change, was_taken));
    }
    let number = report.differences.len();
    let end = match (number, was_taken) {
        (0, false) => "journal and cluster agree",
        (0, true) => "nothing to take",
        (_, true) => "taken",
        (_, false) => "nothing was changed; to take the newer sides: ipam-agent inventory --take-newer",
    };
    let _ = writeln!(text, "{} attachments, {number} differences: {end}", report.attachments);
    text
}

fn side(allocations: Option<&[u64]>) -> String {
    let Some(allocations) = allocations else { return "no such attachment".to_owned() };
    let ids: Vec<String> = allocations.iter().map(u64::to_string).collect();
    if ids.is_empty() { "attachment without known allocations".to_owned() } else { ids.join(", ") }
}

fn sentence(change: InventoryChange, was_taken: bool) -> &'static str {
    match (change, was_taken) {
        (InventoryChange::TakeCluster, false) => "newer: the cluster",
        (InventoryChange::TakeCluster, true) => "the journal has the cluster's allocations",
        (InventoryChange::KeepMissing, false) => "the container may live: recreate it to get addresses again",
        (InventoryChange::KeepMissing, true) => "the journal keeps it until its container is gone",
        (InventoryChange::Forget, false) => "newer: the cluster; no container of it is known",
        (InventoryChange::Forget, true) => "the journal has forgotten it",
    }
}
