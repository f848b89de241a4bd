//! Command line: its grammar, synonyms, completions and manual pages, and the dispatch of commands.

pub(crate) mod arguments;
pub(crate) mod completion;
pub(crate) mod dispatch;
mod manual;
pub(crate) mod start;
pub(crate) mod synonyms;
