//! Streams of objects: a list and a watch that recover by themselves.

use std::fmt::Debug;
use std::sync::Arc;

use ipam_api::brand::KUBERNETES_GROUP;
use ipam_api::time::Timestamp;
use kube::Client;
use kube::api::Resource;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;

use super::reports::room_for_reports;
use crate::backoff::Backoff;
use crate::connection::{Connection, Kinds, Signal};
use crate::custom::{CustomKind, CustomObject, Pools, Reservations, Subnets};
use crate::follow::{self, Account, translated};
use crate::node_pools::{self, PoolFacts};
use crate::objects::{Controllers, Kind, Namespaces, Nodes, resource};
use crate::servers::Servers;
use crate::shared::Shared;

impl<S: Servers> Account for Shared<S> {
    fn failed(&self, error: String) {
        self.note(|status| status.error = Some(error));
    }

    fn recovered(&self) {
        self.note(|status| status.error = None);
    }

    fn heard(&self, plural: &'static str, at: Timestamp) {
        self.note(|status| {
            status.heard.insert(plural, at);
        });
    }

    async fn room(&self, signal: &Signal) {
        // Only pods are reported.
        if std::ptr::eq(signal, &raw const *self.pods) {
            room_for_reports(self).await;
        }
    }
}

/// Follows one resource for as long as the watcher runs, also while its definition is missing.
async fn follow<K>(
    shared: &Shared<impl Servers>,
    signal: &Signal,
    client: Client,
    resource: ApiResource,
    mut on: impl FnMut(Event<K>),
) where
    K: Resource<DynamicType = ApiResource> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut backoff = Backoff::default();
    loop {
        follow::follow(shared, signal, client.clone(), &resource, &mut backoff, &mut on).await;
    }
}

/// Fills the views, for as long as the watcher runs.
pub(crate) async fn stream(shared: &Shared<impl Servers>, connection: &Connection) -> Result<(), String> {
    let client = |signal: &Arc<Signal>| connection.client(Some(Arc::clone(signal)));
    let namespaces = Arc::new(Signal::new("namespaces"));
    let pods = follow(shared, &shared.pods, client(&shared.pods)?, resource("", "Pod", "pods"), |event| {
        shared.pod_event(event);
    });
    let nodes =
        follow(shared, &shared.nodes, client(&shared.nodes)?, resource("", "Node", "nodes"), |event| {
            shared.node_event(translated(event, Nodes::facts));
        });
    let of_namespaces =
        follow(shared, &namespaces, client(&namespaces)?, resource("", "Namespace", "namespaces"), |event| {
            shared.namespace_event(translated(event, Namespaces::facts))
        });
    let built_in = Kind::BUILT_IN.map(|kind| controllers(shared, connection, kind, kind.resource()));
    let of_kubevirt = Kind::OF_KUBEVIRT.map(|kind| discovered(shared, connection, kind));
    let controllers = futures::future::try_join(
        futures::future::try_join_all(built_in),
        futures::future::try_join_all(of_kubevirt),
    );
    let custom = async {
        if !shared.settings.custom_resources {
            return Ok(());
        }
        let subnets = custom::<Subnets>(shared, connection);
        let pools = custom::<Pools>(shared, connection);
        let reservations = custom::<Reservations>(shared, connection);
        let node_pools = node_pools(shared, connection);
        tokio::try_join!(subnets, pools, reservations, node_pools).map(drop)
    };
    let rest = futures::future::try_join(controllers, custom);
    tokio::join!(pods, nodes, of_namespaces, rest).3.map(drop)
}

/// Follows a kind of custom resources. Without its definition the list fails, and is repeated.
async fn custom<K: CustomKind>(shared: &Shared<impl Servers>, connection: &Connection) -> Result<(), String> {
    let signal = Arc::new(Signal::new(K::PLURAL));
    let client = connection.client(Some(Arc::clone(&signal)))?;
    let manager = shared.settings.manager();
    follow(shared, &signal, client, K::resource(), |event| {
        shared.custom_event::<K>(translated(event, |object: CustomObject| object.custom::<K>(&manager)));
    })
    .await;
    Ok(())
}

/// Follows the pools of host addresses once the API server has them.
async fn node_pools(shared: &Shared<impl Servers>, connection: &Connection) -> Result<(), String> {
    let signal = Arc::new(Signal::new(node_pools::PLURAL));
    let client = connection.client(Some(Arc::clone(&signal)))?;
    let mut backoff = Backoff::default();
    loop {
        match Kinds::default().find_any(&client, KUBERNETES_GROUP, node_pools::KIND).await {
            Ok(Some(_)) => {
                let client = client.clone();
                follow::follow(shared, &signal, client, &node_pools::kind(), &mut backoff, |event| {
                    shared.node_pool_event(translated(event, PoolFacts::of));
                })
                .await;
            }
            Ok(None) => tokio::time::sleep(shared.settings.scan_interval).await,
            Err(error) => {
                shared.failed(&error);
                backoff.wait().await;
            }
        }
    }
}

async fn controllers(
    shared: &Shared<impl Servers>,
    connection: &Connection,
    kind: Kind,
    resource: ApiResource,
) -> Result<(), String> {
    let signal = Arc::new(Signal::new(kind.names().2));
    let client = connection.client(Some(Arc::clone(&signal)))?;
    follow(shared, &signal, client, resource, |event| {
        shared.controller_event(kind, translated(event, |object: Controllers| object.facts(kind)));
    })
    .await;
    Ok(())
}

/// Follows a kind of KubeVirt once the API server has it.
async fn discovered(
    shared: &Shared<impl Servers>,
    connection: &Connection,
    kind: Kind,
) -> Result<(), String> {
    let client = connection.client(None)?;
    let (group, name, _) = kind.names();
    let mut backoff = Backoff::default();
    loop {
        match Kinds::default().find(&client, group, name).await {
            Ok(Some(resource)) => return controllers(shared, connection, kind, resource).await,
            Ok(None) => tokio::time::sleep(shared.settings.scan_interval).await,
            Err(error) => {
                shared.failed(&error);
                backoff.wait().await;
            }
        }
    }
}
