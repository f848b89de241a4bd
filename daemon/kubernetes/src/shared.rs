//! State that the tasks of a watcher share.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipam_api::Problem;
use ipam_api::limits::{KUBERNETES_CUSTOM_OBJECTS_MAX, PODS_HEARD_MS_MAX, WORKLOAD_OBSERVATION_MS_MAX};
use ipam_api::name::ObjectName;
use ipam_api::time::Timestamp;
use kube::runtime::watcher::Event;
use tokio::sync::{Notify, watch};

use crate::connection::Signal;
use crate::controllers::{ControllerKey, ControllerView};
use crate::custom::{CustomFacts, CustomKind, CustomViews};
use crate::host_policies::{HostPolicyView, NncpFacts};
use crate::mirror::Mirrored;
use crate::node_pools::{NodePoolView, PLURAL, PoolFacts};
use crate::objects::{Kind, NamespaceFacts, NodeFacts, NodeState, Pods, Scale};
use crate::pods::{PodView, Reports};
use crate::settings::Settings;
use crate::status::{Counts, Status};

/// Maximum transit time of a fact to the servers, in milliseconds.
const TRANSIT_MS: u64 = 5_000;

/// Shared state.
pub(crate) struct Shared<S> {
    pub(crate) settings: Settings,
    pub(crate) servers: S,
    views: Mutex<Views>,
    status: watch::Sender<Status>,
    pub(crate) wake: Wake,
    /// Notified when the servers have accepted reports of pods.
    pub(crate) reported: Notify,
    /// Signs of life of the watches on pods and nodes.
    pub(crate) pods: Arc<Signal>,
    pub(crate) nodes: Arc<Signal>,
}

/// Wakes the tasks.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    pub(crate) pods: Notify,
    pub(crate) nodes: Notify,
    pub(crate) namespaces: Notify,
    pub(crate) leaving: Notify,
    pub(crate) controllers: Notify,
    pub(crate) custom: Notify,
    pub(crate) node_pools: Notify,
    pub(crate) host_policies: Notify,
    pub(crate) scan: Notify,
    pub(crate) reports: Notify,
}

/// Views of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Views {
    pub(crate) pods: PodView,
    pub(crate) nodes: Mirrored<NodeFacts>,
    pub(crate) namespaces: Mirrored<NamespaceFacts>,
    pub(crate) controllers: ControllerView,
    pub(crate) custom: CustomViews,
    pub(crate) node_pools: NodePoolView,
    pub(crate) host_policies: HostPolicyView,
    /// Deleted nodes whose addresses are to be reclaimed.
    pub(crate) leaving: BTreeSet<ObjectName>,
}

impl Views {
    /// True once pods and nodes are listed.
    pub(crate) fn is_synced(&self) -> bool {
        self.pods.is_synced() && self.nodes.listed.is_synced()
    }

    /// State of a node; none if nothing is known of it.
    pub(crate) fn node_state(&self, name: &ObjectName) -> Option<NodeState> {
        match self.nodes.listed.get(name) {
            Some(facts) => Some(facts.state),
            None => self.nodes.is_gone(name).then_some(NodeState::Gone),
        }
    }

    /// Records the deletion of a node.
    pub(crate) fn end_node(&mut self, name: ObjectName) {
        self.nodes.end(name.clone());
        self.node_changed(name);
    }

    fn node_changed(&mut self, name: ObjectName) {
        self.pods.queue.node_changed(&name, Timestamp::now());
        if self.nodes.is_gone(&name) {
            self.leaving.insert(name);
        } else {
            self.leaving.remove(&name);
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            pods: self.pods.uids.len() as u64,
            nodes: self.nodes.listed.len() as u64,
            namespaces: self.namespaces.listed.len() as u64,
            controllers: self.controllers.len() as u64,
            custom_resources: (self.custom.len() + self.node_pools.listed.len()) as u64,
        }
    }
}

impl<S> Shared<S> {
    pub(crate) fn new(settings: Settings, servers: S, status: watch::Sender<Status>) -> Self {
        let mut views = Views::default();
        views.pods.reports = Reports::new(settings.verify);
        Self {
            settings,
            servers,
            views: Mutex::new(views),
            status,
            wake: Wake::default(),
            reported: Notify::new(),
            pods: Arc::new(Signal::new("pods")),
            nodes: Arc::new(Signal::new("nodes")),
        }
    }

    pub(crate) fn views(&self) -> MutexGuard<'_, Views> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
    }

    /// Notes an error of the API server.
    pub(crate) fn failed(&self, error: &kube::Error) {
        tracing::debug!(%error, "the API server refuses a request");
        self.note(|status| status.error = Some(short(error)));
    }

    /// Notes an error of the servers.
    pub(crate) fn refused(&self, problem: &Problem) {
        tracing::debug!(%problem, "the servers refuse a request");
        self.note(|status| {
            status.error = Some(short(problem));
            status.refuse(problem.code);
        });
    }

    /// Newest time at which the watches on pods and nodes were alive. None if this time is too old for facts
    /// about objects that may still exist.
    pub(crate) fn alive_at(&self, now: Timestamp) -> Option<Timestamp> {
        let at = self.pods.heard()?.min(self.nodes.heard()?);
        (now.0.saturating_sub(at.0) + TRANSIT_MS <= WORKLOAD_OBSERVATION_MS_MAX).then_some(at)
    }

    /// True if the watch on pods was alive so recently that its view may refute a claim.
    pub(crate) fn may_verify(&self, now: Timestamp) -> bool {
        self.pods.heard().is_some_and(|heard| now.0.saturating_sub(heard.0) <= PODS_HEARD_MS_MAX)
    }

    /// Applies an event of the pods.
    pub(crate) fn pod_event(&self, event: Event<Pods>) {
        let stage = Stage::of(&event);
        let lacks = self.views().pods.event(event, Timestamp::now());
        self.after_event(stage, lacks, &[&self.wake.pods, &self.wake.reports]);
    }

    /// Applies an event of the nodes.
    pub(crate) fn node_event(&self, event: Event<Option<(ObjectName, NodeFacts)>>) {
        let stage = Stage::of(&event);
        let lacks = {
            let mut views = self.views();
            let effects = views.nodes.event(event);
            if !effects.names.is_empty() {
                views.host_policies.version += 1;
                views.host_policies.nodes_version += 1;
            }
            for name in effects.names {
                views.node_changed(name);
            }
            effects.lacks
        };
        self.after_event(
            stage,
            lacks,
            &[&self.wake.nodes, &self.wake.leaving, &self.wake.pods, &self.wake.host_policies],
        );
    }

    /// Applies an event of the namespaces.
    pub(crate) fn namespace_event(&self, event: Event<Option<(ObjectName, NamespaceFacts)>>) {
        let stage = Stage::of(&event);
        let effects = self.views().namespaces.event(event);
        self.after_event(stage, effects.lacks, &[&self.wake.namespaces]);
    }

    /// Applies an event of the controllers of a kind.
    pub(crate) fn controller_event(&self, kind: Kind, event: Event<Option<(ControllerKey, Scale)>>) {
        let stage = Stage::of(&event);
        self.views().controllers.event(kind, event);
        self.after_event(stage, false, &[&self.wake.controllers, &self.wake.reports]);
    }

    /// Applies an event of the custom resources of a kind. Objects beyond the limit are ignored.
    pub(crate) fn custom_event<K: CustomKind>(
        &self,
        event: Event<Option<(ObjectName, CustomFacts<K::Spec>)>>,
    ) {
        let stage = Stage::of(&event);
        if let Event::Apply(Some((name, _))) | Event::InitApply(Some((name, _))) = &event
            && !K::view(&mut self.views().custom).listed.has_room(name, KUBERNETES_CUSTOM_OBJECTS_MAX)
        {
            let plural = K::PLURAL;
            let error =
                format!("there are more than {KUBERNETES_CUSTOM_OBJECTS_MAX} {plural}: {name} is ignored");
            return self.note(|status| status.error = Some(error));
        }
        {
            let is_list = matches!(event, Event::InitDone);
            let mut views = self.views();
            let effects = K::view(&mut views.custom).event(event);
            if K::ROLLS_OUT && (is_list || !effects.names.is_empty()) {
                views.host_policies.version += 1;
            }
        }
        self.after_event(stage, false, &[&self.wake.custom, &self.wake.host_policies]);
    }

    /// Applies an event of the pools of host addresses. Objects beyond the limit are ignored.
    pub(crate) fn node_pool_event(&self, event: Event<Option<(ObjectName, PoolFacts)>>) {
        let stage = Stage::of(&event);
        if let Event::Apply(Some((name, _))) | Event::InitApply(Some((name, _))) = &event
            && !self.views().node_pools.listed.has_room(name, KUBERNETES_CUSTOM_OBJECTS_MAX)
        {
            let error =
                format!("there are more than {KUBERNETES_CUSTOM_OBJECTS_MAX} {PLURAL}: {name} is ignored");
            return self.note(|status| status.error = Some(error));
        }
        let _ = self.views().node_pools.event(event);
        self.after_event(stage, false, &[&self.wake.node_pools]);
    }

    /// Applies an event of the policies of kubernetes-nmstate.
    pub(crate) fn nncp_event(&self, event: Event<Option<(ObjectName, NncpFacts)>>) {
        let stage = Stage::of(&event);
        self.views().host_policies.event(event);
        self.after_event(stage, false, &[&self.wake.host_policies]);
    }

    /// Notes that the API server knows the policies of kubernetes-nmstate, or that it does not.
    pub(crate) fn nncp_served(&self, is_served: bool) {
        self.served(is_served, |view| &mut view.is_served);
    }

    /// Notes that the API server knows host policies, or that it does not.
    pub(crate) fn policies_served(&self, is_served: bool) {
        self.served(is_served, |view| &mut view.has_policies);
    }

    fn served(&self, is_served: bool, flag: impl FnOnce(&mut HostPolicyView) -> &mut Option<bool>) {
        {
            let mut views = self.views();
            let view = &mut views.host_policies;
            if flag(view).replace(is_served) == Some(is_served) {
                return;
            }
            view.version += 1;
        }
        self.wake.host_policies.notify_one();
    }

    /// Publishes the view, and wakes the tasks. If a list lacked known objects, a scan is started.
    fn after_event(&self, stage: Stage, lacks: bool, tasks: &[&Notify]) {
        if stage == Stage::Listing {
            return;
        }
        tasks.iter().for_each(|task| task.notify_one());
        if lacks {
            self.wake.scan.notify_one();
        }
        self.publish();
    }

    /// Publishes the numbers of the views, and the newest signs of life: bookmarks have no event.
    pub(crate) fn publish(&self) {
        let (is_synced, counts, waiting, dropped) = {
            let views = self.views();
            (views.is_synced(), views.counts(), views.pods.queue.len() as u64, views.pods.queue.dropped)
        };
        self.note(|status| {
            (status.synced, status.counts) = (is_synced, counts);
            (status.waiting, status.dropped) = (waiting, dropped);
            for signal in [&self.pods, &self.nodes] {
                status.heard.extend(signal.heard().map(|heard| (signal.plural, heard)));
            }
        });
    }

    /// Waits until pods and nodes are listed.
    pub(crate) async fn synced(&self) {
        let mut status = self.status.subscribe();
        // The sender lives as long as `self`, so the wait can't fail.
        let _ = status.wait_for(|status| status.synced).await;
    }
}

/// Stage of a stream at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A list is not complete.
    Listing,
    /// The view is that of the list and the changes since.
    Watching,
}

impl Stage {
    fn of<K>(event: &Event<K>) -> Self {
        match event {
            Event::Init | Event::InitApply(_) => Self::Listing,
            Event::InitDone | Event::Apply(_) | Event::Delete(_) => Self::Watching,
        }
    }
}

/// First part of an error: an API server determines its length.
pub(crate) fn short(error: &dyn std::fmt::Display) -> String {
    error.to_string().chars().take(512).collect()
}
