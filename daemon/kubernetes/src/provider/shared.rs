//! State that the tasks of a provider share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipam_api::Problem;
use ipam_api::limits::{CLUSTER_API_OBJECTS_MAX, KUBERNETES_CUSTOM_OBJECTS_MAX};
use ipam_api::time::Timestamp;
use kube::Client;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use tokio::sync::{Notify, watch};

use super::settings::ProviderSettings;
use super::status::{ProviderCounts, ProviderStatus};
use super::streams::CLAIMS;
use super::views::Views;
use crate::cluster_api::{AddressFacts, ClaimFacts, ClusterFacts, Key, PoolFacts, PoolKey, PoolKind};
use crate::connection::Signal;
use crate::follow::Account;
use crate::listed::Listed;
use crate::shared::short;

/// Shared state.
pub(super) struct Shared<S> {
    pub(super) settings: ProviderSettings,
    pub(super) servers: S,
    pub(super) client: Client,
    views: Mutex<Views>,
    contract: Mutex<Contract>,
    status: watch::Sender<ProviderStatus>,
    /// Signs of life of the watch on claims.
    pub(super) signal: Arc<Signal>,
    /// Held while a pool is written to the servers: pools share subnets and networks.
    pub(super) pools_in_servers: tokio::sync::Mutex<()>,
    /// Notified when claims are due, pools are due, claims wait, or counts may differ.
    pub(super) claims: Notify,
    pub(super) pools: Notify,
    pub(super) waiting: Notify,
    pub(super) counts: Notify,
}

/// Versions of the contract that the API server serves.
#[derive(Debug, Clone, Default)]
pub(super) struct Contract {
    pub(super) claims: Option<ApiResource>,
    pub(super) addresses: Option<ApiResource>,
    pub(super) clusters: Option<ApiResource>,
}

impl<S> Shared<S> {
    pub(super) fn new(
        settings: ProviderSettings,
        servers: S,
        client: Client,
        status: watch::Sender<ProviderStatus>,
    ) -> Self {
        Self {
            settings,
            servers,
            client,
            views: Mutex::default(),
            contract: Mutex::default(),
            status,
            signal: Arc::new(Signal::new(CLAIMS)),
            pools_in_servers: tokio::sync::Mutex::default(),
            claims: Notify::new(),
            pools: Notify::new(),
            waiting: Notify::new(),
            counts: Notify::new(),
        }
    }

    pub(super) fn views(&self) -> MutexGuard<'_, Views> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn contract(&self) -> MutexGuard<'_, Contract> {
        self.contract.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut ProviderStatus)) {
        self.status.send_modify(change);
    }

    /// Notes an error of the API server.
    pub(super) fn rejected(&self, error: &kube::Error) {
        tracing::debug!(%error, "the API server refuses a request");
        self.note(|status| status.error = Some(short(error)));
    }

    /// Notes an error of the servers.
    pub(super) fn refused(&self, problem: &Problem) {
        tracing::debug!(%problem, "the servers refuse a request");
        self.note(|status| status.error = Some(short(problem)));
    }

    pub(super) fn claim_event(&self, event: Event<Option<(Key, ClaimFacts)>>) {
        self.changed(event, CLUSTER_API_OBJECTS_MAX, |views| &views.claims, Views::claim_event);
    }

    pub(super) fn address_event(&self, event: Event<Option<(Key, AddressFacts)>>) {
        self.changed(event, CLUSTER_API_OBJECTS_MAX, |views| &views.addresses, Views::address_event);
    }

    pub(super) fn cluster_event(&self, event: Event<Option<(Key, ClusterFacts)>>) {
        self.changed(event, CLUSTER_API_OBJECTS_MAX, |views| &views.clusters, Views::cluster_event);
    }

    pub(super) fn pool_event(&self, kind: PoolKind, event: Event<Option<(PoolKey, PoolFacts)>>) {
        let max = KUBERNETES_CUSTOM_OBJECTS_MAX;
        let is_full = self.is_full(&event, |views, key| !views.pools_of(kind).has_room(key, max));
        if !is_full {
            self.views().pool_event(kind, event);
            self.after_event();
        }
    }

    /// Applies an event, unless it is about a new object beyond the limit.
    fn changed<K: Ord + Clone, V: PartialEq>(
        &self,
        event: Event<Option<(K, V)>>,
        max: usize,
        view: impl Fn(&Views) -> &Listed<K, V>,
        apply: impl FnOnce(&mut Views, Event<Option<(K, V)>>),
    ) {
        if !self.is_full(&event, |views, key| !view(views).has_room(key, max)) {
            let is_listing = matches!(event, Event::Init | Event::InitApply(_));
            apply(&mut self.views(), event);
            if !is_listing {
                self.after_event();
            }
        }
    }

    fn is_full<K, V>(
        &self,
        event: &Event<Option<(K, V)>>,
        is_full: impl FnOnce(&mut Views, &K) -> bool,
    ) -> bool {
        let (Event::Apply(Some((key, _))) | Event::InitApply(Some((key, _)))) = event else { return false };
        let is_full = is_full(&mut self.views(), key);
        if is_full {
            let error = "there are more objects than a provider serves; further ones are ignored";
            self.note(|status| status.error = Some(error.to_owned()));
        }
        is_full
    }

    /// Wakes the tasks, and publishes the numbers.
    pub(super) fn after_event(&self) {
        if self.publish() {
            [&self.claims, &self.pools].iter().for_each(|task| task.notify_one());
        }
    }

    /// Publishes the numbers. Returns true once everything is listed.
    pub(super) fn publish(&self) -> bool {
        let (is_synced, counts) = {
            let views = self.views();
            let counts = ProviderCounts {
                pools: views.pool_count() as u64,
                claims: views.claims.len() as u64,
                waiting: views.waiting.values().map(|waiting| waiting.claims.len() as u64).sum(),
            };
            (views.is_synced(), counts)
        };
        self.note(|status| {
            (status.synced, status.counts) = (is_synced, counts);
            // Bookmarks have no event.
            status.heard = self.signal.heard().or(status.heard);
        });
        is_synced
    }

    /// Waits until everything is listed.
    pub(super) async fn synced(&self) {
        let mut status = self.status.subscribe();
        // The sender lives as long as `self`, so the wait can't fail.
        let _ = status.wait_for(|status| status.synced).await;
    }
}

impl<S: Send + Sync> Account for Shared<S> {
    fn failed(&self, error: String) {
        self.note(|status| status.error = Some(error));
    }

    fn recovered(&self) {
        self.note(|status| status.error = None);
    }

    fn heard(&self, plural: &'static str, at: Timestamp) {
        if plural == self.signal.plural {
            self.note(|status| status.heard = Some(at));
        }
    }
}
