//! Pods that watchers report, and the claims of nodes that are verified by them.
//!
//! A realm is verified while its watcher reports: facts that are out of date refuse no pod its addresses.

mod claims;
mod forget;
mod report;
