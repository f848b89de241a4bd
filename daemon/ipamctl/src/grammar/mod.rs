//! The words of a command line: its grammar, what is built from it, and the command that they start.

pub(crate) mod arguments;
pub(crate) mod completion;
pub(crate) mod dispatch;
mod manual;
pub(crate) mod start;
pub(crate) mod synonyms;
