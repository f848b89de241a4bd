//! `/v1/gc` and `/v1/nodes/{realm}/{name}/reclaim`: suspect allocations, and their release by id.

use axum::extract::Path;
use ipam_api::access::{Target, Verb};
use ipam_api::reclaim::{GcLine, ReclaimReason, ReclaimRequest, Reclaimed};
use ipam_api::resource::Page;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use ipam_machine::command::{self, Reclaim};
use ipam_machine::{Action, Answer, Applied, State, Suspect, SuspectPlace};

use super::agent::{NodePath, PageQuery, another_answer, node_at};
use crate::http::request::{ApiError, ApiResponse, Read, Write, page_limit};

/// Lists suspect allocations, of the longest silent node first.
pub(in crate::http) async fn report(read: Read<PageQuery>) -> Result<ApiResponse<Page<GcLine>>, ApiError> {
    let limit = page_limit(read.query.limit)?;
    let after = read.query.cursor.as_deref().map(place).transpose()?;
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Allocation), read.query.freshness()).await?;
    let mut suspects = state.suspects(read.app.gc.node_grace_ms, after);
    let (mut items, mut last) = (Vec::new(), None);
    for suspect in suspects.by_ref().take(limit) {
        last = Some(suspect.place);
        items.extend(line(&state, suspect));
    }
    let next = last.filter(|_| suspects.next().is_some()).map(cursor);
    let revision = state.revision();
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(Page { items, revision, next, count: None }, revision) })
}

/// Encodes the place of a suspect as a cursor.
fn cursor(SuspectPlace { node: (heard_ms, report), attachment, allocation }: SuspectPlace) -> String {
    format!("{heard_ms}.{report}.{}.{}", attachment.get(), allocation.get())
}

fn place(cursor: &str) -> Result<SuspectPlace, Problem> {
    let numbers: Result<Vec<u64>, _> = cursor.split('.').take(5).map(str::parse).collect();
    match numbers.as_deref() {
        Ok([heard_ms, report, attachment, allocation]) if *attachment > 0 => Ok(SuspectPlace {
            node: (*heard_ms, *report),
            attachment: (*attachment).into(),
            allocation: (*allocation).into(),
        }),
        _ => Err(Problem::new(Code::InvalidCursor, "the cursor is malformed")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is_one() {
        let of = SuspectPlace { node: (30_000, 7), attachment: 9.into(), allocation: 11.into() };
        assert_eq!(cursor(of), "30000.7.9.11");
        assert_eq!(place("30000.7.9.11").unwrap(), of);
        for odd in ["", "1.2.3", "1.2.3.4.5", "1.2.0.4", "1.2.x.4", "1.2.3.-4"] {
            assert_eq!(place(odd).unwrap_err().code, Code::InvalidCursor, "{odd}");
        }
    }
}
