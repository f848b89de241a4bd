//! The command: its arguments, its prompts and its result.

use std::path::PathBuf;

use clap::Args;
use ipam_api::access::NodeKey;
use ipam_api::limits::PROBER_SILENCE_MS_MAX;
use ipam_api::node_report::NodeAgent;
use ipam_api::reclaim::ReclaimReason;
use ipam_api::{Code, Problem};
use serde_json::json;

use super::execute::{Removal, execute};
use super::find::find;
use super::report::{Line, Report};
use crate::client::confirm;
use crate::client::session::Session;
use crate::command::arguments::NamedInRealm;
use crate::command::gc::node_key;
use crate::command::node_gone;
use crate::command::reclaim::{self, Fate};
use crate::output::error::Failure;
use crate::output::text;

/// Command that writes a report.
const WRITTEN_BY: &str = "ipamctl node remove NAME --release --dry-run -o json";

/// Arguments of `node remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    #[command(flatten)]
    named: NamedInRealm,
    /// Release the addresses of the host, and those of attachments on it
    #[arg(long)]
    release: bool,
    /// Release exactly the lines of a report of `--dry-run -o json`; - for standard input
    #[arg(long, value_name = "FILE", requires = "release")]
    from: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &RemoveArguments) -> Result<(), Failure> {
    reclaim::check_no_key(session)?;
    let node = node_key(session, &arguments.named.name)?;
    let report = match &arguments.from {
        None => find(session, &node).await?,
        Some(file) => reclaim::read_report(file, WRITTEN_BY)?,
    };
    if report.node != node {
        let detail = format!("the report is of node {}, not of {node}", report.node);
        return Err(Failure::usage(detail, "Name the node of the report."));
    }
    if let Some(line) = report.odd() {
        let detail = format!("allocation {} of {} is not of node {node}", line.allocation, line.endpoint);
        return Err(Failure::usage(detail, "Use a report of this command as it was written."));
    }
    if !arguments.release && !report.is_empty() {
        return Err(holds(&report).into());
    }
    if session.format.is_for_people() && !report.items.is_empty() {
        session.print(&report.table().render(session.headers, session.environment.width))?;
    }
    check_attached(session, &report).await?;
    ask(session, &report).await?;
    let removal = execute(session, &report).await;
    tell(session, &report, &removal)?;
    match removal.failure {
        Some(failure) => Err(node_gone::explained(&node, failure)),
        None => Ok(()),
    }
}

/// Refusal to remove a node that has allocations or claims.
fn holds(report: &Report) -> Problem {
    let node = &report.node;
    let detail = format!("{} of node {node}", counted(report));
    let help = format!(
        "See them: ipamctl node remove {node} --release --dry-run. With --release they are released."
    );
    Problem::new(Code::InUse, format!("node {node} is not removed: {detail} would lose their node"))
        .help(help)
}

/// Numbers of allocations and claims in words.
fn counted(report: &Report) -> String {
    let addresses = text::plural(report.items.len() as u64, "address", "addresses");
    match report.waiting.len() as u64 {
        0 => addresses,
        waiting => format!("{addresses} and {}", text::plural(waiting, "waiting claim", "waiting claims")),
    }
}

/// Refuses the whole removal before any change, if the node has attachments and its agent is alive.
async fn check_attached(session: &Session, report: &Report) -> Result<(), Failure> {
    let Some(line) = report.items.iter().find(|line| line.is_attached()) else { return Ok(()) };
    let call = reclaim::call(&report.node, ReclaimReason::NodeGone, &[line.allocation])?;
    let tried = session.preview(call).await;
    tried.map(drop).map_err(|failure| node_gone::explained(&report.node, failure))
}

/// Asks for confirmation, unless the report is empty and the agent is silent.
async fn ask(session: &Session, report: &Report) -> Result<(), Failure> {
    let alive = alive(session, &report.node).await?;
    if report.is_empty() && alive.is_none() {
        return Ok(());
    }
    let mut summary = vec![format!("Node {} has {}.", report.node, counted(report))];
    summary.extend(alive);
    if report.items.iter().any(Line::is_attached) {
        summary
            .push("Sticky endpoints keep their addresses, without the attachments on the node.".to_owned());
    }
    confirm::moderate(session, &summary, "Release them, and remove the node?").await
}

/// Warning, if the agent of the node was heard recently.
async fn alive(session: &Session, node: &NodeKey) -> Result<Option<String>, Failure> {
    let read = session.read(&format!("/v1/nodes/{node}/agent")).await;
    let agent: NodeAgent = match read {
        Ok(answer) => answer.read()?,
        Err(failure) if failure.code() == Some(Code::NotFound) => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let age_ms = session.now().0.saturating_sub(agent.heard_at.0);
    let words = format!(
        "Its agent was heard {} ago: the host runs, and goes on using its addresses.",
        text::age(agent.heard_at, session.now())
    );
    Ok((age_ms <= PROBER_SILENCE_MS_MAX).then_some(words))
}

fn tell(session: &Session, report: &Report, removal: &Removal) -> Result<(), Failure> {
    let node = &report.node;
    let dry_run = session.writing.dry_run;
    if !session.format.is_for_people() {
        let document = json!({"node": node, "items": removal.items(), "waiting": report.waiting,
                              "deleted": removal.is_deleted, "dry_run": dry_run,
                              "revision": report.revision});
        let names: Vec<String> = removal.fates.iter().map(|(line, _)| line.address.to_string()).collect();
        return session.show(document.to_string().as_bytes(), &names.join("\n"), || Ok(String::new()));
    }
    let released = text::plural(removal.number(Fate::Released), "address", "addresses");
    let others = removal.fates.len() as u64 - removal.number(Fate::Released);
    let left = if others == 0 { String::new() } else { format!(", {others} kept or left alone") };
    let removed = match (removal.is_deleted, &removal.failure) {
        (true, _) => format!("node {node} {}", session.tense("deleted")),
        (false, None) => format!("node {node} has neither a description nor heartbeats to delete"),
        (false, Some(_)) => format!("node {node} is not deleted; run the same command again to continue"),
    };
    let tried = if dry_run { "   (a dry run: nothing was changed)" } else { "" };
    session.say(&format!("{released} {}{left}; {removed}{tried}", session.tense("released")));
    Ok(())
}
