//! Parts that several tests share: the language of scenarios, random commands, one sample of everything.

pub(crate) mod explained;
pub(crate) mod print;
pub(crate) mod random;
pub(crate) mod samples;
pub(crate) mod script;
