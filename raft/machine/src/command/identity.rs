//! Idempotent requests: the state recognises a repetition, changes nothing and gives the same answer.

use crate::command::{Action, Command};

impl Command {
    /// Returns true if a second copy is harmless, since the state recognises the request.
    ///
    /// The state recognises a request by an idempotency key, or by an identity in the action that the state
    /// stores. A member forwards such a request to a new leader while the outcome of the first copy is
    /// unknown.
    #[must_use]
    pub fn has_replicated_identity(&self) -> bool {
        self.terms.idempotency.is_some() || self.action.names_its_identity()
    }
}

impl Action {
    /// Returns true if the action names an attachment or a claim. Each new action decides here.
    fn names_its_identity(&self) -> bool {
        match self {
            // Identified by an attachment, or by an endpoint's claim to addresses or to a block.
            Action::Allocate(_)
            | Action::AllocateOnLinks(_)
            | Action::AllocateMany(_)
            | Action::ReleaseAttachment(_)
            | Action::ReleaseAttachmentOf(_)
            | Action::Delegate(_)
            | Action::DelegateOrWait(_) => true,
            // Identified by a single-use token with the secret that it was exchanged for, or by a data
            // directory.
            Action::Join { .. } | Action::JoinMember(_) => true,
            // A second copy comes too soon after the first to change anything.
            Action::RenewToken => true,
            // A second copy would undo what another caller has changed since.
            Action::PutNetwork(_)
            | Action::PutSubnet(_)
            | Action::PutPool(_)
            | Action::PutReservation(_)
            | Action::PutNode(_)
            | Action::PutNamespace(_)
            | Action::PutHostPolicy(_)
            | Action::ScaleController(_)
            | Action::EndController(_)
            | Action::ConfirmEpoch(_)
            | Action::SetPrefixes(_)
            | Action::Renew(_) => false,
            // A second copy would be refused, or meet a newer holder.
            Action::Delete(_)
            | Action::ReleaseAllocation { .. }
            | Action::ReleaseEndpoint { .. }
            | Action::ReleasePrefix { .. }
            | Action::SplitPool(_)
            | Action::CreateToken(_)
            | Action::RotateToken { .. }
            | Action::ChangeMembers(_)
            | Action::Transaction(_) => false,
            // A second copy finds none of the allocations, so its count of already released ones differs.
            Action::ReleaseAllocations { .. } => false,
            // A second copy meets a newer quarantine, allocation or incarnation.
            Action::EndQuarantine(_) | Action::Reclaim(_) | Action::EndIncarnation(_) => false,
            // The agent or the watcher repeats the report. A second copy could report an old readiness or
            // pod, or finds no orphan any more.
            Action::Heartbeat(_)
            | Action::ReleaseOrphans(_)
            | Action::ReportProbes(_)
            | Action::ReportPods(_) => false,
            // The next round of the task repeats the action.
            Action::Expire | Action::TrimJournal { .. } | Action::SealJournal | Action::RaiseLevel { .. } => {
                false
            }
        }
    }
}
