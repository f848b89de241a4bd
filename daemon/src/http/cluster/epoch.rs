//! `/v1/cluster/epoch`: epoch that the last restore began, and pools that wait for confirmation.

use ipam_api::access::{Target, Verb};
use ipam_api::cluster::{ConfirmRequest, Epoch};
use ipam_api::time::Timestamp;
use ipam_machine::command::ConfirmEpoch;
use ipam_machine::{Action, State};

use crate::http::request::{ApiError, ApiResponse, Read, Write};

pub(in crate::http) async fn show(read: Read) -> Result<ApiResponse<Epoch>, ApiError> {
    let (state, stale_ms) = read.state((Verb::Read, Target::Cluster)).await?;
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(epoch(&state), state.revision()) })
}

pub(in crate::http) async fn confirm(write: Write) -> Result<ApiResponse<Epoch>, ApiError> {
    let ConfirmRequest { epoch: number, pools } = write.read()?;
    let action = Action::ConfirmEpoch(ConfirmEpoch { epoch: number, pools });
    let done = write.carry_out(action).await?;
    let state = write.after(&done).await;
    Ok(ApiResponse::new(epoch(&state), done.applied.revision))
}

fn epoch(state: &State) -> Epoch {
    let begun = state.epochs.last().map(|(_, row)| row);
    Epoch {
        epoch: state.header().epoch,
        confirmed: state.unconfirmed().is_none(),
        from_revision: begun.map(|row| row.from_revision),
        since: begun.map(|row| Timestamp(row.since_wall_ms)),
        confirmed_at: begun.and_then(|row| row.ended_wall_ms).map(Timestamp),
        waiting: state.waiting_pools().collect(),
    }
}
