//! `ipamctl namespace`: groups of endpoints with default pools and quotas.

mod quota;
mod verbs;

pub(crate) use verbs::{EXAMPLES, Verb, run};
