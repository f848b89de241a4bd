//! `ipamctl pool`: sets of addresses from which endpoints get their addresses.

mod change;
mod drain;
mod offset;
mod selectors;
mod verbs;
mod view;

pub(crate) use verbs::{EXAMPLES, Verb, run};
