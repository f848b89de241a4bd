//! Health of the port and of the unix socket.

use ipam_api::Code as ProblemCode;
use ipam_meridio::Routers;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::fixture::{LIMIT, Recorder, Transport, caller, problem, settings, transport};

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;

async fn check(client: &HealthClient<Transport>, service: &str) -> Result<i32, Code> {
    let request = HealthCheckRequest { service: service.to_owned() };
    client
        .clone()
        .check(request)
        .await
        .map(|answer| answer.into_inner().status)
        .map_err(|status| status.code())
}

/// Waits for the status of a service, through its watch.
async fn until(client: &HealthClient<Transport>, service: &str, wanted: i32) {
    let request = HealthCheckRequest { service: service.to_owned() };
    let mut statuses = client.clone().watch(request).await.unwrap().into_inner();
    let wait = async { while statuses.message().await.unwrap().unwrap().status != wanted {} };
    tokio::time::timeout(LIMIT, wait).await.expect(service);
}

#[tokio::test]
async fn m6_15_the_socket_has_four_services_and_liveness_needs_no_leader() {
    let servers = Recorder::new(|_| problem(ProblemCode::NoLeader));
    let routers = Routers::new(settings().into(), servers.clone()).await;
    let socket = HealthClient::new(transport(routers.socket, Some(caller())));
    let port = HealthClient::new(transport(routers.port, Some(caller())));
    for service in ["Startup", "Readiness", "Liveness", "IPAM", ""] {
        until(&socket, service, SERVING).await;
    }
    until(&port, "", SERVING).await;
    servers.set_leader(false);
    for (client, service) in [(&socket, "Readiness"), (&socket, "IPAM"), (&port, "")] {
        until(client, service, NOT_SERVING).await;
    }
    for service in ["Startup", "Liveness", ""] {
        assert_eq!(check(&socket, service).await, Ok(SERVING), "{service}");
    }
    servers.set_leader(true);
    until(&socket, "Readiness", SERVING).await;
    assert_eq!(check(&socket, "other").await, Err(Code::NotFound));
    assert_eq!(check(&port, "Liveness").await, Err(Code::NotFound), "probes use the socket");
}
