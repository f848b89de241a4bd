//! Route of reports of workloads by their orchestrator.

use ipam_api::access::{Target, Verb};

use super::route::{Handled, Route};
use crate::http::report::workload;

pub(super) fn routes() -> [Handled; 1] {
    [Route::post(
        "/v1/workloads",
        (Verb::Release, Target::Endpoint),
        "Judges observed states of workloads, and releases the addresses of those that are gone.",
    )
    .takes("WorkloadsRequest")
    .json(200, "WorkloadsAnswer")
    .to(workload::judge)]
}
