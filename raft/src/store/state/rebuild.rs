//! Rebuild of a state while the member runs, from verifiable sources: a snapshot and the following log.

use std::io;
use std::sync::Arc;

use openraft::RaftLogReader as _;

use super::entry::Ready;
use super::live::Live;
use super::state_machine::{MachineStore, blocking};
use crate::progress::Progress;
use crate::store::directory::frame;
use crate::store::log::{LogStore, next};
use crate::store::snapshot::{Instant, SnapshotFile};
use crate::types::LogId;

/// Source of a state, besides the log.
pub(crate) enum Source {
    /// This member's own snapshot; the beginning of the log if there is none.
    Own,
    /// A snapshot that another member has sent.
    Peer(Box<SnapshotFile>),
}

impl MachineStore {
    /// Rebuilds the state up to the applied entry, and replaces the present one. The caller must keep
    /// openraft from handing out entries meanwhile. The rows of the replaced state are set aside.
    ///
    /// # Errors
    /// When snapshot or log can't be read, or don't reach each other; then nothing has changed.
    pub(crate) async fn rebuild(&mut self, log: LogStore, source: Source) -> io::Result<()> {
        self.shared.guard_io(self.rebuild_from(log, source)).await
    }

    async fn rebuild_from(&self, mut log: LogStore, source: Source) -> io::Result<()> {
        // openraft counts entries that lag as applied, and doesn't hand them out again.
        self.shared.settle().await?;
        let applied = self.shared.applied();
        let mut live = Live::of(self.beginning(source, applied).await?);
        while live.applied < applied {
            let from = next(live.applied);
            let entries = log.limited_get_log_entries(from, next(applied)).await?;
            if entries.first().is_none_or(|entry| entry.log_id.index != from) {
                return Err(frame::invalid(format!("entry {from} is gone from the log, and in no snapshot")));
            }
            live = blocking(move || {
                for entry in entries {
                    Ready::new((entry, None))?.apply(&mut live)?;
                    live.keep_journal();
                }
                Ok(live)
            })
            .await?;
        }
        self.journal.fit(&live.state);
        live.corrects = true;
        self.shared.put(live).await
    }

    async fn beginning(&self, source: Source, applied: Option<LogId>) -> io::Result<Instant> {
        let snapshots = Arc::clone(&self.snapshots);
        match source {
            Source::Own => {
                let load = move || snapshots.load_current(&Progress::default()).map_err(io::Error::other);
                Ok(blocking(load).await?.unwrap_or_default())
            }
            Source::Peer(file) => {
                let meta = file.meta().clone();
                if meta.last_log_id > applied || meta.last_log_id < snapshots.last() {
                    return Err(frame::invalid(format!("a snapshot of {meta} doesn't fit to what is here")));
                }
                let instant = blocking(move || snapshots.install(*file, &meta)).await?;
                self.durable.set_snapshot(instant.applied);
                Ok(instant)
            }
        }
    }
}
