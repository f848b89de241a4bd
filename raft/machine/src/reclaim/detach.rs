//! Detaching: the end of one attachment of an allocation that outlives it.

use crate::apply::step::Step;
use crate::event::{EventKind, Reason};
use crate::state::State;
use crate::state::id::{AllocationId, AttachmentId};
use crate::state::row::Allocation;

impl State {
    /// Reason of an allocation that outlives one of its attachments.
    pub(crate) fn outlives(&self, id: AllocationId) -> Option<Reason> {
        let row = self.allocations.named(id);
        if !row.also_attached.is_empty() {
            return Some(Reason::Shared);
        }
        self.is_kept(id).then_some(Reason::Kept)
    }

    /// Event of an attachment that is added to, or removed from, an allocation that remains.
    pub(crate) fn tied(
        &self,
        comes: bool,
        allocation: AllocationId,
        row: &Allocation,
        reason: Reason,
    ) -> Option<EventKind> {
        let of = self.holding(allocation, row, reason);
        Some(if comes { EventKind::Attached(of) } else { EventKind::Detached(of) })
    }
}

impl Step<'_> {
    /// Removes an attachment from an allocation that outlives it.
    pub(crate) fn detach(&mut self, id: AllocationId, attachment: AttachmentId, reason: Reason) {
        let mut row = self.state.allocations.named(id).clone();
        let gone = self.state.attachments.named(attachment).key.node.clone();
        self.state.tick();
        row.also_attached.change(|others| others.retain(|other| *other != attachment));
        if row.attachment == Some(attachment) {
            row.attachment = row.also_attached.change(Vec::pop);
        }
        let remaining = row.attachment.and_then(|id| self.state.attachments.get(id));
        row.node = remaining.map(|attachment| attachment.key.node.clone());
        self.forget_in_attachment(attachment, id);
        let left = Allocation { node: Some(gone), ..row.clone() };
        self.events.extend(self.state.tied(false, id, &left, reason));
        self.state.rewrite_allocation(id, row);
    }
}
