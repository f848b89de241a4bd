//! Transactions: several changes as one log entry.

mod paths;
mod steps;
pub(super) mod transact;
