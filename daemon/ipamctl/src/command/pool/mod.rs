//! `ipamctl pool`: the sets of addresses that endpoints get theirs from.

mod change;
mod drain;
mod offset;
mod selectors;
mod verbs;
mod view;

pub(crate) use verbs::{EXAMPLES, Verb, run};
