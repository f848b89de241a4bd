//! View of the pods.

use ipam_api::time::Timestamp;
use ipam_api::workload::WorkloadGone;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

use super::queue::Queue;
use super::reports::Reports;
use super::uids::Uids;
use crate::objects::{PodFacts, Pods};

/// View of the pods.
#[derive(Debug, Default)]
pub(crate) struct PodView {
    pub(crate) uids: Uids,
    pub(crate) queue: Queue,
    pub(crate) reports: Reports,
    is_synced: bool,
}

impl PodView {
    /// Applies an event. Returns true if a list lacks a known pod, which is no evidence.
    pub(crate) fn event(&mut self, event: Event<Pods>, now: Timestamp) -> bool {
        match event {
            Event::Init => self.uids.begin(),
            Event::InitApply(pod) | Event::Apply(pod) => {
                for uid in uids(&pod) {
                    self.uids.insert(uid);
                }
                if let Some(report) = pod.report() {
                    self.reports.put(report, Instant::now());
                }
                if let Some(facts) = pod.facts().filter(PodFacts::is_ending) {
                    self.queue.put(facts, WorkloadGone::None, now);
                }
            }
            Event::InitDone => {
                let lacks = self.uids.end();
                self.is_synced = true;
                let uids = &self.uids;
                self.queue.retain_present(|uid| uids.contains(uid));
                return lacks;
            }
            Event::Delete(pod) => {
                for uid in uids(&pod) {
                    self.uids.remove(uid);
                }
                if let Some(uid) = pod.uid() {
                    self.reports.end(uid);
                }
                // A static pod runs on without its object.
                if let Some(facts) = pod.facts().filter(|facts| !facts.is_static) {
                    self.queue.put(facts, WorkloadGone::Deleted, now);
                }
            }
        }
        false
    }

    /// True once a list was complete.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced
    }
}

/// Uids by which the API server and the node know a pod.
fn uids(pod: &Pods) -> impl Iterator<Item = &str> {
    pod.uid().into_iter().chain([pod.metadata.uid.as_str()])
}
