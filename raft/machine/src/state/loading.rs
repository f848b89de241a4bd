//! State built from rows in any order.
//!
//! Loading is most of the work of a start: it takes one core as long as reading the rows does. So several
//! lanes share it: each lane decodes the rows of its tables and derives the entries that depend on these rows
//! alone. Entries that follow from several tables are derived last.

use crate::state::damaged::Damaged;
use crate::state::row::{Allocation, Attachment, Cooling, Endpoint, Quarantine};
use crate::state::row_key::RowKey;
use crate::state::table::{Row, decode};
use crate::state::{HEADER, Header, State};

/// Number of lanes.
pub const LANES: usize = 4;

/// The lane of a table, below [`LANES`]: all rows of a table belong into one.
#[must_use]
pub fn lane(table: u8) -> usize {
    match table {
        Endpoint::TABLE => 1,
        Attachment::TABLE => 2,
        // One lane, because these tables share the index of addresses.
        Allocation::TABLE | Cooling::TABLE | Quarantine::TABLE => 3,
        _ => 0,
    }
}

/// Incomplete state.
#[derive(Debug)]
pub struct Loading {
    state: State,
    header: Option<Header>,
}

impl Default for Loading {
    fn default() -> Self {
        Self { state: State::without_rows(), header: None }
    }
}

impl Loading {
    /// Adds a row; rows may come in any order.
    ///
    /// # Errors
    /// If the row can't be decoded, or is a duplicate.
    pub fn put(&mut self, key: RowKey, bytes: &[u8]) -> Result<(), Damaged> {
        let state = &mut self.state;
        match key.table {
            0 => {
                let read: Header = decode(bytes).ok_or_else(|| Damaged("the header can't be read".into()))?;
                if key != HEADER || !read.makes_sense() || self.header.replace(read).is_some() {
                    return Err(Damaged("the header is there twice, or makes no sense".into()));
                }
                Ok(())
            }
            _ => state.rows.load(key, bytes, &mut state.ledger, &mut state.names),
        }
    }

    /// Derives the index entries of this lane's rows.
    #[must_use]
    pub fn indexed(mut self) -> Indexed {
        self.state.index_tables();
        Indexed(self)
    }

    /// Returns the state once all rows are added.
    ///
    /// # Errors
    /// If a row contradicts another, or there is no header.
    pub fn finish(self) -> Result<State, Damaged> {
        self.indexed().finish([])
    }
}

/// The rows of a lane, with what is derived from them.
#[derive(Debug)]
pub struct Indexed(Loading);

impl Indexed {
    /// Returns the state of these rows and those of all `other` lanes.
    ///
    /// # Errors
    /// If a row contradicts another, or there is no header.
    pub fn finish(self, others: impl IntoIterator<Item = Self>) -> Result<State, Damaged> {
        let Loading { mut state, mut header } = self.0;
        for Self(other) in others {
            header = header.or(other.header);
            state.take_in(other.state);
        }
        state.header = header.ok_or_else(|| Damaged("there is no header".into()))?;
        state.check_rows()?;
        state.index_across()?;
        Ok(state)
    }
}

impl State {
    /// Merges the rows of another lane, which are of other tables.
    fn take_in(&mut self, other: Self) {
        let Self { header: _, rows, ledger, index, names } = other;
        self.rows.take_in(rows);
        self.ledger.digest = self.ledger.digest.wrapping_add(ledger.digest);
        self.index.take_in(index);
        self.names.take_in(names);
    }
}
