//! The part of the table that is about the members of the cluster.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::fresh;
use super::{Access, Route};

pub(super) fn routes() -> Vec<Route> {
    let write = Access::Deed(Verb::Write, Target::Cluster);
    vec![
        Route::get("/v1/cluster/members", Target::Cluster, "Shows the members as the leader sees them.")
            .query(fresh())
            .json(200, "Members"),
        Route::new(
            "POST",
            "/v1/cluster/transfer-leader",
            write,
            "Makes another voter the leader; with dry_run says what that would do.",
        )
        .takes("TransferRequest")
        .json(200, "MemberChange")
        .refuses(&[Code::NotFound, Code::MemberUnfit]),
    ]
}
