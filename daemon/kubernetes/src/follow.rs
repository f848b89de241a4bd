//! Stream of the objects of one resource: a list and a watch that recover by themselves.

use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;

use futures::StreamExt as _;
use ipam_api::limits::KUBERNETES_PAGE_ITEMS;
use ipam_api::time::Timestamp;
use kube::api::Resource;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Error};
use serde::de::DeserializeOwned;

use crate::backoff::Backoff;
use crate::connection::{Signal, TooLong};
use crate::shared::short;

/// Seconds of one watch.
const WATCH_S: u32 = 290;

/// Receiver of the errors and the signs of life of streams.
pub(crate) trait Account {
    /// Notes an error of a stream.
    fn failed(&self, error: String);
    /// Notes that a stream has recovered.
    fn recovered(&self);
    /// Notes a sign of life of the watch on a plural.
    fn heard(&self, plural: &'static str, at: Timestamp);
    /// Waits until the next event of a stream may be read.
    fn room(&self, _: &Signal) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Follows one resource. Ends only when the API server no longer serves the resource.
pub(crate) async fn follow<K>(
    account: &impl Account,
    signal: &Signal,
    client: Client,
    resource: &ApiResource,
    backoff: &mut Backoff,
    mut on: impl FnMut(Event<K>),
) where
    K: Resource<DynamicType = ApiResource> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let api: Api<K> = Api::all_with(client, resource);
    let mut page = KUBERNETES_PAGE_ITEMS;
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
                            account.recovered();
                        }
                    }
                    on(event);
                    account.room(signal).await;
                    if let Some(heard) = signal.heard().filter(|_| !is_list) {
                        account.heard(signal.plural, heard);
                    }
                }
                Err(error) => {
                    has_failed = true;
                    tracing::debug!(plural = signal.plural, %error, "a stream recovers");
                    account.failed(short(&error));
                    let is_over = must_restart(&error, &mut page);
                    backoff.wait().await;
                    if is_unserved(&error) {
                        return;
                    }
                    if is_over {
                        break;
                    }
                }
            }
        }
    }
}

/// True if the stream has to begin with a list again. kube itself restarts a watch with an expired version.
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

/// True if the API server has no such resource in this version.
fn is_unserved(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(Error::Api(status))
        | watcher::Error::WatchStartFailed(Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

/// Converts an event about objects to an event about their parts.
pub(crate) fn translated<O, P>(event: Event<O>, part: impl Fn(O) -> Option<P>) -> Event<Option<P>> {
    match event {
        Event::Apply(object) => Event::Apply(part(object)),
        Event::Delete(object) => Event::Delete(part(object)),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(part(object)),
        Event::InitDone => Event::InitDone,
    }
}
