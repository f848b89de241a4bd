//! The command.

use std::path::PathBuf;

use clap::Args;

use super::{apply, find, finding};
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::reclaim;
use crate::output::error::Failure;
use crate::settings::flags::Consistency;

/// Command that writes a report.
const WRITTEN_BY: &str = "ipamctl fsck -o json";

/// Arguments of `fsck`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --apply nothing is changed. The exit code is 7 if anything was found, and 0 \
        otherwise.

With --apply, exactly the lines of the file that have an action are executed. Each is checked again; the \
        exit code is 7 if one of them no longer fits. A line that releases the older side of a \
        contradiction is executed with --take-newer only.

Examples:
  ipamctl fsck
  ipamctl fsck -o json
  ipamctl fsck --apply fsck.json
  ipamctl fsck --apply fsck.json --dry-run
  ipamctl fsck --apply fsck.json --take-newer"
)]
pub(crate) struct FsckArguments {
    /// Execute the lines of a report of `fsck -o json`; - for standard input
    #[arg(long, value_name = "FILE")]
    apply: Option<PathBuf>,
    /// Execute mismatched lines, too: release the allocation, and leave the address to the other host
    #[arg(long, requires = "apply")]
    take_newer: bool,
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &FsckArguments) -> Result<(), Failure> {
    session.without("findings", &[Part::Network, Part::Realm, Part::Namespace])?;
    if let Some(file) = &arguments.apply {
        let report: finding::Report = reclaim::read_report(file, WRITTEN_BY)?;
        return apply::apply(session, report.items, arguments.take_newer).await;
    }
    if session.reading.consistency == Consistency::Stale {
        return Err(Failure::usage(
            "fsck compares linearizable reads only",
            "Remove --consistency stale: a late member knows of allocations that no longer exist.",
        ));
    }
    let report = find::find(session).await?;
    let json = serde_json::to_vec(&report).map_err(std::io::Error::from)?;
    let subjects: Vec<String> = report.items.iter().map(finding::Finding::subject).collect();
    session.show(&json, &subjects.join("\n"), || Ok(finding::shown(&report)))?;
    let revision = report.revision;
    if report.items.is_empty() {
        session.tell(&format!("nothing was found · revision {revision}"));
        return Ok(());
    }
    session.tell(&format!("{} · revision {revision} · nothing was changed", finding::sums(&report)));
    session.tell("apply lines:  ipamctl fsck -o json >fsck.json, then ipamctl fsck --apply fsck.json");
    Err(Failure::Found)
}
