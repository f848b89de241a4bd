//! Protocol of the server as a client sees it, and its faults.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod access;
mod conformance;
mod faults;
mod watch;
