//! `/v1/gc` and `/v1/nodes/{realm}/{name}/reclaim`: suspect allocations, and their release by id.

use axum::extract::Path;
use ipam_api::access::{Target, Verb};
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::reclaim::{GcLine, GcReport, ReclaimReason, ReclaimRequest, Reclaimed};
use ipam_api::time::Timestamp;
use ipam_machine::command::{self, Reclaim};
use ipam_machine::{Action, Answer, Applied, State, Suspect};

use super::agent::{NodePath, another_answer, node_at};
use crate::http::request::{ApiError, ApiResponse, Read, Write};

pub(in crate::http) async fn report(read: Read) -> Result<ApiResponse<GcReport>, ApiError> {
    let (state, stale_ms) = read.state((Verb::Read, Target::Allocation)).await?;
    let mut suspects = state.suspects(read.app.gc.node_grace_ms);
    let lines: Vec<GcLine> =
        suspects.by_ref().filter_map(|suspect| line(&state, suspect)).take(PAGE_ITEMS_MAX).collect();
    let body = GcReport { lines, more: suspects.next().is_some(), revision: state.revision() };
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(body, state.revision()) })
}

fn line(state: &State, suspect: Suspect<'_>) -> Option<GcLine> {
    let row = state.allocations.get(suspect.allocation)?;
    Some(GcLine {
        allocation: suspect.allocation.get(),
        network: state.networks.get(row.network)?.spec.name.clone(),
        address: row.address,
        pool: state.pools.get(row.pool)?.spec.name.clone(),
        endpoint: state.endpoints.get(row.endpoint)?.key.clone(),
        node: suspect.report.node.clone(),
        heard_at: Timestamp(suspect.report.heard_wall_ms),
        witnesses: suspect.witnesses as u64,
        silent_rounds: suspect.rounds.into(),
        due: suspect.is_due,
    })
}

pub(in crate::http) async fn reclaim(
    Path(path): Path<NodePath>,
    write: Write,
) -> Result<ApiResponse<Reclaimed>, ApiError> {
    let node = node_at(&path)?;
    let ReclaimRequest { reason, allocations } = write.read()?;
    let reason = match reason {
        ReclaimReason::NodeGone => command::ReclaimReason::NodeGone,
        ReclaimReason::NodeSilent => {
            command::ReclaimReason::NodeSilent { grace_ms: write.app.gc.node_grace_ms }
        }
    };
    let allocations = allocations.into_iter().map(Into::into).collect();
    let Applied { revision, answer, .. } =
        write.propose(Action::Reclaim(Reclaim { node, reason, allocations })).await?;
    let Answer::Reclaimed { addresses, stale } = answer else { return Err(another_answer().into()) };
    Ok(ApiResponse::new(Reclaimed { addresses, stale, revision }, revision))
}
