//! Streams of objects: a list and a watch that recover by themselves.

use std::fmt::Debug;
use std::sync::Arc;

use ipam_api::time::Timestamp;
use kube::Client;
use kube::api::Resource;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;

use super::reports::room_for_reports;
use crate::backoff::Backoff;
use crate::connection::{Connection, Kinds, Signal};
use crate::custom::{CustomKind, CustomObject, HostPolicies, Pools, Reservations, Subnets};
use crate::follow::{self, Account, translated};
use crate::host_policies::{self, NncpFacts};
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
        tokio::try_join!(subnets, pools, reservations, of_hosts(shared, connection)).map(drop)
    };
    let rest = futures::future::try_join(controllers, custom);
    tokio::join!(pods, nodes, of_namespaces, rest).3.map(drop)
}

/// Follows a kind of custom resources. Without its definition the list fails, and is repeated.
async fn custom<K: CustomKind>(shared: &Shared<impl Servers>, connection: &Connection) -> Result<(), String> {
    let signal = Arc::new(Signal::new(K::PLURAL));
    let client = connection.client(Some(Arc::clone(&signal)))?;
    let (realm, manager) = (&shared.settings.realm, shared.settings.manager());
    follow(shared, &signal, client, K::resource(), |event| {
        shared
            .custom_event::<K>(translated(event, |object: CustomObject| object.custom::<K>(realm, &manager)));
    })
    .await;
    Ok(())
}

/// Follows a kind once the API server serves it, and again after an interruption.
async fn when_served<K>(
    shared: &Shared<impl Servers>,
    connection: &Connection,
    resource: ApiResource,
    plural: &'static str,
    on_served: impl Fn(bool),
    mut on: impl FnMut(Event<K>),
) -> Result<(), String>
where
    K: Resource<DynamicType = ApiResource> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let signal = Arc::new(Signal::new(plural));
    let client = connection.client(Some(Arc::clone(&signal)))?;
    let mut backoff = Backoff::default();
    loop {
        match Kinds::default().find_any(&client, &resource.group, &resource.kind).await {
            Ok(found) => {
                on_served(found.is_some());
                if found.is_some() {
                    let client = client.clone();
                    follow::follow(shared, &signal, client, &resource, &mut backoff, &mut on).await;
                } else {
                    tokio::time::sleep(shared.settings.scan_interval).await;
                }
            }
            Err(error) => {
                shared.failed(&error);
                backoff.wait().await;
            }
        }
    }
}

/// Follows the kinds for the network configuration of hosts.
async fn of_hosts(shared: &Shared<impl Servers>, connection: &Connection) -> Result<(), String> {
    let (realm, manager) = (&shared.settings.realm, shared.settings.manager());
    let pools = when_served(
        shared,
        connection,
        node_pools::kind(),
        node_pools::PLURAL,
        |_| {},
        |event| {
            shared.node_pool_event(translated(event, PoolFacts::of));
        },
    );
    let policies = when_served(
        shared,
        connection,
        HostPolicies::resource(),
        HostPolicies::PLURAL,
        |is_served| shared.policies_served(is_served),
        |event| {
            let part = |object: CustomObject| object.custom::<HostPolicies>(realm, &manager);
            shared.custom_event::<HostPolicies>(translated(event, part));
        },
    );
    let served = |is_served| shared.nncp_served(is_served);
    let plural = host_policies::PLURAL;
    let objects = when_served(shared, connection, host_policies::kind(), plural, served, |event| {
        shared.nncp_event(translated(event, |object: CustomObject| NncpFacts::of(object, realm)));
    });
    tokio::try_join!(pools, policies, objects).map(drop)
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
