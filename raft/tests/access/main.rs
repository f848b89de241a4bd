//! Who may do what, as `apply` decides it: roles, nodes, labels, realms, tokens, kept answers, managers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what can't be here is a failed test"
)]

mod automatic;
mod identities;
mod leases;
mod managers;
mod nodes;
mod prefixes;
#[path = "../support/random.rs"]
#[allow(dead_code, reason = "shared with the tests that use more of it")]
mod random;
#[path = "../support/random_automatic.rs"]
mod random_automatic;
#[path = "../support/random_change.rs"]
mod random_change;
#[path = "../support/random_interfaces.rs"]
mod random_interfaces;
#[path = "../support/random_prefix.rs"]
mod random_prefix;
#[path = "../support/random_sticky.rs"]
mod random_sticky;
mod replays;
mod roles;
#[path = "../support/samples.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the golden bytes, which use all of it")]
mod samples;
mod tokens;
mod world;
