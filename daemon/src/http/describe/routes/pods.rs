//! Routes of reported pods.

use ipam_api::access::{Target, Verb};

use super::route::{Handled, Route};
use crate::http::report::pod;

pub(super) fn routes() -> [Handled; 2] {
    [
        Route::list::<pod::Pods>(
            "Lists the pods that watchers have reported, oldest report first.",
            "ReportedPodPage",
        ),
        Route::post(
            "/v1/pods",
            (Verb::Report, Target::Endpoint),
            "Records pods of a realm, by which claims of its nodes are verified.",
        )
        .takes("PodsReport")
        .json(200, "PodsReported")
        .to(pod::report),
    ]
}
