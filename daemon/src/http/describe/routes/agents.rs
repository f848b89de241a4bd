//! Routes of nodes' agents.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::paged;
use super::route::{Handled, OF_READS, Route};
use crate::http::report::{agent, probe, reclaim};

pub(super) fn routes() -> [Handled; 7] {
    let path = |what: &str| format!("/v1/nodes/{{realm}}/{{name}}/{what}");
    [
        Route::list::<agent::Agents>(
            "Lists the newest reports of all agents, oldest agent first.",
            "AgentReportPage",
        ),
        Route::post(
            path("heartbeat"),
            (Verb::Report, Target::Node),
            "Records the present boot and the readiness of a node, and renews its leases. Waits up to 1 s.",
        )
        .takes("HeartbeatRequest")
        .json(200, "HeartbeatAnswer")
        .refuses(&[Code::NotFound, Code::ForeignNode])
        .to(agent::heartbeat),
        Route::post(
            path("orphans"),
            (Verb::Release, Target::Attachment),
            "Releases attachments of a node whose containers are gone.",
        )
        .takes("OrphansRequest")
        .json(200, "OrphansReleased")
        .refuses(&[Code::NotFound, Code::ForeignNode])
        .to(agent::release_orphans),
        Route::post(
            path("probes"),
            (Verb::Report, Target::Node),
            "Records results of a node's probes, and answers with its next jobs.",
        )
        .takes("ProbesRequest")
        .json(200, "ProbesAnswer")
        .refuses(&[Code::NotFound, Code::ForeignNode, Code::InvalidCursor])
        .to(probe::exchange),
        Route::post(
            path("reclaim"),
            (Verb::Reclaim, Target::Node),
            "Releases attached allocations of a node that is gone or silent, by their ids.",
        )
        .takes("ReclaimRequest")
        .json(200, "Reclaimed")
        .refuses(&[Code::NotFound, Code::InUse, Code::ForeignNode])
        .to(reclaim::reclaim),
        Route::one(path("agent"), Target::Node, "Shows the newest report of a node's agent.", "NodeAgent")
            .to(agent::show),
        Route::get(path("attachments"), Target::Attachment, "Lists the attachments of a node, oldest first.")
            .query(paged())
            .json(200, "NodeAttachmentPage")
            .refuses(OF_READS)
            .refuses(&[Code::InvalidCursor, Code::ForeignNode])
            .to(agent::attachments),
    ]
}
