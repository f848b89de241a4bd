//! Backups of the whole state, on request of the daemon.

use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use tokio::time::Instant;

use super::error::ReadError;
use super::handle::Node;
use crate::store::{Backup, BackupSource, blocking};

/// Reason why a backup failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// This member can't confirm that its state has all acknowledged writes.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Part of the backup's content can't be read on this member.
    #[error("this member can't write a backup: {0}")]
    Incomplete(String),
}

impl From<BackupError> for Problem {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Read(error) => error.into(),
            BackupError::Incomplete(_) => Self::new(Code::Overloaded, error.to_string())
                .help("Ask another member, or leave the history out: ?history=false, --without-history."),
        }
    }
}

impl Node {
    /// Takes a backup of all changes acknowledged before this call. With `history` it has the whole journal,
    /// else only the newest part. Writing the backup delays no other work.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub async fn backup(
        &self,
        history: bool,
        taken_at: Timestamp,
        deadline: impl Into<Instant>,
    ) -> Result<Backup, BackupError> {
        let inner = self.inner();
        self.read(deadline).await?;
        let identity = inner.profile.identity();
        let (cluster, member) = (identity.cluster_id.unwrap_or_default(), identity.name);
        let (shared, journal) = (inner.state.clone(), inner.journal.clone());
        let take =
            move || Backup::take(&shared, &journal, BackupSource { cluster, member, taken_at }, history);
        let taken = inner.state.guard_io(blocking(take)).await;
        taken.map_err(|error| BackupError::Incomplete(error.to_string()))
    }
}
