//! Join request of a new member.

use ipam_api::cluster::{JoinMemberRequest, MemberJoined};
use ipam_api::place::PeerAddress;
use ipam_api::{Code, Problem};
use ipam_machine::command::{JoinMember, Text};
use ipam_machine::{Action, Answer};

use crate::http::cluster::status::member;
use crate::http::request::{ApiError, ApiResponse, Write};

/// Refuses a member if the member and this server could not reach each other.
fn reachable(mine: &str, request: &JoinMemberRequest) -> Result<(), Problem> {
    let Some(address) = PeerAddress::parse(mine) else {
        let why = "the member that was asked has no peer port, so no other member can reach it";
        return Err(Problem::new(Code::MemberUnfit, why).help(
            "On its host, set peer_listen to a unix socket (all members on that host) or give it [peer_tls], \
             and start it again; deploy/docs/membership.md says how.",
        ));
    };
    let theirs = PeerAddress::parse(&request.peer_address);
    if theirs.is_some_and(|theirs| theirs.is_socket() != address.is_socket()) {
        let why = format!(
            "{} answers peers at {}, and the member that was asked at {mine}: a unix socket is reached on \
             its own host only",
            request.name, request.peer_address
        );
        return Err(Problem::new(Code::MemberUnfit, why).help(
            "Give all members unix sockets if they are on one host, else all of them [peer_tls] and an \
             address host:port.",
        ));
    }
    Ok(())
}

pub(in crate::http) async fn join(write: Write) -> Result<ApiResponse<MemberJoined>, ApiError> {
    let request: JoinMemberRequest = write.read()?;
    let members = write.app.node.members(write.caller.deadline).await?;
    let level = write.app.node.stale().0.header().level;
    if request.level < level {
        let detail = format!("{} knows level {} and the cluster is at {level}", request.name, request.level);
        return Err(Problem::new(Code::FeatureLevel, detail).help("Upgrade it, then start it again.").into());
    }
    reachable(write.app.node.peer_address(), &request)?;
    let action = Action::JoinMember(JoinMember {
        name: request.name,
        disk_id: Text::given(request.disk_id),
        peer_address: Text::given(request.peer_address),
        client_url: Text::given(request.client_url),
        known: write.app.node.known_members(),
    });
    let applied = write.propose(action).await?;
    let Answer::Members { ids } = applied.answer else {
        return Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for").into());
    };
    let body = MemberJoined {
        cluster_id: write.app.node.status().cluster_id.unwrap_or_default(),
        id: ids.first().copied().unwrap_or_default(),
        level,
        members: members.into_iter().map(member).collect(),
    };
    Ok(ApiResponse::new(body, applied.revision))
}
