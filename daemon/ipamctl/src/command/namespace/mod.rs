//! `ipamctl namespace`: groups of endpoints, what they take from, and how much they may have.

mod quota;
mod verbs;

pub(crate) use verbs::{EXAMPLES, Verb, run};
