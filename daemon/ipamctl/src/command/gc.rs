//! `ipamctl gc`: allocations of silent nodes, with the evidence against them, and their release by id.

use std::path::PathBuf;

use clap::Args;
use ipam_api::access::NodeKey;
use ipam_api::limits::SILENT_ROUNDS;
use ipam_api::reclaim::{GcLine, ReclaimReason};
use ipam_api::time::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::client::confirm;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::reclaim::{self, Fate, Outcome, Target};
use crate::output::error::Failure;
use crate::output::format::Format;
use crate::output::table::Table;
use crate::output::text;

/// Command that writes a report.
const WRITTEN_BY: &str = "ipamctl gc --dry-run -o json";

/// Arguments of `gc`.
#[derive(Debug, Args)]
#[command(
    after_help = "A node is silent after a time without heartbeats. Its allocations are suspect, and become \
        due once living nodes that heard their addresses before have found them silent for several \
        rounds. The leader reclaims due allocations by itself. The servers check each line again by its id.

Examples:
  ipamctl gc --dry-run
  ipamctl gc --dry-run -o json
  ipamctl gc --node prod-eu/worker-17
  ipamctl gc --from gc.json
  ipamctl gc --from gc.json --dry-run"
)]
pub(crate) struct GcArguments {
    /// Reclaim exactly the lines of a report of `gc --dry-run -o json`; - for standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Only allocations of this node: name, or realm/name
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Exit with code 7 if an allocation is due
    #[arg(long)]
    exit_code: bool,
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &GcArguments) -> Result<(), Failure> {
    let mut apart = vec![Part::Network, Part::Namespace];
    if arguments.node.is_none() {
        apart.push(Part::Realm);
    }
    session.without("reports of garbage collection", &apart)?;
    let node = arguments.node.as_deref().map(|text| node_key(session, text)).transpose()?;
    let is_wanted = |line: &GcLine| node.as_ref().is_none_or(|node| line.node == *node);
    if let Some(file) = &arguments.from {
        let mut report: Report = reclaim::read_report(file, WRITTEN_BY)?;
        report.items.retain(is_wanted);
        return reclaim_lines(session, &report, true).await;
    }
    let found = session.list::<GcLine>("/v1/gc", None, is_wanted).await?;
    let report = Report { items: found.items, revision: found.revision };
    match session.writing.dry_run {
        true => show(session, &report, &found.json, arguments.exit_code),
        false => reclaim_lines(session, &report, false).await,
    }
}

/// Suspect allocations in a report file.
#[derive(Debug, Deserialize)]
struct Report {
    items: Vec<GcLine>,
    revision: u64,
}

/// Key of a node that a command line names.
pub(crate) fn node_key(session: &Session, text: &str) -> Result<NodeKey, Failure> {
    let parts = session.in_realm(text)?.parts();
    let (realm, name) =
        parts.ok_or_else(|| Failure::usage("a node is named realm/name", "Add the realm."))?;
    Ok(NodeKey { realm, name })
}

/// Reason for which a suspect allocation is not due.
pub(crate) fn reason(line: &GcLine) -> String {
    if line.witnesses == 0 {
        return "no living node heard it before, so its silence proves nothing".to_owned();
    }
    let of = text::plural(line.witnesses, "node", "nodes");
    format!("silent in {} of {SILENT_ROUNDS} rounds of {of} that heard it before", line.silent_rounds)
}

fn verdict(line: &GcLine) -> &'static str {
    if line.due { "due" } else { "suspect" }
}

fn table(lines: &[GcLine], now: Timestamp) -> Table {
    Table::of(lines)
        .text("ADDRESS", |line| line.address)
        .spare("ALLOCATION", 4, |line| line.allocation)
        .spare("ENDPOINT", 1, |line| &line.endpoint)
        .text("NODE", |line| &line.node)
        .spare("HEARD", 2, |line| format!("{} ago", text::age(line.heard_at, now)))
        .number("WITNESSES", |line| line.witnesses)
        .number("ROUNDS", |line| format!("{}/{SILENT_ROUNDS}", line.silent_rounds))
        .text("VERDICT", verdict)
        .table()
}

fn show(session: &Session, report: &Report, body: &[u8], exit_code: bool) -> Result<(), Failure> {
    let addresses: Vec<String> = report.items.iter().map(|line| line.address.to_string()).collect();
    let due = report.items.iter().filter(|line| line.due).count() as u64;
    if session.format.is_for_people() && report.items.is_empty() {
        session.say(&format!("nothing to reclaim: no node is silent · revision {}", report.revision));
        return Ok(());
    }
    session.show_table(body, &addresses.join("\n"), || table(&report.items, session.now()))?;
    session.tell(&format!(
        "{} due, {} suspect · revision {} · nothing was changed",
        text::plural(due, "allocation is", "allocations are"),
        report.items.len() as u64 - due,
        report.revision
    ));
    if exit_code && due > 0 { Err(Failure::Found) } else { Ok(()) }
}

/// Reclaims the due lines of a report, or all lines of a file.
async fn reclaim_lines(session: &Session, report: &Report, all: bool) -> Result<(), Failure> {
    reclaim::check_no_key(session)?;
    let target = |line: &GcLine| Target {
        node: line.node.clone(),
        network: line.network.clone(),
        address: line.address,
        allocation: line.allocation,
    };
    let targets: Vec<Target> = report.items.iter().filter(|line| all || line.due).map(target).collect();
    if !targets.is_empty() {
        let mut nodes: Vec<&NodeKey> = targets.iter().map(|target| &target.node).collect();
        nodes.sort();
        nodes.dedup();
        let summary = [format!(
            "{} of silent {} {}: {}.",
            text::plural(targets.len() as u64, "allocation", "allocations"),
            if nodes.len() == 1 { "node" } else { "nodes" },
            "will be checked again and released",
            text::joined(nodes)
        )];
        confirm::moderate(session, &summary, "Reclaim them?").await?;
    }
    let outcome = reclaim::all(session, ReclaimReason::NodeSilent, targets).await;
    tell_outcome(session, &outcome, report.revision)?;
    outcome.failure.map_or(Ok(()), Err)
}

/// Shows the fate of each allocation.
fn tell_outcome(session: &Session, outcome: &Outcome, read_at: u64) -> Result<(), Failure> {
    let dry_run = session.writing.dry_run;
    let revision = outcome.revision.max(read_at);
    if session.format.is_for_people() || matches!(session.format, Format::Name) {
        let released = outcome.fates.iter().filter(|(_, fate)| *fate == Fate::Released);
        let names: Vec<String> = released.map(|(target, _)| target.address.to_string()).collect();
        if !outcome.fates.is_empty() {
            session.show_table(&[], &names.join("\n"), || fates(&outcome.fates, dry_run))?;
        }
        let number = text::plural(outcome.number(Fate::Released), "allocation", "allocations");
        let tried = if dry_run { "   (a dry run: nothing was changed)" } else { "" };
        session.tell(&format!("{number} {} · revision {revision}{tried}", session.tense("released")));
        return Ok(());
    }
    let item = |(target, fate): &(Target, Fate)| {
        json!({"allocation": target.allocation, "network": target.network, "address": target.address,
               "node": target.node, "result": fate})
    };
    let items: Vec<_> = outcome.fates.iter().map(item).collect();
    let document = json!({"items": items, "dry_run": dry_run, "revision": revision});
    session.data(document.to_string().as_bytes()).map(drop)
}

/// Table of fates.
pub(crate) fn fates(fates: &[(Target, Fate)], dry_run: bool) -> Table {
    Table::of(fates)
        .text("ADDRESS", |(target, _)| target.address)
        .text("ALLOCATION", |(target, _)| target.allocation)
        .spare("NODE", 1, |(target, _)| &target.node)
        .text("RESULT", |(_, fate)| fate.words(dry_run))
        .table()
}
