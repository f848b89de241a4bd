//! The operations, one file each.

pub mod add;
pub mod check;
pub mod del;
pub mod gc;
pub mod status;
pub mod version;

use ipam_api::request::{AttachmentKey, Started};

use crate::config::{Home, Network};
use crate::environment::{Container, Environment, Verb};
use crate::fail::Failure;

/// Runs the operation of the environment; returns its standard output.
///
/// # Errors
/// The reason of the failure.
pub async fn serve(
    environment: &Environment,
    network: &Network,
    started: Option<Started>,
) -> Result<Vec<u8>, Failure> {
    match environment.verb {
        Verb::Add => add::add(environment, network, started).await,
        Verb::Del => del::del(environment, network, started).await,
        Verb::Check => check::check(environment, network).await,
        Verb::Status => status::status(environment, network).await,
        Verb::Gc => gc::gc(environment, network).await,
        Verb::Version => version::version(),
    }
}

fn attachment(home: &Home, network: &Network, container: &Container) -> AttachmentKey {
    AttachmentKey {
        realm: home.realm.clone(),
        node: home.node.clone(),
        config: network.name.clone(),
        container_id: container.id.clone(),
        interface: container.interface.clone(),
    }
}
