//! `/v1/cluster` and `/version`: the cluster as this member sees it. Answers without a leader too.

use axum::Json;
use ipam_api::access::{Target, Verb};
use ipam_api::brand::PRODUCT;
use ipam_api::cluster::{Cluster, Member, Version};
use ipam_machine::level;
use ipam_machine::space::Counts;
use ipam_raft::node::{MemberInfo, Role};

use crate::http::request::{ApiError, ApiResponse, Read};

pub(in crate::http) async fn show(read: Read) -> Result<ApiResponse<Cluster>, ApiError> {
    read.app.check_here(&read.caller, (Verb::Read, Target::Cluster))?;
    let status = read.app.node.status();
    let (_, stale_ms) = read.app.node.stale();
    // Digest and index must come from one state, since members are compared by them.
    let (state, applied) = read.app.node.stale_with_index();
    let sum = |a: Counts, b: Counts| Counts {
        size: a.size.saturating_add(b.size),
        allocated: a.allocated.saturating_add(b.allocated),
        cooling: a.cooling + b.cooling,
        quarantined: a.quarantined + b.quarantined,
        reserved: a.reserved.saturating_add(b.reserved),
        excluded: a.excluded.saturating_add(b.excluded),
        free: a.free.saturating_add(b.free),
    };
    let spaces = state.pools.iter().filter_map(|(id, _)| state.space(id));
    let addresses = spaces.map(|space| space.counts()).fold(Counts::default(), sum);
    let body = Cluster {
        id: status.cluster_id.unwrap_or_default(),
        epoch: state.header().epoch,
        level: state.header().level,
        answered_by: status.name,
        leader: status.leader.map(|leader| leader.name),
        term: status.term,
        revision: state.revision(),
        digest: format!("{:032x}", state.digest()),
        applied: applied.unwrap_or_default(),
        stale_ms,
        members: status.members.into_iter().map(member).collect(),
        addresses: addresses.into(),
        pools: state.pools.len() as u64,
        disk_free_bytes: Some(status.disk.free_bytes),
        disk_room: Some(status.disk.room.as_str().to_owned()),
    };
    Ok(ApiResponse { stale_ms: Some(stale_ms), ..ApiResponse::new(body, state.revision()) })
}

pub(in crate::http) fn member(info: MemberInfo) -> Member {
    let role = match info.role {
        Role::Leader => "leader",
        Role::Learner => "learner",
        Role::Pristine | Role::Follower | Role::Candidate => "voter",
    };
    Member {
        id: info.id,
        name: info.name,
        role: role.to_owned(),
        client_url: info.client_url,
        peer_address: info.peer_address,
        behind: info.behind,
        quarantined: info.quarantined,
        version: info.version,
        level: info.level,
        silent_ms: info.silent_ms,
        answers: info.answers,
    }
}

pub(in crate::http) async fn version() -> Json<Version> {
    Json(Version {
        product: PRODUCT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        level: level::known(),
    })
}
