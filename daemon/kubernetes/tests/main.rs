//! The watcher against an API server over HTTP, and against servers that record the requests to them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod controllers;
mod custom;
mod custom_faults;
mod faults;
mod fixture;
mod host_policies;
mod host_policy_ends;
mod mirror;
mod node_pools;
mod nodes;
mod pods;
mod reports;
mod scale;
