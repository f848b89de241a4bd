//! Routes of the cluster and its members.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::fresh;
use super::route::{Access, Handled, Route};
use crate::http::cluster::member::{change, join, list};

const CHANGES: &[Code] = &[Code::NotFound, Code::MemberUnfit, Code::QuorumAtRisk, Code::RevisionMismatch];

pub(super) fn routes() -> [Handled; 6] {
    let write = (Verb::Write, Target::Cluster);
    [
        Route::get("/v1/cluster/members", Target::Cluster, "Shows the members as seen by the leader.")
            .query(fresh())
            .json(200, "Members")
            .to(list::list),
        Route::new(
            "POST",
            "/v1/cluster/members",
            Access::MemberJoinToken,
            "Adds a member as a learner. A repeated request gets the same response.",
        )
        .takes("JoinMemberRequest")
        .json(200, "MemberJoined")
        .refuses(&[Code::AlreadyExists, Code::FeatureLevel])
        .to(join::join),
        Route::delete(
            "/v1/cluster/members/{name}",
            write,
            "Removes a member; dry_run returns the effect only.",
        )
        .json(200, "MemberChange")
        .refuses(CHANGES)
        .to(change::remove),
        Route::post(
            "/v1/cluster/members/{name}/promote",
            write,
            "Promotes a learner to a voter; dry_run returns the effect only.",
        )
        .json(200, "MemberChange")
        .refuses(CHANGES)
        .to(change::promote),
        Route::post(
            "/v1/cluster/members/{name}/replace",
            write,
            "Replaces a voter by a learner in one step; dry_run returns the effect only.",
        )
        .takes("ReplaceRequest")
        .json(200, "MemberChange")
        .refuses(CHANGES)
        .to(change::replace),
        Route::post(
            "/v1/cluster/transfer-leader",
            write,
            "Transfers leadership to another voter; dry_run returns the effect only.",
        )
        .takes("TransferRequest")
        .json(200, "MemberChange")
        .refuses(&[Code::NotFound, Code::MemberUnfit])
        .to(list::transfer_leader),
    ]
}
