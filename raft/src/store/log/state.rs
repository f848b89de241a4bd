//! State of the log: vote and ends, as the records of its files determine them.

use std::io;

use super::record::Record;
use super::view::next;
use crate::store::directory::frame::invalid;
use crate::types::{LogId, Vote};

/// State of the log after a number of records.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::store) struct LogState {
    pub(in crate::store) vote: Option<Vote>,
    pub(in crate::store) last: Option<LogId>,
    pub(in crate::store) committed: Option<LogId>,
    pub(in crate::store) purged: Option<LogId>,
}

impl LogState {
    /// Applies a record.
    ///
    /// # Errors
    /// `InvalidData` if the record can't follow; the state is unchanged then.
    pub(super) fn apply(&mut self, record: &Record) -> io::Result<()> {
        match record {
            Record::Vote(vote) => {
                // Votes are only partially ordered.
                if !matches!(Some(*vote).partial_cmp(&self.vote), Some(order) if order.is_ge()) {
                    return Err(invalid(format!("{vote:?} follows the vote {:?}", self.vote)));
                }
                self.vote = Some(*vote);
            }
            Record::Append(entry) => {
                let log_id = entry.log_id;
                // The first entry may have any index but the last possible one, which no entry can follow.
                let follows = self.last.is_none_or(|_| log_id.index == next(self.last));
                if !follows || Some(log_id) <= self.last || log_id.index == u64::MAX {
                    return Err(invalid(format!("entry {log_id:?} follows {:?}", self.last)));
                }
                self.last = Some(log_id);
            }
            Record::Commit(log_id) => {
                if Some(*log_id) < self.committed || Some(*log_id) > self.last {
                    let Self { committed, last, .. } = self;
                    return Err(invalid(format!(
                        "commit {log_id:?} of a log that ends with {last:?} follows {committed:?}"
                    )));
                }
                self.committed = Some(*log_id);
            }
            Record::TruncateAfter(keep) => {
                if *keep < self.committed {
                    let committed = self.committed;
                    return Err(invalid(format!("a cut after {keep:?} where {committed:?} is committed")));
                }
                self.last = self.last.min(*keep);
            }
            Record::PurgeUpto(upto) => {
                self.purged = self.purged.max(Some(*upto));
                self.last = self.last.max(self.purged);
            }
            Record::Checkpoint(state) => self.clone_from(state),
            Record::Synced(_) => {}
        }
        Ok(())
    }
}
