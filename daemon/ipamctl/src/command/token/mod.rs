//! `ipamctl token`: credentials of callers.
//!
//! **Invariant:** a secret is written once, to the requested destination: a file or standard output.

mod secret;
#[cfg(test)]
mod tests;
mod verbs;
mod view;

pub(crate) use verbs::{EXAMPLES, PATH, Verb, once, request, run};
