//! Streams of a provider: claims, addresses, Clusters and pools.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;

use super::shared::Shared;
use crate::backoff::Backoff;
use crate::cluster_api::{
    ADDRESS, AddressFacts, CLAIM, CONTRACT_GROUP, ClaimFacts, ClusterFacts, PoolFacts, PoolKind, is_selected,
};
use crate::connection::{Connection, Kinds, Signal};
use crate::follow::{follow, translated};
use crate::servers::Servers;

/// Plural of claims.
pub(super) const CLAIMS: &str = "ipaddressclaims";
const CLUSTER_GROUP: &str = "cluster.x-k8s.io";
/// Time between two discovery requests for a kind that the API server does not serve.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(10);

/// Fills the views, for as long as the provider runs.
pub(super) async fn stream(shared: &Shared<impl Servers>, connection: &Connection) -> Result<(), String> {
    let filter = shared.settings.watch_filter.as_deref();
    let (addresses, clusters) = (Signal::new("ipaddresses"), Signal::new("clusters"));
    let (addresses, clusters) = (Arc::new(addresses), Arc::new(clusters));
    let claims = discovered(
        (shared, connection),
        (CONTRACT_GROUP, CLAIM),
        &shared.signal,
        |found| shared.contract().claims = found.cloned(),
        |event| shared.claim_event(selected(event, filter, ClaimFacts::of)),
    );
    let of_addresses = discovered(
        (shared, connection),
        (CONTRACT_GROUP, ADDRESS),
        &addresses,
        |found| shared.contract().addresses = found.cloned(),
        |event| shared.address_event(translated(event, |object| AddressFacts::of(&object))),
    );
    let of_clusters = discovered(
        (shared, connection),
        (CLUSTER_GROUP, "Cluster"),
        &clusters,
        |found| {
            shared.contract().clusters = found.cloned();
            shared.views().has_no_clusters = found.is_none();
            shared.after_event();
        },
        |event| shared.cluster_event(translated(event, |object| ClusterFacts::of(&object))),
    );
    let pools = join_all(PoolKind::ALL.map(|kind| pools(shared, connection, kind)));
    tokio::try_join!(claims, of_addresses, of_clusters, async {
        pools.await.into_iter().collect::<Result<Vec<()>, String>>()
    })
    .map(drop)
}

/// Event about objects of a filter. An object that has lost its label counts as deleted for this provider.
fn selected<P>(
    event: Event<DynamicObject>,
    filter: Option<&str>,
    facts: impl Fn(DynamicObject, Option<&str>) -> Option<P>,
) -> Event<Option<P>> {
    match event {
        Event::Apply(object) if !is_selected(&object.metadata, filter) => Event::Delete(facts(object, None)),
        Event::Delete(object) => Event::Delete(facts(object, None)),
        other => translated(other, |object| facts(object, filter)),
    }
}

/// Follows a kind of pools, also while its definition is missing.
async fn pools(shared: &Shared<impl Servers>, connection: &Connection, kind: PoolKind) -> Result<(), String> {
    let signal = Arc::new(Signal::new(kind.plural()));
    let client = connection.client(Some(Arc::clone(&signal)))?;
    let (resource, filter) = (kind.resource(), shared.settings.watch_filter.as_deref());
    let mut backoff = Backoff::default();
    loop {
        follow(shared, &signal, client.clone(), &resource, &mut backoff, |event| {
            let facts = |object, filter: Option<&str>| PoolFacts::of(kind, object, filter);
            shared.pool_event(kind, selected(event, filter, facts));
        })
        .await;
    }
}

/// Follows a kind in the version that the API server prefers; once this version ends, in another one.
async fn discovered(
    (shared, connection): (&Shared<impl Servers>, &Connection),
    (group, kind): (&str, &str),
    signal: &Arc<Signal>,
    found: impl Fn(Option<&ApiResource>),
    mut on: impl FnMut(Event<DynamicObject>),
) -> Result<(), String> {
    let client = connection.client(Some(Arc::clone(signal)))?;
    let mut backoff = Backoff::default();
    loop {
        match Kinds::default().find(&shared.client, group, kind).await {
            Ok(Some(resource)) => {
                found(Some(&resource));
                follow(shared, signal, client.clone(), &resource, &mut backoff, &mut on).await;
            }
            Ok(None) => {
                found(None);
                if group == CONTRACT_GROUP {
                    let error = format!("the API server serves no {kind} of {group}");
                    shared.note(|status| status.error = Some(error));
                }
                tokio::time::sleep(DISCOVERY_INTERVAL).await;
            }
            Err(error) => {
                shared.rejected(&error);
                backoff.wait().await;
            }
        }
    }
}
