//! `ipamctl subnet`: CIDRs with their gateway, VLAN, routes and DNS.

mod automatic;
mod verbs;

pub(crate) use verbs::{EXAMPLES, Verb, run};
