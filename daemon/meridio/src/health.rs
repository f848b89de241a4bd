//! Service `grpc.health.v1.Health`, with the names that probes of Meridio's server use.

use tokio::sync::watch::Receiver;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

use ipam_api::limits::GRPC_MESSAGE_BYTES_MAX;

/// Services of the socket that serve from the start on: a restart would not help a member without a leader.
/// Probes of Meridio's manifests name no service, which is the empty name.
const ALWAYS: [&str; 3] = ["", "Startup", "Liveness"];
/// Services of the socket that serve while the member reaches a leader.
const WITH_LEADER: [&str; 2] = ["Readiness", "IPAM"];

/// Health of the whole server, under the empty name.
pub(crate) async fn server(has_leader: Receiver<bool>) -> HealthServer<impl Health> {
    of_services(has_leader, &[], &[""]).await
}

/// Health of the whole server and of the services that probes name.
pub(crate) async fn server_with_probes(has_leader: Receiver<bool>) -> HealthServer<impl Health> {
    of_services(has_leader, &ALWAYS, &WITH_LEADER).await
}

/// Health of some services, each of which is known from the first request on.
async fn of_services(
    mut has_leader: Receiver<bool>,
    always: &[&'static str],
    with_leader: &[&'static str],
) -> HealthServer<impl Health> {
    let (reporter, server) = health_reporter();
    for service in always {
        reporter.set_service_status(*service, ServingStatus::Serving).await;
    }
    report(&reporter, with_leader, *has_leader.borrow_and_update()).await;
    let with_leader = with_leader.to_vec();
    tokio::spawn(async move {
        while has_leader.changed().await.is_ok() {
            let now = *has_leader.borrow_and_update();
            report(&reporter, &with_leader, now).await;
        }
    });
    server.max_decoding_message_size(GRPC_MESSAGE_BYTES_MAX)
}

async fn report(reporter: &HealthReporter, services: &[&'static str], has_leader: bool) {
    let status = if has_leader { ServingStatus::Serving } else { ServingStatus::NotServing };
    for service in services {
        reporter.set_service_status(*service, status).await;
    }
}
