//! Common parts of the tests: the language of scenarios, random commands and samples of all types.

pub(crate) mod explained;
pub(crate) mod print;
pub(crate) mod random;
pub(crate) mod samples;
pub(crate) mod script;
