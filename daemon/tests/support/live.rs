//! Addresses of live containers, compared with those that the cluster has for them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::resource::{Endpoint, EndpointStatus, Resource};

use super::ask::list;
use super::{Cluster, until};

/// Addresses by container id, as the plugin gets it.
pub(crate) type Addresses = BTreeMap<String, Vec<IpAddr>>;

/// Addresses that the cluster has for containers.
pub(crate) async fn allocated(cluster: &Cluster) -> Addresses {
    let endpoints: Vec<Resource<Endpoint, EndpointStatus>> = list(&cluster.ask(), "/v1/endpoints").await;
    let mut allocated = Addresses::new();
    for interface in endpoints.into_iter().flat_map(|endpoint| endpoint.status.interfaces) {
        let addresses = interface.addresses.iter().map(|held| held.address.addr());
        let container = interface.attachment.map(|attachment| attachment.container_id.to_string());
        allocated.entry(container.expect("an attachment")).or_default().extend(addresses);
    }
    allocated.values_mut().for_each(|addresses| addresses.sort());
    allocated
}

/// Waits until the cluster has exactly the addresses that the live containers have.
pub(crate) async fn settled(cluster: &Cluster, live: &Addresses) {
    until("no address is allocated but those of live containers", async || {
        let allocated = allocated(cluster).await;
        let lost: Vec<_> = live.iter().filter(|(id, held)| allocated.get(*id) != Some(held)).collect();
        assert!(lost.is_empty(), "the cluster lacks {lost:?} in {allocated:?}");
        if allocated == *live { Ok(()) } else { Err(format!("{allocated:?} instead of {live:?}")) }
    })
    .await;
}
