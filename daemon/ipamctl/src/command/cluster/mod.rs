//! `ipamctl cluster`: members, leadership, certificates and backups.

mod backup;
mod ca;
pub(crate) mod certificates;
mod epoch;
mod members;
mod verbs;

pub(crate) use verbs::{EXAMPLES, Verb, run};
