//! `ipamctl cluster`: what concerns the members rather than the addresses.

mod backup;
mod ca;
pub(crate) mod certificates;
mod epoch;
mod members;
mod verbs;

pub(crate) use verbs::{EXAMPLES, Verb, run};
