//! Basics of applying a command: the step through the state, drafts, work limits and the journal.

mod change;
mod draft;
mod holding;
mod incarnation;
mod journal;
pub(crate) mod step;
pub(crate) mod work;
