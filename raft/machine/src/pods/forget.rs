//! Removal of the pods of a realm whose watcher has reported nothing for long.

use crate::apply::step::Step;
use crate::state::State;
use crate::state::id::Id;
use crate::state::row::{ReportedPod, ReportedRealm};
use crate::value::Text;
use ipam_api::limits::PODS_FORGOTTEN_MS;

impl Step<'_> {
    /// Removes one pod of a realm that is due, or the realm after its last pod. Returns false if none is due.
    pub(crate) fn forget_pod(&mut self) -> bool {
        let now_ms = self.state.log_time_ms();
        let oldest = self.state.index.verified_until.first().copied();
        let Some((_, id)) =
            oldest.filter(|(until_ms, _)| until_ms.saturating_add(PODS_FORGOTTEN_MS) <= now_ms)
        else {
            return false;
        };
        match self.state.first_pod_of(id) {
            Some(pod) => drop(self.state.erase::<ReportedPod>(pod)),
            None => drop(self.state.erase::<ReportedRealm>(id)),
        }
        true
    }
}

impl State {
    fn first_pod_of(&self, id: Id<ReportedRealm>) -> Option<Id<ReportedPod>> {
        let realm = &self.reported_realms.named(id).realm;
        let from = (realm.clone(), Text::default());
        let (_, pod) = self.index.pod_uids.range(from..).next().filter(|((of, _), _)| of == realm)?;
        Some(*pod)
    }
}
