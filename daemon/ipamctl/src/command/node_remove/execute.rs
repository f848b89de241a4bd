//! Execution of a report: releases exactly its allocations, each by its id.

use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::reclaim::ReclaimReason;
use serde_json::{Value, json};

use super::report::{Line, Report};
use crate::client::session::Session;
use crate::command::endpoint;
use crate::command::reclaim::{self, Fate, Target};
use crate::output::error::Failure;

/// Outcome of a removal, which may have ended early.
#[derive(Debug, Default)]
pub(super) struct Removal {
    pub(super) fates: Vec<(Line, Fate)>,
    /// True if the description of the node or the report of its agent was deleted.
    pub(super) is_deleted: bool,
    pub(super) failure: Option<Failure>,
}

impl Removal {
    /// Number of allocations with a fate.
    pub(super) fn number(&self, fate: Fate) -> u64 {
        self.fates.iter().filter(|(_, found)| *found == fate).count() as u64
    }

    /// The lines with their fates, for programs.
    pub(super) fn items(&self) -> Vec<Value> {
        let item = |(line, fate): &(Line, Fate)| {
            let mut item = json!(line);
            if let Some(fields) = item.as_object_mut() {
                fields.insert("result".to_owned(), json!(fate));
            }
            item
        };
        self.fates.iter().map(item).collect()
    }
}

/// Executes a report, and deletes the description of the node and the report of its agent. Ends at the
/// first failure.
pub(super) async fn execute(session: &Session, report: &Report) -> Removal {
    let mut removal = Removal::default();
    removal.failure = steps(session, report, &mut removal).await.err();
    removal
}

async fn steps(session: &Session, report: &Report, removal: &mut Removal) -> Result<(), Failure> {
    let (attached, held): (Vec<&Line>, Vec<&Line>) = report.items.iter().partition(|line| line.is_attached());
    reclaim_attached(session, report, &attached, removal).await?;
    for line in held {
        let path = format!("/v1/allocations/{}", line.allocation);
        let fate = if delete(session, path).await? { Fate::Released } else { Fate::LeftAlone };
        removal.fates.push((line.clone(), fate));
    }
    for key in &report.waiting {
        // The release of the last address may have ended the claim. A claim that was served meanwhile is in
        // use.
        if endpoint::only_waits(session, key).await? {
            delete(session, endpoint::path(key)).await?;
        }
    }
    removal.is_deleted = delete(session, format!("/v1/nodes/{}", report.node)).await?;
    Ok(())
}

/// Reclaims the allocations of the node's attachments. The servers refuse this while the agent is alive.
async fn reclaim_attached(
    session: &Session,
    report: &Report,
    lines: &[&Line],
    removal: &mut Removal,
) -> Result<(), Failure> {
    let target = |line: &&Line| Target {
        node: report.node.clone(),
        network: line.network.clone(),
        address: line.address,
        allocation: line.allocation,
    };
    let outcome = reclaim::all(session, ReclaimReason::NodeGone, lines.iter().map(target).collect()).await;
    for (target, fate) in outcome.fates {
        let line = lines.iter().find(|line| line.allocation == target.allocation);
        removal.fates.extend(line.map(|line| (Line::clone(line), fate)));
    }
    outcome.failure.map_or(Ok(()), Err)
}

/// Deletes a resource; false if it no longer exists, or if its allocation has changed.
async fn delete(session: &Session, path: String) -> Result<bool, Failure> {
    match session.write(Call::delete(path), reclaim::again()).await {
        Ok(_) => Ok(true),
        Err(failure) if matches!(failure.code(), Some(Code::NotFound | Code::AllocationChanged)) => Ok(false),
        Err(failure) => Err(failure),
    }
}
