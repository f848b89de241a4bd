//! Trust of a member in its own state; without it the member serves no requests.

use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use super::super::elections::Elections;
use crate::store::{Quarantine, SharedState, StoreError, blocking};

/// Trust of a member in its state. A quarantine survives a restart.
pub(in super::super) struct Trust {
    dir: PathBuf,
    state: SharedState,
    quarantine: watch::Sender<Option<Quarantine>>,
}

impl Trust {
    /// Loads the quarantine from the data directory, if there is one.
    pub(in super::super) fn load(dir: PathBuf, state: SharedState) -> Result<Self, StoreError> {
        let quarantine = Quarantine::load(&dir)?;
        if let Some(quarantine) = &quarantine {
            tracing::warn!(why = quarantine.why, "this member's state is quarantined since before its start");
        }
        Ok(Self { dir, state, quarantine: watch::Sender::new(quarantine) })
    }

    /// The data directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the reason why this member doesn't serve, if any.
    pub(in super::super) fn quarantine_reason(&self) -> Option<String> {
        let broken = self.state.broken().map(|broken| broken.to_string());
        broken
            .or_else(|| Some(format!("its state is quarantined: {}", self.quarantine.borrow().as_ref()?.why)))
    }

    /// Returns true if this member doesn't serve.
    pub(in super::super) fn is_quarantined(&self) -> bool {
        self.quarantine_reason().is_some()
    }

    /// Returns true if another comparison could end the quarantine.
    pub(in super::super) fn waits(&self) -> bool {
        self.quarantine.borrow().as_ref().is_some_and(|quarantine| !quarantine.halted)
    }

    /// Quarantines the state: this member serves no request from now on.
    pub(super) async fn quarantine(&self, quarantine: Quarantine) {
        let known = self.quarantine.borrow().clone();
        if known.as_ref() == Some(&quarantine) {
            return;
        }
        tracing::error!(
            why = quarantine.why,
            "the state of this member is quarantined; it serves no requests"
        );
        self.quarantine.send_replace(Some(quarantine.clone()));
        // Without the file, a restarted member would serve this state until the next comparison.
        if let Err(error) = self.on_disk(move |dir| quarantine.save(dir)).await {
            tracing::error!(%error, "the quarantine can't be written down");
        }
    }

    /// Ends the quarantine, if there is one: this member serves again.
    pub(super) async fn restore(&self, elections: &Elections) {
        if self.quarantine.borrow().is_none() {
            return;
        }
        if let Err(error) = self.on_disk(Quarantine::lift).await {
            tracing::error!(%error, "the quarantine can't be taken back, and so it stays");
            return;
        }
        self.quarantine.send_replace(None);
        elections.allow(true);
        tracing::info!("this member's state is that of the majority; it serves again");
    }

    /// Writes on a thread that may block, because heartbeats must not wait for the disk.
    async fn on_disk(
        &self,
        write: impl FnOnce(&Path) -> Result<(), StoreError> + Send + 'static,
    ) -> io::Result<()> {
        let dir = self.dir.clone();
        blocking(move || write(&dir).map_err(io::Error::other)).await
    }
}
