//! Protocol of the server as a client sees it, and its faults.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod access;
mod client;
mod cluster_api;
mod conformance;
mod faults;
mod holds;
mod watch;
