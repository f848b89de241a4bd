//! Routers of the listeners: the services with their bounds.

use std::sync::Arc;

use axum::Router;
use ipam_api::limits::GRPC_MESSAGE_BYTES_MAX;
use tonic::service::Routes;

use crate::health;
use crate::ipam::Service;
use crate::prefixes::Prefixes;
use crate::servers::Servers;
use crate::settings::Settings;
use crate::wire::ipam::v1::ipam_server::IpamServer;

/// Routers of the front end. They share the limits of one member.
#[derive(Debug, Clone)]
pub struct Routers {
    /// Router of the port: the service and its health.
    pub port: Router,
    /// Router of the unix socket: the same, with the health of each probe.
    pub socket: Router,
}

impl Routers {
    /// Builds both. Each request must have a [`Caller`](crate::Caller) among its extensions.
    pub async fn new<S: Servers>(settings: Arc<Settings>, servers: S) -> Self {
        let has_leader = servers.has_leader();
        let service = IpamServer::new(Service::new(Prefixes::new(settings, servers)))
            .max_decoding_message_size(GRPC_MESSAGE_BYTES_MAX);
        let port = Routes::new(service.clone()).add_service(health::server(has_leader.clone()).await);
        let socket = Routes::new(service).add_service(health::server_with_probes(has_leader).await);
        Self { port: port.prepare().into_axum_router(), socket: socket.prepare().into_axum_router() }
    }
}
