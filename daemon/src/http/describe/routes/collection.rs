//! Routes of garbage collection: tasks, suspect allocations and quarantined addresses.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{fresh, paged, parameter};
use super::route::{Body, Handled, OF_READS, Route};
use crate::http::cluster::task;
use crate::http::report::{quarantine, reclaim};

pub(super) fn routes() -> [Handled; 5] {
    let item = "/v1/quarantines/{ip}";
    let network = || parameter("network", "name", "Network of the address; default: `default`.");
    [
        Route::get("/v1/tasks", Target::Cluster, "Shows the tasks of the leader, as this member ran them.")
            .query(fresh())
            .json(200, "Tasks")
            .to(task::show),
        Route::get(
            "/v1/gc",
            Target::Allocation,
            "Lists attached allocations of silent nodes, with evidence.",
        )
        .query(paged())
        .json(200, "GcPage")
        .refuses(OF_READS)
        .refuses(&[Code::InvalidCursor])
        .to(reclaim::report),
        Route::list::<quarantine::Quarantines>(
            "Lists quarantined addresses, oldest first.",
            "QuarantinePage",
        ),
        Route::get(item, Target::Quarantine, "Shows the quarantine of an address.")
            .query(vec![parameter("consistency", "consistency", "Read consistency."), network()])
            .json(200, "Quarantine")
            .refuses(OF_READS)
            .to(quarantine::show),
        Route::delete(item, (Verb::Release, Target::Quarantine), "Ends the quarantine of an address.")
            .query(vec![network()])
            .gives(204, Body::Nothing)
            .refuses(&[Code::NotFound])
            .to(quarantine::end),
    ]
}
