//! Routes of controllers of endpoints.

use ipam_api::access::{Target, Verb};

use super::route::{Access, OF_RELEASES, Route};

pub(super) fn routes() -> [Route; 2] {
    [
        Route::new(
            "POST",
            "/v1/controllers/scale",
            Access::Permission(Verb::Release, Target::Application),
            "Releases the allocations of sticky endpoints beyond the replicas of their controller.",
        )
        .takes("ScaleRequest")
        .json(200, "Released")
        .refuses(OF_RELEASES),
        Route::new(
            "POST",
            "/v1/controllers/end",
            Access::Permission(Verb::Release, Target::Application),
            "Releases the allocations and the automatic pools of a deleted controller.",
        )
        .takes("EndRequest")
        .json(200, "Released")
        .refuses(OF_RELEASES),
    ]
}
