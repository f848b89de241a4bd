//! Streams of objects: a list and a watch that recover by themselves.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use ipam_api::limits::KUBERNETES_PAGE_ITEMS;
use kube::api::Resource;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Error};
use serde::de::DeserializeOwned;

use super::reports::room_for_reports;
use crate::backoff::Backoff;
use crate::connection::{Connection, Kinds, Signal, TooLong};
use crate::custom::{CustomKind, CustomObject, Pools, Reservations, Subnets};
use crate::objects::{Controllers, Kind, Namespaces, Nodes, resource};
use crate::servers::Servers;
use crate::shared::{Shared, short};

/// Seconds of one watch.
const WATCH_S: u32 = 290;

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
        tokio::try_join!(subnets, pools, reservations).map(drop)
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

/// Event about a part of an object.
fn translated<O, P>(event: Event<O>, part: impl Fn(O) -> Option<P>) -> Event<Option<P>> {
    match event {
        Event::Apply(object) => Event::Apply(part(object)),
        Event::Delete(object) => Event::Delete(part(object)),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(part(object)),
        Event::InitDone => Event::InitDone,
    }
}

/// Follows one resource, for as long as the watcher runs.
async fn follow<K>(
    shared: &Shared<impl Servers>,
    signal: &Signal,
    client: Client,
    resource: ApiResource,
    mut on: impl FnMut(Event<K>),
) where
    K: Resource<DynamicType = ApiResource> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let api: Api<K> = Api::all_with(client, &resource);
    let mut page = KUBERNETES_PAGE_ITEMS;
    let mut backoff = Backoff::default();
    let mut has_failed = false;
    loop {
        // Lists are quorum reads by default.
        let config = Config::default().page_size(page).timeout(WATCH_S);
        let mut events = pin!(watcher(api.clone(), config));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let is_list = matches!(event, Event::Init | Event::InitApply(_));
                    if !is_list {
                        backoff.reset();
                        if std::mem::take(&mut has_failed) {
                            shared.note(|status| status.error = None);
                        }
                    }
                    on(event);
                    // Only pods are reported.
                    if std::ptr::eq(signal, &raw const *shared.pods) {
                        room_for_reports(shared).await;
                    }
                    if let Some(heard) = signal.heard().filter(|_| !is_list) {
                        shared.note(|status| {
                            status.heard.insert(signal.plural, heard);
                        });
                    }
                }
                Err(error) => {
                    has_failed = true;
                    tracing::debug!(plural = signal.plural, %error, "a stream recovers");
                    shared.note(|status| status.error = Some(short(&error)));
                    let is_over = must_restart(&error, &mut page);
                    backoff.wait().await;
                    if is_over {
                        break;
                    }
                }
            }
        }
    }
}

/// True if the stream has to begin with a list again. kube repeats a watch from a version that is too old.
fn must_restart(error: &watcher::Error, page: &mut u32) -> bool {
    if TooLong::is_in(error) {
        *page = (*page / 5).max(1);
        return true;
    }
    match error {
        watcher::Error::WatchStartFailed(Error::Api(status)) => status.code == 410,
        _ => false,
    }
}
