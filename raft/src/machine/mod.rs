//! The state machine: pure. No I/O, no async, no clock, no randomness, no hash order.

mod row;

pub use row::RowKey;
use serde::{Deserialize, Serialize};

/// The only time that rules know, with the labels that an entry brings along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Log time in milliseconds.
    pub log_time_ms: u64,
    /// Wall time in milliseconds since 1970, a label.
    pub wall_ms: u64,
    /// The Raft term of the entry.
    pub term: u64,
}

/// One proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// placeholder
    pub text: String,
}

/// What became of a command.
pub type Outcome = Result<Applied, Refusal>;

/// placeholder
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The state after it.
    pub revision: u64,
}

/// placeholder
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// why
    pub code: ipam_api::Code,
    /// why
    pub detail: String,
}

/// placeholder
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {}

/// Rows that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub String);

/// placeholder
#[derive(Debug, Clone, Default)]
pub struct State {
    revision: u64,
    log_time_ms: u64,
}

impl State {
    /// From rows, in any order.
    pub fn from_rows(rows: impl IntoIterator<Item = (RowKey, Vec<u8>)>) -> Result<State, Damaged> {
        let mut state = State::default();
        for (_, bytes) in rows {
            (state.revision, state.log_time_ms) =
                postcard::from_bytes(&bytes).map_err(|e| Damaged(e.to_string()))?;
        }
        Ok(state)
    }

    /// Every row, header included.
    pub fn rows(&self) -> impl Iterator<Item = (RowKey, Vec<u8>)> + '_ {
        std::iter::once(RowKey { table: 0, id: 0 }).filter_map(|key| Some((key, self.row(key)?)))
    }

    /// One row, if it exists.
    #[must_use]
    pub fn row(&self, key: RowKey) -> Option<Vec<u8>> {
        (key.table == 0).then(|| postcard::to_stdvec(&(self.revision, self.log_time_ms)).ok()).flatten()
    }

    /// Keys of the rows written or removed since the last call.
    pub fn take_touched(&mut self) -> Vec<RowKey> {
        vec![RowKey { table: 0, id: 0 }]
    }

    /// The digest of all rows.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.revision.into()
    }

    /// The newest revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The log time of the last command.
    #[must_use]
    pub fn log_time_ms(&self) -> u64 {
        self.log_time_ms
    }
}

/// Applies one command.
pub fn apply(state: &mut State, at: At, _command: &Command) -> (Outcome, Vec<Event>) {
    state.log_time_ms = state.log_time_ms.max(at.log_time_ms);
    state.revision += 1;
    (Ok(Applied { revision: state.revision }), Vec::new())
}
