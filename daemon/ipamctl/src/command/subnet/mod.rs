//! `ipamctl subnet`: CIDRs with what their hosts need to know.

mod automatic;
mod verbs;

pub(crate) use verbs::{EXAMPLES, Verb, run};
