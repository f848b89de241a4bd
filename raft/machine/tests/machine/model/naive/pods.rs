//! The model's own reported pods.

use ipam_api::limits::{PODS_FORGOTTEN_MS, VERIFIED_MS, VERIFIED_RENEWAL_MS};
use ipam_machine::command::ReportPods;

use crate::model::naive::{Model, Reply};

impl Model {
    pub(crate) fn report_pods(&mut self, report: &ReportPods) -> Reply {
        let ReportPods { realm, pods, gone, complete } = report;
        let before = self.reported_pods.clone();
        for pod in pods {
            self.reported_pods.insert((realm.clone(), pod.uid.clone()), pod.clone());
        }
        for uid in gone {
            self.reported_pods.remove(&(realm.clone(), uid.clone()));
        }
        let is_news = before != self.reported_pods;
        let until = *self.reported_realms.entry(realm.clone()).or_insert(self.now);
        let is_due = until < self.now + VERIFIED_MS - VERIFIED_RENEWAL_MS;
        if *complete && (is_news || is_due) {
            self.reported_realms.insert(realm.clone(), self.now + VERIFIED_MS);
        }
        Reply::PodsReported
    }

    /// Forgets a pod of the realm without a watcher for the longest time, or that realm.
    pub(crate) fn forget_one_pod(&mut self) -> bool {
        let due = self.reported_realms.iter().filter(|(_, until)| **until + PODS_FORGOTTEN_MS <= self.now);
        // Realms that ended together are forgotten in the order of their reports, which the model lacks.
        let Some((realm, _)) = due.min_by_key(|(_, until)| **until) else { return false };
        let realm = realm.clone();
        match self.reported_pods.keys().find(|(of, _)| *of == realm).cloned() {
            Some(key) => drop(self.reported_pods.remove(&key)),
            None => drop(self.reported_realms.remove(&realm)),
        }
        true
    }
}
