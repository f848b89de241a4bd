//! Routes of leases.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::route::{Handled, Route};
use crate::http::allocation::{allocate, endpoint};

pub(super) fn routes() -> [Handled; 2] {
    let renew = |path: &str, summary: &str, gone: &[Code]| {
        Route::post(path, (Verb::Allocate, Target::Allocation), summary)
            .takes("RenewRequest")
            .json(200, "Renewed")
            .refuses(&[Code::NotFound, Code::NotLeased, Code::ForeignNode])
            .refuses(gone)
    };
    [
        renew(
            "/v1/endpoints/{kind}/{realm}/{namespace}/{name}/renew",
            "Lets all leases of an endpoint last longer.",
            &[],
        )
        .to(endpoint::renew),
        renew(
            "/v1/allocations/{id}/renew",
            "Lets the lease of an allocation last longer.",
            &[Code::AllocationChanged],
        )
        .to(allocate::renew),
    ]
}
