//! Routes for what makes endpoints.

use ipam_api::access::{Target, Verb};

use super::route::{Access, OF_RELEASES, Route};

pub(super) fn routes() -> [Route; 2] {
    [
        Route::new(
            "POST",
            "/v1/controllers/scale",
            Access::Permission(Verb::Release, Target::Application),
            "Takes back what sticky endpoints keep that their controller no longer wants.",
        )
        .takes("ScaleRequest")
        .json(200, "Released")
        .refuses(OF_RELEASES),
        Route::new(
            "POST",
            "/v1/controllers/end",
            Access::Permission(Verb::Release, Target::Application),
            "Takes back what sticky endpoints of a controller that is gone keep, and the pools that were \
             made for it.",
        )
        .takes("EndRequest")
        .json(200, "Released")
        .refuses(OF_RELEASES),
    ]
}
