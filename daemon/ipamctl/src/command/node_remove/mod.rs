//! `ipamctl node remove`: a node leaves for good, with the addresses of its host.

mod execute;
mod find;
mod report;
mod run;

pub(crate) use self::run::{RemoveArguments, run};
