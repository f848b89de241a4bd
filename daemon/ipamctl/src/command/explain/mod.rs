//! `ipamctl explain`: descriptions of resource fields, and addresses that a request would get.
//!
//! The descriptions are the doc comments in the API's source, so that they always match the API.

mod choice;
mod run;
mod source;

pub(crate) use run::{ExplainArguments, run};
