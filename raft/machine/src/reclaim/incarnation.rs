//! End of an incarnation whose workload no longer exists, as the orchestrator reports.

use crate::apply::step::Step;
use crate::command::{Answer, EndIncarnation};
use crate::event::{EventKind, Reason};
use crate::state::State;
use crate::state::id::{AttachmentId, EndpointId};
use crate::state::row::Allocation;
use ipam_api::resource::Lifecycle;
use std::collections::BTreeSet;

impl Step<'_> {
    /// Ends the attachments of an incarnation as DELs would, but without tombstones, and its claim.
    ///
    /// A sticky endpoint that isn't scaled down keeps its addresses without an attachment, so that a later
    /// scale-down can release them. Held and leased allocations stay.
    pub(crate) fn end_incarnation(&mut self, end: &EndIncarnation) -> Answer {
        let Some(id) = self.state.observed_incarnation(end) else {
            return Answer::reclaimed(Vec::new(), 1);
        };
        let mut addresses = Vec::new();
        for attachment in self.state.attachments_of_endpoint(id) {
            let row = self.state.attachments.named(attachment).clone();
            addresses.extend(self.detach_attachment(attachment, &row, Reason::WorkloadGone));
        }
        addresses.extend(self.release_preallocated(id));
        if self.state.waiting(id).is_some() {
            self.state.tick();
            self.emit(EventKind::Withdrawn { endpoint: end.endpoint.clone() });
            self.put_waiting(id, None);
            self.remove_if_empty(id);
        }
        Answer::reclaimed(addresses, 0)
    }
}

impl State {
    /// Incarnation with the observed uid, if the caller has observed all of its attached allocations.
    ///
    /// None during a live migration: the uid does not tell which of two workloads has ended.
    fn observed_incarnation(&self, end: &EndIncarnation) -> Option<EndpointId> {
        let id = self.incarnation_with(&end.endpoint, &end.uid)?;
        let is_observed = |id| {
            let row = self.allocations.named(id);
            !is_attached(row) || (row.also_attached.is_empty() && end.allocations.contains(&id))
        };
        self.endpoints.named(id).allocations.iter().all(|id| is_observed(*id)).then_some(id)
    }

    /// Attachments of the attached allocations of an endpoint, each once.
    fn attachments_of_endpoint(&self, id: EndpointId) -> BTreeSet<AttachmentId> {
        let rows = self.endpoints.named(id).allocations.iter().map(|id| self.allocations.named(*id));
        rows.filter(|row| is_attached(row)).filter_map(|row| row.attachment).collect()
    }
}

fn is_attached(row: &Allocation) -> bool {
    row.lifecycle == Lifecycle::Attached && row.attachment.is_some()
}
