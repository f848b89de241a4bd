//! Tests of the front end against servers in this process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod allocate;
mod conduits;
mod fixture;
mod health;
mod release;
mod trench;
mod wire;
