//! Orphans: attachments whose containers no longer exist, as the agent of their node reports.

use crate::apply::step::Step;
use crate::command::{Answer, Orphan, ReleaseOrphans};
use crate::event::Reason;
use crate::state::State;
use crate::state::id::AttachmentId;
use crate::state::row::Attachment;
use ipam_api::access::NodeKey;
use ipam_api::node_report::OrphanEvidence;

impl Step<'_> {
    /// Releases orphans as a DEL would, but without a tombstone: no DEL has proved a boot. Orphans whose
    /// present allocations the agent has not observed stay.
    pub(crate) fn release_orphans(&mut self, request: &ReleaseOrphans) -> Answer {
        let (mut addresses, mut stale) = (Vec::new(), 0);
        for orphan in &request.orphans {
            match self.state.observed(&request.node, orphan) {
                Some((id, row)) => addresses.extend(self.detach_attachment(id, &row, orphan.reason())),
                None => stale += 1,
            }
        }
        Answer::orphans_released(addresses, stale)
    }
}

impl State {
    /// Attachment of an orphan, if the agent has observed all of its allocations.
    fn observed(&self, node: &NodeKey, orphan: &Orphan) -> Option<(AttachmentId, Attachment)> {
        let (id, row) = self.attachment(&orphan.key(node))?;
        // A later ADD may have taken the attachment over, with the same allocations.
        let is_of_present_boot =
            self.report_of(node).is_some_and(|(_, report)| report.boot.id == row.started.boot_id);
        let is_contradicted = orphan.evidence == OrphanEvidence::EarlierBoot && is_of_present_boot;
        let is_observed = row.allocations.iter().all(|id| orphan.allocations.contains(id));
        (is_observed && !is_contradicted).then(|| (id, row.clone()))
    }
}

impl Orphan {
    fn reason(&self) -> Reason {
        match self.evidence {
            OrphanEvidence::NetnsGone => Reason::OrphanNetnsGone,
            OrphanEvidence::EarlierBoot => Reason::OrphanEarlierBoot,
            OrphanEvidence::NotInGcList => Reason::OrphanNotInGcList,
        }
    }
}
