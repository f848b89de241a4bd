//! A member that is new asks to be taken in.

use axum::extract::State as AppState;
use ipam_api::cluster::{JoinMemberRequest, MemberJoined};
use ipam_api::{Code, Problem};
use ipam_raft::machine::command::{JoinMember, Text, Via};
use ipam_raft::machine::{Action, Answer};

use crate::http::App;
use crate::http::cluster::member;
use crate::http::query::{Asked, NoQuery};
use crate::http::reply::{Refused, Shown};
use crate::http::write::Write;

pub(super) async fn join(
    AppState(app): AppState<App>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<Shown<MemberJoined>, Refused> {
    let request: JoinMemberRequest = write.read()?;
    let members = app.node.members(write.asker.deadline).await.map_err(Problem::from)?;
    let level = app.node.stale().0.header.level;
    if request.level < level {
        let detail = format!("{} knows level {} and the cluster is at {level}", request.name, request.level);
        return Err(Problem::new(Code::FeatureLevel, detail).help("Upgrade it, then start it again.").into());
    }
    let action = Action::JoinMember(JoinMember {
        name: request.name,
        disk_id: Text::given(request.disk_id),
        peer_address: Text::given(request.peer_address),
        client_url: Text::given(request.client_url),
        known: app.node.known_members(),
    });
    let applied = app.propose(&write, Via::Http, action).await?;
    let Answer::Members { ids } = applied.answer else {
        return Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for").into());
    };
    let body = MemberJoined {
        cluster_id: app.node.status().cluster_id.unwrap_or_default(),
        id: ids.first().copied().unwrap_or_default(),
        level,
        members: members.into_iter().map(member).collect(),
    };
    Ok(Shown::new(body, applied.revision))
}
