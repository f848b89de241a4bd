//! Search for the addresses of a node: those of its host in all namespaces and of its attachments.

use ipam_api::access::NodeKey;
use ipam_api::client::with_query;
use ipam_api::node_report::NodeAttachment;
use ipam_api::resource::{Allocation, Endpoint, EndpointKey, EndpointKind, EndpointStatus, Resource};

use super::report::{Line, Report};
use crate::client::session::Session;
use crate::output::error::Failure;

/// Number of allocations that one request names, well below the limit of a query.
const IDS_PER_REQUEST: usize = 32;

/// Finds the allocations and claims of a node. Each lookup uses an index of the servers.
pub(super) async fn find(session: &Session, node: &NodeKey) -> Result<Report, Failure> {
    let filters =
        [("kind", EndpointKind::Host.as_str()), ("realm", node.realm.as_str()), ("name", node.name.as_str())];
    let path = filters
        .iter()
        .fold("/v1/endpoints".to_owned(), |path, (field, value)| with_query(&path, field, value));
    let hosts = session.list::<Resource<Endpoint, EndpointStatus>>(&path, None, |_| true).await?;
    let mut keys: Vec<&EndpointKey> = hosts.items.iter().map(|host| &host.spec.key).collect();
    keys.dedup();
    let mut items = Vec::new();
    for key in keys {
        let key = format!("{}/{}/{}/{}", key.kind, key.realm, key.namespace, key.name);
        items.extend(lines(session, &with_query("/v1/allocations", "endpoint", &key)).await?);
    }
    let path = format!("/v1/nodes/{node}/attachments");
    let attachments = session.list::<NodeAttachment>(&path, None, |_| true).await?;
    let mut ids: Vec<u64> = attachments.items.iter().flat_map(|one| one.allocations.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    for chunk in ids.chunks(IDS_PER_REQUEST) {
        let path = chunk
            .iter()
            .fold("/v1/allocations".to_owned(), |path, id| with_query(&path, "id", &id.to_string()));
        items.extend(lines(session, &path).await?);
    }
    items.sort_by(|one: &Line, other| one.order().cmp(&other.order()));
    items.dedup();
    let waits = |host: &&Resource<Endpoint, EndpointStatus>| !host.status.conditions.is_empty();
    let waiting = hosts.items.iter().filter(waits).map(|host| host.spec.key.clone()).collect();
    Ok(Report { node: node.clone(), items, waiting, revision: hosts.revision })
}

async fn lines(session: &Session, path: &str) -> Result<Vec<Line>, Failure> {
    let found = session.list::<Allocation>(path, None, |_| true).await?;
    let line = |found: Allocation| Line {
        endpoint: found.endpoint,
        interface: found.interface,
        network: found.network,
        address: found.address.addr(),
        lifecycle: found.lifecycle,
        allocation: found.id,
    };
    Ok(found.items.into_iter().map(line).collect())
}
