//! `ipamctl node gone`: declares that a node no longer exists, and releases its attached allocations.

use ipam_api::Code;
use ipam_api::access::NodeKey;
use ipam_api::limits::{PROBER_SILENCE_MS_MAX, RECLAIM_LINES_MAX};
use ipam_api::node_report::NodeAttachment;
use ipam_api::reclaim::ReclaimReason;
use serde_json::json;

use crate::client::confirm;
use crate::client::session::Session;
use crate::command::gc::node_key;
use crate::command::reclaim;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

/// Runs the command.
pub(crate) async fn run(session: &Session, name: &str) -> Result<(), Failure> {
    reclaim::check_no_key(session)?;
    let node = node_key(session, name)?;
    let path = format!("/v1/nodes/{node}/attachments");
    let attachments = session.list::<NodeAttachment>(&path, None, |_| true).await?;
    let mut ids: Vec<u64> = attachments.items.iter().flat_map(|one| one.allocations.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    if session.format.is_for_people() && !attachments.items.is_empty() {
        session.print(&table(&attachments.items).render(session.headers, session.environment.width))?;
    }
    if let Some(first) = ids.chunks(RECLAIM_LINES_MAX).next() {
        // The servers know whether the node's agent is alive. The user is prompted only if it isn't.
        let call = reclaim::call(&node, ReclaimReason::NodeGone, first)?;
        session.preview(call).await.map_err(|failure| explained(&node, failure))?;
        let attached = text::plural(attachments.items.len() as u64, "attachment", "attachments");
        let allocated = text::plural(ids.len() as u64, "allocation", "allocations");
        let summary = [
            format!("node {node} has {attached} with {allocated}."),
            "Other endpoints may get their addresses. If the node still runs, addresses are used twice."
                .to_owned(),
            "Held addresses stay, and sticky endpoints keep theirs.".to_owned(),
        ];
        confirm::moderate(session, &summary, &format!("Is node {node} gone, and reclaim them?")).await?;
    }
    let (mut addresses, mut stale, mut revision) = (Vec::new(), 0, attachments.revision);
    let mut ended = Ok(());
    for chunk in ids.chunks(RECLAIM_LINES_MAX) {
        match reclaim::send(session, &node, ReclaimReason::NodeGone, chunk).await {
            Ok(reclaimed) => {
                addresses.extend(reclaimed.addresses);
                stale += reclaimed.stale;
                revision = reclaimed.revision;
            }
            Err(failure) => {
                ended = Err(explained(&node, failure));
                break;
            }
        }
    }
    let document = json!({"node": node, "addresses": addresses, "stale": stale,
                          "dry_run": session.writing.dry_run, "revision": revision});
    let names: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if session.format.is_for_people() {
        let freed = text::plural(addresses.len() as u64, "address", "addresses");
        let tried = if session.writing.dry_run { "   (a dry run: nothing was changed)" } else { "" };
        session.say(&format!(
            "{freed} of node {node} {}, {} left alone · revision {revision}{tried}",
            session.tense("released"),
            text::plural(stale, "allocation", "allocations")
        ));
    } else {
        session.show(document.to_string().as_bytes(), &names.join("\n"), || Ok(String::new()))?;
    }
    ended
}

/// Adds the remedy to the refusal for a node whose agent is alive.
pub(super) fn explained(node: &NodeKey, failure: Failure) -> Failure {
    let wait = text::duration(PROBER_SILENCE_MS_MAX);
    match failure.code() {
        Some(Code::InUse) => failure.helped_by(format!(
            "Nothing was changed by this request. The agent of {node} is alive, and reports containers \
             that end by itself. If the node is to leave, stop it first, and repeat the command {wait} later."
        )),
        _ => failure,
    }
}

fn table(attachments: &[NodeAttachment]) -> Table {
    Table::of(attachments)
        .text("ENDPOINT", |one| &one.endpoint)
        .text("INTERFACE", |one| &one.attachment.interface)
        .spare("CONTAINER", 2, |one| &one.attachment.container_id)
        .spare("CONFIGURATION", 3, |one| &one.attachment.config)
        .spare("ALLOCATIONS", 1, |one| text::joined(&one.allocations))
        .table()
}
