//! Rows: what the machine remembers of each thing, and what the header says of the journal.

mod journal;
mod rows;

pub use self::journal::*;
pub use self::rows::*;
