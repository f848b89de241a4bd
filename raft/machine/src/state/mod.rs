//! State: rows, tables and the index that is derived from the rows.

mod agents;
pub(crate) mod attachment_index;
mod blocks;
mod checks;
pub(crate) mod damaged;
mod derive;
pub(crate) mod division;
mod endpoints;
pub mod id;
pub(crate) mod index;
pub(crate) mod indexed;
pub(crate) mod inventory;
pub(crate) mod key;
pub(crate) mod lease_index;
pub mod loading;
mod lookup;
mod named;
pub(crate) mod owners;
pub(crate) mod prefix_claims;
mod prefix_coolings;
mod probing;
mod quarantines;
mod ready_waiters;
mod records;
pub(crate) mod refuse;
mod root;
pub mod row;
pub(crate) mod row_key;
pub(crate) mod scopes;
mod selectors;
pub(crate) mod shape;
mod sound;
pub mod table;

pub use root::*;
pub use row::Rows;
