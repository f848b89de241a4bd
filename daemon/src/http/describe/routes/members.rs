//! The part of the table that is about the members of the cluster.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::fresh;
use super::route::{Access, Handled, Route};
use crate::http::cluster::member::{change, join, list};

const CHANGES: &[Code] = &[Code::NotFound, Code::MemberUnfit, Code::QuorumAtRisk, Code::RevisionMismatch];

pub(super) fn routes() -> [Handled; 6] {
    let write = (Verb::Write, Target::Cluster);
    [
        Route::get("/v1/cluster/members", Target::Cluster, "Shows the members as the leader sees them.")
            .query(fresh())
            .json(200, "Members")
            .to(list::list),
        Route::new(
            "POST",
            "/v1/cluster/members",
            Access::MemberJoinToken,
            "Takes a new member in, as a learner. The same again gets the same answer.",
        )
        .takes("JoinMemberRequest")
        .json(200, "MemberJoined")
        .refuses(&[Code::AlreadyExists, Code::FeatureLevel])
        .to(join::join),
        Route::delete(
            "/v1/cluster/members/{name}",
            write,
            "Removes a member; with dry_run says what that would do.",
        )
        .json(200, "MemberChange")
        .refuses(CHANGES)
        .to(change::remove),
        Route::post(
            "/v1/cluster/members/{name}/promote",
            write,
            "Gives a learner a vote; with dry_run says what that would do.",
        )
        .json(200, "MemberChange")
        .refuses(CHANGES)
        .to(change::promote),
        Route::post(
            "/v1/cluster/members/{name}/replace",
            write,
            "Gives a learner a vote and removes the member whose place it takes, in one step; with dry_run \
             says what that would do.",
        )
        .takes("ReplaceRequest")
        .json(200, "MemberChange")
        .refuses(CHANGES)
        .to(change::replace),
        Route::post(
            "/v1/cluster/transfer-leader",
            write,
            "Makes another voter the leader; with dry_run says what that would do.",
        )
        .takes("TransferRequest")
        .json(200, "MemberChange")
        .refuses(&[Code::NotFound, Code::MemberUnfit])
        .to(list::transfer_leader),
    ]
}
