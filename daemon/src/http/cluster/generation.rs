//! `/v1/cluster/generation`: what a restore has begun, and which pools wait to be confirmed.

use ipam_api::access::{Target, Verb};
use ipam_api::cluster::{ConfirmRequest, Generation};
use ipam_api::time::Timestamp;
use ipam_machine::command::ConfirmGeneration;
use ipam_machine::{Action, State};

use crate::http::request::{ApiError, Read, Shown, Write};

pub(in crate::http) async fn show(read: Read) -> Result<Shown<Generation>, ApiError> {
    let (state, stale_ms) = read.state((Verb::Read, Target::Cluster)).await?;
    Ok(Shown { stale_ms, ..Shown::new(generation(&state), state.revision()) })
}

pub(in crate::http) async fn confirm(write: Write) -> Result<Shown<Generation>, ApiError> {
    let ConfirmRequest { generation: number, pools } = write.read()?;
    let action = Action::ConfirmGeneration(ConfirmGeneration { generation: number, pools });
    let done = write.carry_out(action).await?;
    let state = write.after(&done).await;
    Ok(Shown::new(generation(&state), done.applied.revision))
}

fn generation(state: &State) -> Generation {
    let begun = state.generations.last().map(|(_, row)| row);
    Generation {
        generation: state.header().generation,
        confirmed: state.unconfirmed().is_none(),
        from_revision: begun.map(|row| row.from_revision),
        since: begun.map(|row| Timestamp(row.since_wall_ms)),
        confirmed_at: begun.and_then(|row| row.ended_wall_ms).map(Timestamp),
        waiting: state.waiting_pools().collect(),
    }
}
