//! Ids of rows, each with the type of its row.

pub use crate::state::row::ReplayId;
pub use crate::value::id::*;
