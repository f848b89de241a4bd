//! `ipamctl token`: credentials of callers.
//!
//! **Invariant:** a secret is written once, where it was asked for: into a file, or to standard output.

mod secret;
#[cfg(test)]
mod tests;
mod verbs;
mod view;

pub(crate) use verbs::{EXAMPLES, PATH, Verb, once, request, run};
