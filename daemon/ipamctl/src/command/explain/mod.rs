//! `ipamctl explain`: what a resource's fields mean, and which address a request would get, and why.
//!
//! The words are those of the API's own source, so that they can't say anything else than what is the case.

mod choice;
mod run;
mod source;

pub(crate) use run::{ExplainArguments, run};
