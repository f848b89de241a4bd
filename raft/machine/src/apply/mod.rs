//! Basics of carrying out a command: its step through the state, drafts, the bounds of its work, the journal.

mod change;
mod draft;
mod journal;
pub(crate) mod step;
pub(crate) mod work;
