//! Application of one log entry to the state.

use std::io;
use std::sync::Arc;

use openraft::entry::RaftEntry as _;
use openraft::storage::{ApplyResponder, EntryResponder};
use openraft::{EntryPayload, StoredMembership};
use tokio::time::Instant;

use super::checkpoints::Checkpoints;
use super::live::Live;
use crate::store::directory::frame;
use crate::store::log::next;
use crate::types::{Entry, LogId, Outcomes, Types};
use ipam_machine::batch::{Leadership, Opened};
use ipam_machine::level::check_known;
use ipam_machine::{Action, At};

/// An entry that was decoded and checked, and can be applied.
pub(super) struct Ready {
    log_id: LogId,
    work: Work,
    responder: Option<ApplyResponder<Types>>,
}

/// Recipient of outcomes, with the outcomes.
type Recipient = (ApplyResponder<Types>, Outcomes);

enum Work {
    Nothing,
    Commands(Opened),
    Membership(crate::types::StoredMembership),
}

impl Ready {
    pub(super) fn new((entry, responder): EntryResponder<Types>) -> io::Result<Self> {
        let log_id = entry.log_id();
        let Entry { payload, .. } = entry;
        let work = match payload {
            EntryPayload::Blank => Work::Nothing,
            // Fatal: skipping it would make this replica differ from the others.
            EntryPayload::Normal(batch) => {
                let opened = batch.open().map_err(io::Error::other)?;
                // Fatal too, and before any of it is applied: later entries follow rules that are unknown
                // here.
                for command in &opened.commands {
                    if let Action::RaiseLevel { level } = command.action {
                        check_known(level).map_err(io::Error::other)?;
                    }
                }
                Work::Commands(opened)
            }
            EntryPayload::Membership(membership) => {
                Work::Membership(StoredMembership::new(Some(log_id), membership))
            }
        };
        Ok(Self { log_id, work, responder })
    }

    /// Returns the number of commands, and the recipients of their outcomes.
    ///
    /// # Errors
    /// If the entry doesn't follow the last one: the state would lack the entries in between for ever.
    pub(super) fn apply(self, live: &mut Live) -> io::Result<(usize, Option<Recipient>)> {
        let (index, due) = (self.log_id.index, next(live.applied));
        if index != due {
            return Err(frame::invalid(format!("entry {index} is applied where entry {due} is due")));
        }
        live.applied = Some(self.log_id);
        let is_checkpoint = Checkpoints::is_due(self.log_id.index, matches!(self.work, Work::Commands(_)));
        let mut outcomes = Outcomes::default();
        match self.work {
            Work::Nothing => {}
            Work::Membership(membership) => live.membership = membership,
            Work::Commands(Opened { leadership, log_time_ms, wall_ms, commands }) => {
                let leadership = match leadership {
                    Leadership::Begins { grace_ms } => {
                        live.state.begin_leadership(self.log_id.index, grace_ms);
                        self.log_id.index
                    }
                    Leadership::Number(number) => number,
                };
                let at = At { log_time_ms, wall_ms, leadership };
                let mut begun = Instant::now();
                for command in &commands {
                    #[cfg(feature = "testing")]
                    crate::store::spoil::break_if_asked(&command.origin.request_id);
                    let (outcome, _happened) = ipam_machine::carry_out(&mut live.state, at, command);
                    outcomes.all.push(outcome);
                    let ended = Instant::now();
                    outcomes.took.push(ended.saturating_duration_since(begun));
                    begun = ended;
                }
            }
        }
        if is_checkpoint {
            Arc::make_mut(&mut live.checkpoints).note(self.log_id.index, &live.state);
        }
        Ok((outcomes.all.len(), self.responder.map(|responder| (responder, outcomes))))
    }
}
