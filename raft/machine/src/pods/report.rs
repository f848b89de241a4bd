//! Reports of the pods of a realm.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Refusal, ReportPods};
use crate::state::State;
use crate::state::id::Id;
use crate::state::row::{ReportedPod, ReportedRealm};
use crate::value::Text;
use crate::value::refuse_if;
use ipam_api::limits::{PODS_REPORTED_MAX, VERIFIED_MS, VERIFIED_RENEWAL_MS};
use ipam_api::name::Name;
use std::ops::Bound;

impl Step<'_> {
    /// Writes the changes that a report contains.
    pub(crate) fn report_pods(&mut self, report: &ReportPods) -> Result<Answer, Refusal> {
        let ReportPods { realm, pods, gone, complete } = report;
        let is_new = |pod: &&ReportedPod| self.state.reported_pod(realm, &pod.uid).is_none();
        let count = self.state.reported_pods.len() + pods.iter().filter(is_new).count();
        refuse_if(count > PODS_REPORTED_MAX, || Cause::TooManyPods { count: count as u64 })?;
        if !self.state.is_news_of_pods(report) {
            return Ok(Answer::PodsReported);
        }
        self.state.tick();
        for pod in pods {
            let known = self.state.index.pod_uids.get(&(realm.clone(), Text::clone(&pod.uid))).copied();
            let id = known.unwrap_or_else(|| self.state.new_id());
            self.state.write(id, pod.clone());
        }
        for uid in gone {
            let known = self.state.index.pod_uids.get(&(realm.clone(), Text::clone(uid))).copied();
            known.and_then(|id| self.state.erase::<ReportedPod>(id));
        }
        let (id, old) = match self.state.reported_realm(realm) {
            Some((id, row)) => (id, row.until_ms),
            None => (self.state.new_id(), self.state.log_time_ms()),
        };
        let until_ms = if *complete { self.state.log_time_ms().saturating_add(VERIFIED_MS) } else { old };
        self.state.write(id, ReportedRealm { realm: realm.clone(), until_ms });
        Ok(Answer::PodsReported)
    }
}

impl State {
    /// Returns true if a report would change the state. Most reports after a restart of a watcher would not.
    #[must_use]
    pub fn is_news_of_pods(&self, report: &ReportPods) -> bool {
        let ReportPods { realm, pods, gone, complete } = report;
        let until_ms = self.reported_realm(realm).map(|(_, row)| row.until_ms);
        let renewed_ms = self.log_time_ms().saturating_add(VERIFIED_MS - VERIFIED_RENEWAL_MS);
        until_ms.is_none_or(|until_ms| *complete && until_ms < renewed_ms)
            || pods.iter().any(|pod| self.reported_pod(realm, &pod.uid) != Some(pod))
            || gone.iter().any(|uid| self.reported_pod(realm, uid).is_some())
    }

    /// Pod of a realm with a uid, as its watcher reported it.
    #[must_use]
    pub fn reported_pod(&self, realm: &Name, uid: &Text) -> Option<&ReportedPod> {
        let id = *self.index.pod_uids.get(&(realm.clone(), Text::clone(uid)))?;
        Some(self.reported_pods.named(id))
    }

    /// Reported pods after a realm and a uid, in their order.
    pub fn reported_pods_after(&self, after: Option<&(Name, Text)>) -> impl Iterator<Item = &ReportedPod> {
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
        self.index.pod_uids.range((from, Bound::Unbounded)).map(|(_, id)| self.reported_pods.named(*id))
    }

    pub(super) fn reported_realm(&self, realm: &Name) -> Option<(Id<ReportedRealm>, &ReportedRealm)> {
        let id = *self.index.pod_realms.get(realm)?;
        Some((id, self.reported_realms.named(id)))
    }
}
