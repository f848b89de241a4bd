//! Rows: the stored form of each object, and the journal's part of the header.

mod journal;
mod rows;

pub use self::journal::*;
pub use self::rows::*;
