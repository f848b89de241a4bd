//! A member's trust in its own state, and its silence without it.

use std::path::{Path, PathBuf};

use tokio::sync::watch;

use super::super::elections::Elections;
use crate::store::{Doubt, SharedState, StoreError};

/// A member's trust in its state. Doubt outlives a restart.
pub(in super::super) struct Trust {
    dir: PathBuf,
    state: SharedState,
    doubt: watch::Sender<Option<Doubt>>,
}

impl Trust {
    /// As the directory has it.
    pub(in super::super) fn load(dir: PathBuf, state: SharedState) -> Result<Self, StoreError> {
        let doubt = Doubt::load(&dir)?;
        if let Some(doubt) = &doubt {
            tracing::warn!(why = doubt.why, "this member's state is in doubt since before its start");
        }
        Ok(Self { dir, state, doubt: watch::Sender::new(doubt) })
    }

    /// The data directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The reason for which this member doesn't serve, if it doesn't.
    pub(in super::super) fn reject_reason(&self) -> Option<String> {
        let broken = self.state.broken().map(|broken| broken.to_string());
        broken.or_else(|| Some(format!("its state is in doubt: {}", self.doubt.borrow().as_ref()?.why)))
    }

    /// True if it doesn't serve.
    pub(in super::super) fn is_in_doubt(&self) -> bool {
        self.reject_reason().is_some()
    }

    /// True if another comparison could end its doubt.
    pub(in super::super) fn waits(&self) -> bool {
        self.doubt.borrow().as_ref().is_some_and(|doubt| !doubt.halted)
    }

    /// Serves no request from now on.
    pub(super) fn doubt(&self, doubt: Doubt) {
        let known = self.doubt.borrow().clone();
        if known.as_ref() == Some(&doubt) {
            return;
        }
        tracing::error!(why = doubt.why, "this member's state is in doubt; it serves nobody");
        self.doubt.send_replace(Some(doubt.clone()));
        // Without the file a start would serve from this state until the next comparison.
        if let Err(error) = doubt.save(&self.dir) {
            tracing::error!(%error, "the doubt can't be written down");
        }
    }

    /// Serves again, if it didn't.
    pub(super) fn restore(&self, elections: &Elections) {
        if self.doubt.borrow().is_none() {
            return;
        }
        if let Err(error) = Doubt::lift(&self.dir) {
            tracing::error!(%error, "the doubt can't be taken back, and so it stays");
            return;
        }
        self.doubt.send_replace(None);
        elections.allow(true);
        tracing::info!("this member's state is that of the majority; it serves again");
    }
}
