//! `ipamctl cluster`: what concerns the members rather than the addresses.

mod backup;
mod ca;
mod certificates;
mod generation;
mod members;
mod verbs;

pub(crate) use verbs::{EXAMPLES, Verb, run};
