//! `/v1/cluster/generation`: what a restore has begun, and which pools wait to be confirmed.

use axum::Router;
use axum::extract::State as AppState;
use axum::routing::{get, post};
use ipam_api::access::{Target, Verb};
use ipam_api::cluster::{ConfirmRequest, Generation};
use ipam_api::time::Timestamp;
use ipam_machine::command::{ConfirmGeneration, Via};
use ipam_machine::{Action, State};

use crate::http::request::{App, Asked, Asker, NoQuery, ReadQuery, Refused, Shown, Write};

pub(in crate::http) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/cluster/generation", get(show))
        .route("/v1/cluster/generation/confirm", post(confirm))
}

async fn show(
    AppState(app): AppState<App>,
    asker: Asker,
    Asked(query): Asked<ReadQuery>,
) -> Result<Shown<Generation>, Refused> {
    let (state, stale_ms) = app.read(&asker, (Verb::Read, Target::Cluster), query).await?;
    Ok(Shown { stale_ms, ..Shown::new(generation(&state), state.revision()) })
}

async fn confirm(
    AppState(app): AppState<App>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<Shown<Generation>, Refused> {
    let ConfirmRequest { generation: number, pools } = write.read()?;
    let action = Action::ConfirmGeneration(ConfirmGeneration { generation: number, pools });
    let done = app.carry_out(&write, Via::Http, action).await?;
    let state = app.after(&write.asker, &done).await;
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
