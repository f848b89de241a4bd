//! `ipamctl kubernetes`: Secrets of an installation in Kubernetes. Its Jobs run these commands.

mod api;
mod join_tokens;
mod secrets;
#[cfg(test)]
mod tests;
mod verbs;

pub(crate) use verbs::{EXAMPLES, Verb, run};
