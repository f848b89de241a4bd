//! Rows of endpoints and attachments, which exist while they hold or wait for addresses.

use crate::apply::step::Step;
use crate::state::id::{AllocationId, AttachmentId, EndpointId};
use crate::state::row::{Attachment, Endpoint};

impl Step<'_> {
    /// Writes an endpoint. Its revision changes with the data of its requests.
    pub(crate) fn put_endpoint(&mut self, id: EndpointId, row: Endpoint) {
        self.with_its_needs(id, |step| step.write_endpoint(id, row));
    }

    fn write_endpoint(&mut self, id: EndpointId, mut row: Endpoint) {
        if let Some(old) = self.state.endpoints.get(id) {
            let said = |row: &Endpoint| {
                let sticky = row.sticky.as_ref().map(|sticky| sticky.scale_down);
                (row.uid.clone(), row.controller.clone(), sticky)
            };
            if said(old) != said(&row) {
                let old = old.clone();
                self.state.count_for_another(&old, &row);
                let now = self.state.tick();
                let fresh = self.new_meta(now);
                row.meta.revision = now;
                row.meta.updated_wall_ms = fresh.updated_wall_ms;
                row.meta.updated_by = fresh.updated_by;
            }
        }
        self.state.write(id, row);
    }

    /// Removes an allocation from an endpoint, and the endpoint with its last one.
    pub(crate) fn forget_in_endpoint(&mut self, endpoint: EndpointId, allocation: AllocationId) {
        let mut row = self.state.endpoints.named(endpoint).clone();
        row.allocations.change(|ids| ids.retain(|id| *id != allocation));
        let is_left = !row.allocations.is_empty();
        self.state.write(endpoint, row);
        if !is_left {
            self.remove_if_empty(endpoint);
        }
    }

    /// Removes an endpoint that neither holds nor waits for addresses.
    pub(crate) fn remove_if_empty(&mut self, endpoint: EndpointId) {
        let Some(row) = self.state.endpoints.get(endpoint) else { return };
        if row.allocations.is_empty() && row.waiting.is_none() {
            self.state.erase::<Endpoint>(endpoint);
        }
    }

    pub(crate) fn forget_in_attachment(&mut self, attachment: AttachmentId, allocation: AllocationId) {
        let Some(mut row) = self.state.attachments.get(attachment).cloned() else { return };
        row.allocations.change(|ids| ids.retain(|id| *id != allocation));
        if row.allocations.is_empty() {
            self.state.erase::<Attachment>(attachment);
        } else {
            self.state.write(attachment, row);
        }
    }
}
